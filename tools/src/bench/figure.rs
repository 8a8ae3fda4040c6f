//! What a figure is of, and how ranks tell the bench about it.

use super::case::Case;
use super::repetition::Series;
use super::state::State;
use serde::{Deserialize, Serialize};

/// What was measured. Together with the library it is what makes a row of the output unique.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Key {
    /// The case.
    pub(super) case: Case,
    /// Which figure of it; empty if there is one only.
    pub(super) variant: String,
    /// How it was set up; of a limit, which buffers.
    pub(super) setting: String,
    /// Bytes of a block or value; 0 where nothing is moved.
    pub(super) bytes: u64,
}

impl Key {
    /// A figure of ours between two ranks. Where they were bound only the bench knows.
    pub(super) fn of_two(case: Case, variant: &str, bytes: u64) -> Key {
        Key { case, variant: variant.into(), setting: String::new(), bytes }
    }

    /// The limit of that name for one word.
    pub(super) fn limit(variant: &str) -> Key {
        Key { case: Case::Limit, variant: variant.into(), setting: String::new(), bytes: 8 }
    }

    /// The copy limit, by one processor (`memcpy`) or by both (`pair`).
    pub(super) fn copy_limit(by: &str, state: State, bytes: u64) -> Key {
        let variant = format!("{by}_{}", state.temperature());
        Key { case: Case::Limit, variant, setting: state.buffers().into(), bytes }
    }

    /// The limit that a figure is divided by, where that has a meaning.
    pub(super) fn bounded_by(&self) -> Option<Key> {
        match self.case {
            Case::PutNear | Case::Put => Some(Key::limit("hand_over")),
            Case::Get => Some(Key::limit("remote_load")),
            Case::Atomic => Some(Key::limit("remote_add")),
            Case::BandwidthPut => {
                let state = State::all().into_iter().find(|state| state.to_string() == self.variant)?;
                Some(Key::copy_limit("memcpy", state, self.bytes))
            }
            _ => None,
        }
    }
}

/// What a rank says: one line of its standard output each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// How the hand-over is done on this machine.
    HandOver(String),
    /// What is being measured, and how much of the whole has been.
    Progress {
        /// For people.
        what: String,
        /// 0 to 1.
        share: f64,
    },
    /// All repetitions of a figure.
    Figure {
        /// What it was taken in turn with, and may be compared with.
        group: String,
        /// What it is of.
        key: Key,
        /// The repetitions.
        series: Series,
    },
    /// Something that a case for several ranks tells, by name.
    Report(String, u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_way() {
        let (group, key, series) = ("words".into(), Key::of_two(Case::PutNear, "", 8), Series::default());
        let event = Event::Figure { group, key, series };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        assert!(!line.contains('\n'));
    }

    #[test]
    fn bandwidth_is_bounded_by_the_copy_in_its_own_state() {
        let limit = Key::of_two(Case::BandwidthPut, "cold_fresh", 64).bounded_by().unwrap();
        assert_eq!(
            (limit.variant.as_str(), limit.setting.as_str(), limit.bytes),
            ("memcpy_cold", "fresh", 64)
        );
        assert_eq!(Key::limit("hand_over").bounded_by(), None);
    }
}
