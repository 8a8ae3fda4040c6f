//! Words that everything else is written in: ranks, errors, atomics, messages to the person who runs it.

pub mod error;
pub mod hint;
pub mod log;
mod panic;
mod planted;
mod rank;
mod roll;
pub mod sync;

pub use error::{Blame, Cause, Error, Result};
pub use panic::panic_message;
pub use planted::{planted, relaxed_if_planted};
pub use rank::Rank;
pub use roll::{Numbered, Roll};
