//! What a figure is of, and how ranks tell the bench about it.

use crate::case::Case;
use crate::cases::buffer_state::State;
use crate::harness::repetition::Series;
use crate::result::library::Library;
use serde::{Deserialize, Serialize};

/// What was measured, and who: together with the number of ranks it is what makes a row of the output unique.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The case.
    pub(crate) case: Case,
    /// Who was measured.
    pub(crate) library: Library,
    /// Which figure of it; empty if there is one only.
    pub(crate) variant: String,
    /// How it was set up and by which calls; of a limit, which buffers.
    pub(crate) setting: String,
    /// Bytes of a block or value; 0 where nothing is moved.
    pub(crate) bytes: u64,
}

impl Key {
    /// A figure of ours. Where its ranks were bound only the bench knows.
    pub(crate) fn ours(case: Case, variant: &str, bytes: u64) -> Key {
        let library = Library::Tasuki;
        Key { case, library, variant: variant.into(), setting: String::new(), bytes }
    }

    /// The same by certain calls.
    pub(crate) fn by(self, way: &str) -> Key {
        Key { setting: way.into(), ..self }
    }

    /// The limit of that name for one word.
    pub(crate) fn limit(variant: &str) -> Key {
        let (case, library) = (Case::Limit, Library::Limit);
        Key { case, library, variant: variant.into(), setting: String::new(), bytes: 8 }
    }

    /// The copy limit, by one processor (`memcpy`) or by both (`pair`).
    pub(crate) fn copy_limit(by: &str, state: State, bytes: u64) -> Key {
        let variant = format!("{by}_{}", state.temperature());
        Key { variant, setting: state.buffers().into(), bytes, ..Key::limit("") }
    }

    /// The limit that a figure is divided by, where that has a meaning.
    pub(crate) fn bounded_by(&self) -> Option<Key> {
        match self.case {
            Case::PutNear | Case::Put | Case::Message | Case::Posted => Some(Key::limit("hand_over")),
            Case::Post | Case::Chain | Case::Handler | Case::Fuzzy => Some(Key::limit("hand_over")),
            Case::Get => Some(Key::limit("remote_load")),
            Case::Atomic => Some(Key::limit("remote_add")),
            Case::BandwidthPut | Case::BandwidthJob | Case::BandwidthOwn | Case::BandwidthStream => {
                Some(Key::copy_limit("memcpy", State::named(&self.variant)?, self.bytes))
            }
            Case::SharedCopy => Some(Key::copy_limit("pair", State::named(&self.variant)?, self.bytes)),
            _ => None,
        }
    }
}

/// A figure that other libraries can have, too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    /// The case,
    pub(crate) case: Case,
    /// and which figure of it.
    pub(crate) variant: String,
    /// Bytes of a message or block.
    pub(crate) bytes: u64,
    /// Where they are; has a meaning for blocks.
    pub(crate) state: State,
}

impl Point {
    /// A figure of words.
    pub(crate) fn of_word(case: Case, variant: &str) -> Point {
        let state = State { cold: false, fresh: false };
        Point { case, variant: variant.into(), bytes: size_of::<u64>() as u64, state }
    }

    /// A figure of blocks that collectives move.
    pub(crate) fn of_collective(case: Case, variant: &str, bytes: u64) -> Point {
        Point { bytes, ..Point::of_word(case, variant) }
    }

    /// A figure of blocks.
    pub(crate) fn of_blocks(case: Case, bytes: u64, state: State) -> Point {
        Point { case, variant: state.to_string(), bytes, state }
    }

    /// What it is as ours.
    pub(crate) fn ours(&self) -> Key {
        Key::ours(self.case, &self.variant, self.bytes)
    }
}

/// What the lead of a job asks the bench, on its standard output; an [`Answer`] comes on its standard input.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// Who else has these figures, ready to be measured?
    Who(Vec<Point>),
    /// What does this one of them measure now?
    Measure(usize),
}

/// What the bench answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// All who are ready.
    Ready(Vec<Key>),
    /// A figure; none of a library that has failed.
    Figure(Option<f64>),
}

/// What a rank says: one line of its standard output each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
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
    /// Something that the bench is to answer.
    Ask(Question),
    /// Something that a case for several ranks tells, by name.
    Report(String, u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_way() {
        let (group, key, series) = ("words".into(), Key::ours(Case::PutNear, "", 8), Series::default());
        let event = Event::Figure { group, key, series };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        assert!(!line.contains('\n'));
    }

    #[test]
    fn bandwidth_is_bounded_by_the_copy_in_its_own_state() {
        let limit = Key::ours(Case::BandwidthPut, "cold_fresh", 64).bounded_by().unwrap();
        assert_eq!(
            (limit.variant.as_str(), limit.setting.as_str(), limit.bytes),
            ("memcpy_cold", "fresh", 64)
        );
        let both = Key::ours(Case::SharedCopy, "hot_reused", 64).bounded_by().unwrap();
        assert_eq!((both.variant.as_str(), both.setting.as_str()), ("pair_hot", "reused"));
        assert_eq!(Key::limit("hand_over").bounded_by(), None);
    }
}
