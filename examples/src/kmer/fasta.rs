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
    /// Opens a file. How it begins says whether it is packed.
    pub fn open(path: &Path) -> io::Result<Fasta> {
        let mut file = BufReader::new(File::open(path)?);
        let packed = file.fill_buf()?.starts_with(&GZIP);
        Ok(Fasta(if packed { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) }))
    }

    /// Hands on each letter; a letter that no sequence has, `>`, stands between two sequences. An error of `letter`
    /// ends it.
    pub fn read<E: From<io::Error>>(mut self, mut letter: impl FnMut(u8) -> Result<(), E>) -> Result<(), E> {
        let mut line = Vec::new();
        while self.0.read_until(b'\n', &mut line)? > 0 {
            match line.first() {
                Some(b'>') => letter(b'>')?,
                Some(b';') => {} // a remark, as old files have them
                _ => line.trim_ascii_end().iter().try_for_each(|&byte| letter(byte))?,
            }
            line.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    const TEXT: &[u8] = b">one of two\r\nACG\r\nT\r\n;remark\n>two\nNA\n\nC";

    fn letters(bytes: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut letters = String::new();
        let push = |letter| {
            letters.push(char::from(letter));
            Ok::<(), io::Error>(())
        };
        Fasta::open(file.path()).unwrap().read(push).unwrap();
        letters
    }

    #[test]
    fn letters_come_without_names_and_ends_of_lines() {
        assert_eq!(letters(TEXT), ">ACGT>NAC");
        assert_eq!(letters(b""), "");
    }

    #[test]
    fn packed_files_are_read_also_if_packed_in_parts() {
        let packed = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(letters(&[packed(&TEXT[..20]), packed(&TEXT[20..])].concat()), ">ACGT>NAC");
    }
}
