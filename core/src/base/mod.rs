//! Basic types that all other folders use: ranks, errors, atomics and locks, the log.

pub mod error;
pub mod error_hint;
mod id_map;
pub mod log;
mod panic_message;
mod planted_fault;
mod rank;
pub mod sync;
mod type_hasher;
mod value_kind;

pub use error::{Cause, Error, ErrorKind, ProgramError, Result};
pub use id_map::{IdMap, Numbered};
pub use panic_message::panic_message;
pub use planted_fault::{planted, relaxed_if_planted};
pub use rank::Rank;
pub use type_hasher::TypeHasher;
pub use value_kind::{KindClass, ValueKind};
