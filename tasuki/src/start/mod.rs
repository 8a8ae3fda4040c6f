//! How a program becomes one rank, or several.

mod helper;
mod local;
mod process;
mod rank;
mod rank_options;
mod simulated;

pub(crate) use helper::Helper;
pub use local::{local, local_with};
pub use process::{main, main_with};
pub(crate) use rank_options::RankOptions;
pub use simulated::{Simulated, sim, sim_with};
