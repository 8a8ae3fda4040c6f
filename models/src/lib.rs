//! What programs are written with: patterns of communication over the one-sided machine.
//!
//! Nothing here is unsafe, knows a fabric, or assumes that a peer's memory can be loaded and stored.
#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

pub mod collective;
pub mod message;
pub mod schedule;
