//! Reads a plan from a file, in place of a named collective.

use std::fs::File;
use std::io::Read;
use tasuki_command::misuse;
use tasuki_core::os::available_memory;
use tasuki_schedule::Schedule;
use tasuki_schedule::json;

/// Returns true if `what` names a file rather than a collective.
pub(crate) fn is_file(what: &str) -> bool {
    what.ends_with(".json") || what.contains('/')
}

/// Reads the plan of the file `what`. Refuses the options of `given`, since the file decides what
/// they would set.
pub(crate) fn read<'o>(what: &str, given: impl Iterator<Item = &'o str>) -> anyhow::Result<Schedule> {
    let mut given = given;
    if let Some(option) = given.next() {
        return Err(misuse(format!("the file decides {option}: leave it out")));
    }
    let wrong = |why: &dyn std::fmt::Display| misuse(format!("{what}: {why}"));
    let text = text(what)?;
    json::parse(&text).map_err(|error| wrong(&error))
}

/// Largest size of a text, in bytes.
const TEXT_MAX: u64 = 4 << 30;
/// A parsed text takes up to this multiple of its size in memory.
const TEXT_TIMES: u64 = 8;
/// Bytes of one read.
const CHUNK: u64 = 1 << 20;

/// Reads a text file. Fails as soon as it finds that the file is not UTF-8 or too large for memory.
pub(crate) fn text(path: &str) -> anyhow::Result<String> {
    text_up_to(path, text_max())
}

fn text_up_to(path: &str, max: u64) -> anyhow::Result<String> {
    let file = File::open(path).map_err(|error| misuse(format!("{path}: {error}")))?;
    read_text(path, file, max)
}

/// Reads a text from `source`, as [`text`] reads a file. `path` names it in errors.
pub(crate) fn text_of(path: &str, source: impl Read) -> anyhow::Result<String> {
    read_text(path, source, text_max())
}

fn text_max() -> u64 {
    TEXT_MAX.min(available_memory::available().bytes / TEXT_TIMES)
}

fn read_text(path: &str, mut source: impl Read, max: u64) -> anyhow::Result<String> {
    let failed = |error: std::io::Error| misuse(format!("{path}: {error}"));
    let no_text = || misuse(format!("{path} is not a text file"));
    let (mut bytes, mut looked_at) = (Vec::new(), 0);
    loop {
        let read = (&mut source).take(CHUNK).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > max {
            return Err(misuse(format!(
                "{path}: the text is longer than {max} bytes, and more do not fit in the available memory"
            )));
        }
        looked_at += match std::str::from_utf8(&bytes[looked_at..]) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            Err(_) => return Err(no_text()),
        };
        if bytes[bytes.len() - read..].contains(&0) {
            return Err(no_text());
        }
        if read == 0 {
            return String::from_utf8(bytes).map_err(|_| no_text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_and_binary_files_are_refused() {
        let said = |path: &str, max| text_up_to(path, max).unwrap_err().to_string();
        assert!(said("/dev/zero", u64::MAX).contains("is not a text file"));
        assert!(said("/dev/urandom", u64::MAX).contains("is not a text file"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        let path = path.to_str().unwrap();
        // A letter of three bytes is split between two chunks.
        let long = "x".repeat(CHUNK as usize - 1) + "\u{2026}" + &"y".repeat(5);
        std::fs::write(path, &long).unwrap();
        assert_eq!(text_up_to(path, u64::MAX).unwrap(), long);
        assert!(said(path, CHUNK).contains("longer than 1048576 bytes"));
        std::fs::write(path, &long.as_bytes()[..CHUNK as usize]).unwrap();
        assert!(said(path, u64::MAX).contains("is not a text file"));
        assert!(said("/nowhere", 9).contains("/nowhere: No such file"));
    }
}
