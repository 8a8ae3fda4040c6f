//! How a program becomes one rank, or several.

mod helper;
mod local;
mod process;
mod rank;
mod simulated;

pub(crate) use helper::Helper;
pub use local::local;
pub use process::main;
pub use simulated::{Simulated, sim};
