//! The key of a figure: what it measures, and of which library. Together with the number of ranks, a key identifies a
//! row of the output.

use super::library::Library;
use crate::case::{Case, Limit, named};
use crate::cases::State;
use serde::{Deserialize, Serialize};

/// What was measured, and of which library.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) case: &'static Case,
    pub(crate) library: Library,
    /// Which figure of the case; empty if the case has only one.
    pub(crate) variant: String,
    /// How the ranks were started, and which calls were used. For a limit: which buffers.
    pub(crate) setting: String,
    /// Bytes of a block or value; 0 if the case moves no data.
    pub(crate) bytes: u64,
}

impl Key {
    /// Returns the key of a Tasuki figure.
    pub(crate) fn ours(case: &'static Case, variant: &str, bytes: u64) -> Key {
        Key { case, library: Library::Tasuki, variant: variant.into(), setting: String::new(), bytes }
    }

    /// Returns the key of a limit; the state is that of the blocks.
    pub(crate) fn limit(limit: Limit, state: State, bytes: u64) -> Key {
        let (variant, setting, bytes) = match limit {
            Limit::HandOver => ("hand_over".into(), "", 8),
            Limit::RemoteLoad => ("remote_load".into(), "", 8),
            Limit::RemoteAdd => ("remote_add".into(), "", 8),
            Limit::Memcpy => (format!("memcpy_{}", state.temperature()), state.buffers(), bytes),
            Limit::Pair => (format!("pair_{}", state.temperature()), state.buffers(), bytes),
        };
        Key { case: named("limit"), library: Library::Limit, variant, setting: setting.into(), bytes }
    }

    /// Returns the key of the limit that a figure is divided by, if there is one.
    pub(crate) fn limited_by(&self) -> Option<Key> {
        Some(Key::limit(self.case.limit?, State::named(&self.variant), self.bytes))
    }

    /// Returns true if the other key is for the same figure of any library in any setting.
    pub(crate) fn is_alike(&self, other: &Key) -> bool {
        (self.case, &self.variant, self.bytes) == (other.case, &other.variant, other.bytes)
    }
}
