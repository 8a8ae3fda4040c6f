//! Checks that `tasuki demo` runs and writes its picture.

use super::examples;
use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pixels in each direction.
const SIDE_MIN: u32 = 512;

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let tool = examples::build(shell)?;
    let folder = shell.folder("xtask/demo")?;
    for old in pictures(&folder)? {
        fs::remove_file(old)?;
    }
    shell.expect(Command::new(tool).arg("demo").current_dir(&folder))?;
    let picture = pictures(&folder)?.pop().context("no picture in the current folder")?;
    let (width, height) = size(&fs::read(&picture)?).context("not a PNG")?;
    if width.min(height) < SIDE_MIN {
        bail!("the picture has {width} x {height} pixels, at least {SIDE_MIN} x {SIDE_MIN} are promised");
    }
    Ok(Outcome::Passed(format!("picture of {width} x {height}")))
}

fn pictures(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "png"))
        .collect())
}

/// Width and height follow the signature, the length and the name of a PNG's first chunk (PNG 1.2,
/// 3.2 and 4.1.1).
fn size(png: &[u8]) -> Option<(u32, u32)> {
    let header = png.strip_prefix(b"\x89PNG\r\n\x1a\n")?.get(8..16)?;
    let (width, height) = header.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(height.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_picture_is_read() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\0\0\0\x01\0";
        assert_eq!(size(png), Some((512, 256)));
        assert_eq!(size(b"GIF89a"), None);
    }
}
