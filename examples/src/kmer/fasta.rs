//! The letters of a FASTA file, plain or packed by gzip.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// How a file that gzip packed begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file of named sequences, read from its beginning to its end.
pub struct Fasta(Box<dyn BufRead>);

impl Fasta {
    /// Opens a file. How it begins says whether it is packed, and whether it is one of this kind.
    pub fn open(path: &Path) -> io::Result<Fasta> {
        let mut file = BufReader::new(File::open(path)?);
        let packed = file.fill_buf()?.starts_with(&GZIP);
        let mut lines: Box<dyn BufRead> =
            if packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        match lines.fill_buf()?.first() {
            Some(b'>' | b';') => Ok(Fasta(lines)),
            Some(byte) => Err(no_fasta(format!("it begins with {}, not with '>'", byte.escape_ascii()))),
            None => Err(no_fasta("it is empty".into())),
        }
    }

    /// Hands on each letter; a letter that no sequence has, `>`, stands between two sequences. An error of `letter`
    /// ends it, and so does a byte that is none; a file without any letter is an error, too.
    pub fn read<E: From<io::Error>>(mut self, mut letter: impl FnMut(u8) -> Result<(), E>) -> Result<(), E> {
        let (mut line, mut number, mut letters) = (Vec::new(), 0_u64, 0_usize);
        while self.0.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            match line.first() {
                Some(b'>') => letter(b'>')?,
                Some(b';') => {} // a remark, as old files have them
                _ => {
                    let line = line.trim_ascii_end();
                    if let Some(byte) = line.iter().find(|byte| !is_letter(**byte)) {
                        let text = format!("line {number} has {}, which is no letter", byte.escape_ascii());
                        return Err(no_fasta(text).into());
                    }
                    letters += line.len();
                    line.iter().try_for_each(|&byte| letter(byte))?;
                }
            }
            line.clear();
        }
        if letters == 0 { Err(no_fasta("it has no sequence".into()).into()) } else { Ok(()) }
    }
}

/// Whether a sequence may have it: letters of bases and amino acids, gaps, and ends of translation.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'*' | b'.' | b' ')
}

fn no_fasta(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is no FASTA file: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    const TEXT: &[u8] = b">one of two\r\nACG\r\nT\r\n;remark\n>two\nNA\n\nC";

    fn letters(bytes: &[u8]) -> io::Result<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut letters = String::new();
        let push = |letter| {
            letters.push(char::from(letter));
            Ok::<(), io::Error>(())
        };
        Fasta::open(file.path()).and_then(|fasta| fasta.read(push))?;
        Ok(letters)
    }

    #[test]
    fn letters_come_without_names_and_ends_of_lines() {
        assert_eq!(letters(TEXT).unwrap(), ">ACGT>NAC");
    }

    #[test]
    fn packed_files_are_read_also_if_packed_in_parts() {
        let packed = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(letters(&[packed(&TEXT[..20]), packed(&TEXT[20..])].concat()).unwrap(), ">ACGT>NAC");
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |bytes: &[u8]| letters(bytes).unwrap_err().to_string();
        assert_eq!(refused(b""), "it is no FASTA file: it is empty");
        assert_eq!(refused(b"\x7fELF"), "it is no FASTA file: it begins with \\x7f, not with '>'");
        assert_eq!(
            refused(b">name\nAC\nA\x00C\n"),
            "it is no FASTA file: line 3 has \\x00, which is no letter"
        );
        assert_eq!(refused(b">name\n>other\n"), "it is no FASTA file: it has no sequence");
    }
}
