//! The letters of a FASTA file, plain or compressed by gzip.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The first bytes of a file that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file of named sequences, read from beginning to end.
pub struct Fasta(Box<dyn BufRead>);

impl Fasta {
    /// Opens a file. The first bytes show if it is compressed and if it is a FASTA file.
    pub fn open(path: &Path) -> io::Result<Fasta> {
        let mut file = BufReader::new(File::open(path)?);
        let compressed = file.fill_buf()?.starts_with(&GZIP);
        let mut lines: Box<dyn BufRead> =
            if compressed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        match lines.fill_buf()?.first() {
            Some(b'>' | b';') => Ok(Fasta(lines)),
            Some(byte) => Err(not_fasta(format!("it begins with {}, not with '>'", byte.escape_ascii()))),
            None => Err(not_fasta("it is empty".into())),
        }
    }

    /// Passes each letter to `letter`. The character `>`, which no sequence contains, separates two sequences.
    /// Reading stops at an error of `letter` and at a byte that is not a letter. A file without letters is an error,
    /// too.
    pub fn read<E: From<io::Error>>(mut self, mut letter: impl FnMut(u8) -> Result<(), E>) -> Result<(), E> {
        let (mut line, mut number, mut letters) = (Vec::new(), 0_u64, 0_usize);
        while self.0.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            match line.first() {
                Some(b'>') => letter(b'>')?,
                Some(b';') => {} // a comment, as old files have them
                _ => {
                    let line = line.trim_ascii_end();
                    if let Some(byte) = line.iter().find(|byte| !is_letter(**byte)) {
                        let text =
                            format!("line {number} has {}, which is not a letter", byte.escape_ascii());
                        return Err(not_fasta(text).into());
                    }
                    letters += line.len();
                    line.iter().try_for_each(|&byte| letter(byte))?;
                }
            }
            line.clear();
        }
        if letters == 0 { Err(not_fasta("it has no sequence".into()).into()) } else { Ok(()) }
    }
}

/// Returns true for the characters of a sequence: letters of bases and amino acids, gaps, and ends of translation.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'*' | b'.' | b' ')
}

fn not_fasta(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is not a FASTA file: {why}"))
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
    fn names_and_line_ends_are_left_out() {
        assert_eq!(letters(TEXT).unwrap(), ">ACGT>NAC");
    }

    #[test]
    fn compressed_files_of_one_or_several_parts_are_read() {
        let compressed = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(
            letters(&[compressed(&TEXT[..20]), compressed(&TEXT[20..])].concat()).unwrap(),
            ">ACGT>NAC"
        );
    }

    #[test]
    fn files_that_are_not_fasta_are_refused() {
        let refused = |bytes: &[u8]| letters(bytes).unwrap_err().to_string();
        assert_eq!(refused(b""), "it is not a FASTA file: it is empty");
        assert_eq!(refused(b"\x7fELF"), "it is not a FASTA file: it begins with \\x7f, not with '>'");
        assert_eq!(
            refused(b">name\nAC\nA\x00C\n"),
            "it is not a FASTA file: line 3 has \\x00, which is not a letter"
        );
        assert_eq!(refused(b">name\n>other\n"), "it is not a FASTA file: it has no sequence");
    }
}
