//! What a figure is of: together with the number of ranks it makes a row of the output unique.

use crate::case::{Case, Limit, named};
use crate::cases::State;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Library {
    #[value(skip)]
    Tasuki,
    Mpich,
    Openmpi,
    Intel,
    Ucx,
    /// Bare loops.
    #[value(skip)]
    Limit,
}

impl Library {
    /// The other libraries.
    pub(crate) const PEERS: [Library; 4] = [Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx];

    /// As it is typed and shown, and as its folder is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Library::Tasuki => "tasuki",
            Library::Mpich => "mpich",
            Library::Openmpi => "openmpi",
            Library::Intel => "intel",
            Library::Ucx => "ucx",
            Library::Limit => "limit",
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was measured, and who.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) case: &'static Case,
    pub(crate) library: Library,
    /// Which figure of the case; empty if there is one only.
    pub(crate) variant: String,
    /// How it was set up and by which calls; of a limit, which buffers.
    pub(crate) setting: String,
    /// Bytes of a block or value; 0 where nothing is moved.
    pub(crate) bytes: u64,
}

impl Key {
    /// A figure of ours.
    pub(crate) fn ours(case: &'static Case, variant: &str, bytes: u64) -> Key {
        Key { case, library: Library::Tasuki, variant: variant.into(), setting: String::new(), bytes }
    }

    /// A limit, of blocks in that state.
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

    /// The limit that a figure is divided by, where that has a meaning.
    pub(crate) fn limited_by(&self) -> Option<Key> {
        Some(Key::limit(self.case.limit?, State::named(&self.variant), self.bytes))
    }

    /// The same figure of somebody else, or of another setting.
    pub(crate) fn is_alike(&self, other: &Key) -> bool {
        (self.case, &self.variant, self.bytes) == (other.case, &other.variant, other.bytes)
    }
}
