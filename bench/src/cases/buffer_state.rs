//! Where the bytes of a bandwidth case are when they are copied.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Hot or cold, reused or fresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// Rotating through more buffers than caches hold; else one pair of buffers.
    pub(crate) cold: bool,
    /// The sender has just written every line, and the receiver reads every line; else both leave them alone.
    pub(crate) fresh: bool,
}

impl State {
    /// All four.
    pub(crate) fn all() -> [State; 4] {
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(cold, fresh)| State { cold, fresh })
    }

    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<State> {
        State::all().into_iter().find(|state| state.to_string() == name)
    }

    /// `hot` or `cold`.
    pub(crate) fn temperature(self) -> &'static str {
        if self.cold { "cold" } else { "hot" }
    }

    /// `reused` or `fresh`.
    pub(crate) fn buffers(self) -> &'static str {
        if self.fresh { "fresh" } else { "reused" }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.temperature(), self.buffers())
    }
}
