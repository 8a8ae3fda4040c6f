//! `tasuki bench --tune`: measures what is faster on this machine, and keeps the result in a file for later jobs.
//!
//! ```text
//! command       the option: measures, compares, writes the file
//! plan_times    times of plans with forced algorithms
//! cost_fit      the costs that follow from those times
//! file          the user's file of tuned values
//! ```

pub(crate) mod command;
pub(crate) mod cost_fit;
pub mod file;
pub(crate) mod plan_times;
