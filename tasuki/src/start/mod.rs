//! Starts a program as one rank or several: as a process of a job, as threads, or in the simulator.

mod helper_thread;
mod local;
mod process;
mod processes;
mod rank;
mod rank_options;
mod simulated;

pub(crate) use helper_thread::Helper;
pub use local::{local, local_with};
pub(crate) use process::run_from_environment;
pub use process::{any_error, main, main_with};
pub use processes::{Processes, processes};
pub(crate) use rank_options::RankOptions;
pub use simulated::{Simulated, sim, sim_with};
