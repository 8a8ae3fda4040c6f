//! Files that a command writes: opened before any other work, so that errors come early, and
//! replaced at the end.

use crate::exit_status::misuse;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The number of bytes written as a trial: more than any output has.
const TRIED_BYTES: usize = 1 << 20;

/// A file to be written later.
#[derive(Debug)]
pub struct Sink {
    path: PathBuf,
    file: File,
    /// True if the file is new and nothing has been written; then it is removed again.
    is_left_empty: bool,
    /// True once the old content is gone.
    is_begun: bool,
}

/// Returns true if the path stands for standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

impl Sink {
    /// Opens the file and checks that it can be written. The old content stays until
    /// [`Sink::replace`]. An error is misuse.
    pub fn open(path: &Path) -> anyhow::Result<Sink> {
        let refused = |error| misuse(format!("{} cannot be written: {error}", path.display()));
        let path = if is_standard_output(path) { Path::new("/dev/stdout") } else { path };
        let is_left_empty = !path.exists();
        // The file is not truncated: if the command fails, the old content is still there.
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(path);
        let file = file.map_err(refused)?;
        let mut sink = Sink { path: path.to_path_buf(), file, is_left_empty, is_begun: false };
        sink.try_out().map_err(refused)?;
        Ok(sink)
    }

    fn try_out(&mut self) -> std::io::Result<()> {
        let meta = self.file.metadata()?;
        if meta.is_file() {
            self.file.seek(SeekFrom::End(0))?;
            let written = self.file.write_all(&vec![0; TRIED_BYTES]).and_then(|()| self.file.sync_data());
            self.file.set_len(meta.len())?;
            return written;
        }
        // Writes an empty line to a device: most devices accept it; /dev/full refuses it.
        let is_device = meta.file_type().is_char_device() && !self.file.is_terminal();
        if is_device { self.file.write_all(b"\n") } else { Ok(()) }
    }

    /// Replaces the content with `text`.
    pub fn replace(mut self, text: &str) -> anyhow::Result<()> {
        self.append(text)
    }

    /// Writes `text` behind what was written before. The first call replaces the old content.
    pub fn append(&mut self, text: &str) -> anyhow::Result<()> {
        let shown = || format!("{} could not be written", self.path.display());
        if !self.is_begun && self.file.metadata().is_ok_and(|meta| meta.is_file()) {
            self.file.set_len(0).and_then(|()| self.file.rewind()).with_context(shown)?;
        }
        (self.is_begun, self.is_left_empty) = (true, false);
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush()).with_context(shown)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if self.is_left_empty {
            let _ = std::fs::remove_file(&self.path); // the earlier error is reported
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures");
        std::fs::write(&path, "a long old text").unwrap();
        let sink = Sink::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a long old text");
        sink.replace("new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        drop(Sink::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        let other = folder.path().join("other");
        drop(Sink::open(&other).unwrap());
        assert!(!other.exists());
    }

    #[test]
    fn unusable_output_files_are_refused_before_anything_is_measured() {
        for path in ["/dev/full", "/nowhere/a.json", "/"] {
            let error = format!("{:#}", Sink::open(Path::new(path)).unwrap_err());
            assert!(error.starts_with(path) && error.contains("cannot be written: "), "{error}");
        }
        Sink::open(Path::new("/dev/null")).unwrap().replace("x").unwrap();
    }
}
