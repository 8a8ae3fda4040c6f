//! How every case is measured.
//!
//! ```text
//! run                  the bench: measures groups of figures in turn, prints each row when it is complete
//! schedule_of_run      which groups there are, and which jobs measure them
//! rank_server          the ranks: set a group up, repeat a figure, measure the hand-over, as they are told
//! program              a program that the bench started: its replies, its end
//! process_role         what a started process is to do: it is this program with a hidden subcommand
//! role_player          does it
//! repetition, effort   which repetitions count, and how long they are
//! process_observation  processor time and end of the processes of a job
//! progress             the line that says how much of the run is done
//! ```

pub(crate) mod effort;
pub(crate) mod process_observation;
pub(crate) mod process_role;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod rank_server;
pub(crate) mod repetition;
pub(crate) mod role_player;
pub(crate) mod run;
pub(crate) mod schedule_of_run;
