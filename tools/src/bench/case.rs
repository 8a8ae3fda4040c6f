//! The cases, as they are typed and listed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What can be measured. The text of each is what `--list` shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(super) enum Case {
    /// What bare loops reach: hand-over, remote load and add, memcpy by one and by two
    Limit,
    /// 8 bytes and their signal in one cache line, one way
    PutNear,
    /// 8 bytes, the signal on another page, one way
    Put,
    /// Get 8 bytes that their owner wrote last
    Get,
    /// Fetch-add on a word that its owner wrote last
    Atomic,
    /// Put with signal of large blocks, one in flight
    BandwidthPut,
    /// Start 64 ranks that meet and leave, exec to exit (--ranks)
    Startup,
    /// Processor time of a job of 4 that waits for 10 s, launcher included (--ranks)
    Idle,
    /// From SIGKILL of a rank, or of the launcher, until the last process is gone (--ranks)
    Death,
    /// Bytes that a rank takes, against the documented formula (--ranks)
    Memory,
}

impl Case {
    /// All, in the order in which they are measured and shown.
    pub(super) fn all() -> &'static [Case] {
        Case::value_variants()
    }

    /// How many ranks it has, if the user says nothing. `None` where it has a meaning for two only.
    pub(super) fn ranks(self) -> Option<usize> {
        match self {
            Case::Startup => Some(64),
            Case::Idle | Case::Death | Case::Memory => Some(4),
            _ => None,
        }
    }

    /// Whether two ranks, each on a processor of its own, play it against each other and the limits.
    pub(super) fn is_for_two(self) -> bool {
        self.ranks().is_none()
    }

    /// Whether `--sizes` has a meaning for it.
    pub(super) fn has_sizes(self) -> bool {
        matches!(self, Case::Limit | Case::BandwidthPut)
    }

    /// What `--list` says.
    pub(super) fn text(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_rows() {
        for case in Case::all() {
            assert_eq!(serde_json::to_value(case).unwrap(), case.to_string());
            // With a name of up to 14 letters before it, a line of the list has 100.
            assert!((10..=85).contains(&case.text().len()), "{case}");
        }
        assert_eq!(Case::BandwidthPut.to_string(), "bandwidth_put");
    }
}
