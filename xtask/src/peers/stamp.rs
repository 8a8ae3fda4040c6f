//! Records what was installed and compiled in a prefix: a file of three lines that avoids repeated
//! work and tells the bench which version it compares with.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

const FILE: &str = "stamp";

/// One line each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Stamp {
    /// The requested version.
    pub(super) wanted: String,
    /// What was installed: names and versions.
    pub(super) library: String,
    /// The fingerprint of the sources of the program; empty until it is compiled.
    pub(super) program: String,
}

impl Stamp {
    /// The stamp of a prefix, or an empty one if there is none.
    pub(super) fn read(prefix: &Path) -> Stamp {
        Stamp::parse(&fs::read_to_string(prefix.join(FILE)).unwrap_or_default())
    }

    /// Writes the stamp. This comes last, after everything that it describes.
    pub(super) fn write(&self, prefix: &Path) -> Result<()> {
        fs::create_dir_all(prefix)?;
        let file = prefix.join(FILE);
        fs::write(&file, self.text()).with_context(|| format!("writing {}", file.display()))
    }

    fn text(&self) -> String {
        format!("wanted {}\nlibrary {}\nprogram {}\n", self.wanted, self.library, self.program)
    }

    fn parse(text: &str) -> Stamp {
        let of = |key: &str| {
            let mut values = text.lines().filter_map(|line| line.split_once(' '));
            values.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        Stamp { wanted: of("wanted"), library: of("library"), program: of("program") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_says_what_was_written() {
        let stamp = Stamp {
            wanted: "mpich==5.*".to_owned(),
            library: "mpich 5.0.2".to_owned(),
            program: "00ff".to_owned(),
        };
        assert_eq!(Stamp::parse(&stamp.text()), stamp);
        assert_eq!(Stamp::parse("damaged"), Stamp::default());
    }
}
