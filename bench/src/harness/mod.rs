//! How figures are taken.
//!
//! ```text
//! interleaved_jobs     figures of ranks that take turns, from jobs that the bench starts
//! whole_jobs           figures of whole jobs
//! process_role         what a started process does: this program with a hidden subcommand
//! rank_pair, rank_group    the programs of two ranks and of several that take turns
//! session, interleave      how those ranks take several figures in turn
//! measurement_plan     which cases they measure, with how much effort
//! control_channel      lines of JSON between the first rank and the bench
//! measure, repetition  one figure of several ranks; which repetitions count
//! process_observation, stopwatch, progress_bar
//! ```

pub(crate) mod control_channel;
pub(crate) mod interleave;
pub(crate) mod interleaved_jobs;
pub(crate) mod measure;
pub(crate) mod measurement_plan;
pub(crate) mod process_observation;
pub(crate) mod process_role;
pub(crate) mod progress_bar;
pub(crate) mod rank_group;
pub(crate) mod rank_pair;
pub(crate) mod repetition;
pub(crate) mod session;
pub(crate) mod stopwatch;
pub(crate) mod whole_jobs;
