//! How every case is measured.
//!
//! ```text
//! run                  the bench: groups of figures in turn, rows as they come
//! schedule_of_run      which groups there are, and which jobs measure them
//! rank_server          the ranks: set a group up, repeat a figure, measure the hand-over, as they are told
//! program              a program that was started: its replies, its end
//! process_role         what a started process does: this program with a hidden subcommand
//! repetition, effort   which repetitions count, and how long they are
//! process_observation, progress
//! ```

pub(crate) mod effort;
pub(crate) mod process_observation;
pub(crate) mod process_role;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod rank_server;
pub(crate) mod repetition;
pub(crate) mod run;
pub(crate) mod schedule_of_run;
