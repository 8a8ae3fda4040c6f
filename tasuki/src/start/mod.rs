//! How a program becomes one rank, or several.

mod local;
mod process;
mod rank;
mod simulated;

pub use local::local;
pub use process::main;
pub use simulated::{Simulated, sim};
