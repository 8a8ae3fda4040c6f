//! What moves operations on: ordered operations, waiting and sleeping.

mod action;
mod failures;
mod host;
mod life;
mod machine;
#[cfg(not(loom))]
mod node_host;
mod operations;
mod order;
mod progress;
mod table;
mod transfer;
mod waiting;

pub use crate::node::{board, park};
pub use action::{Action, Local};
pub use host::{Host, Pause};
pub use life::Life;
pub use machine::Machine;
#[cfg(not(loom))]
pub use node_host::NodeHost;
pub use operations::{FAILURES_MAX, OPERATIONS_MAX};
pub use order::{After, Handle};
pub use transfer::Issued;
pub use waiting::Condition;
