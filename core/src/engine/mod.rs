//! What moves operations on: ordered operations, waiting and sleeping.

mod action;
pub mod baton;
mod calls;
mod commands;
mod failures;
mod helping;
mod host;
mod launch;
mod life;
mod loan;
mod machine;
mod mapped;
#[cfg(not(loom))]
mod node_host;
mod operations;
mod operators;
mod order;
mod progress;
mod seal;
mod shelf;
mod table;
pub mod trace;
mod transfer;
mod turn;
mod waiting;
pub mod walk;
mod watch;

pub use crate::node::{board, park};
pub use action::{Action, Local};
#[cfg(loom)]
pub use calls::{AnswerLine, AnswerLines};
pub use calls::{Arrived, Asked, Entry, Handler, Table, Takes};
pub use commands::{Milestone, OwnQueue, Program, QueueName, Standing};
pub use helping::{Help, HelperEnd};
pub use host::{Host, Pause};
pub use launch::Launched;
pub use life::Life;
pub use loan::{Loan, Registration, Use, View};
pub use machine::{Agent, Machine};
pub use mapped::Caching;
#[cfg(not(loom))]
pub use node_host::NodeHost;
pub use operations::{FAILURES_MAX, OPERATIONS_MAX};
pub use order::{After, Handle};
pub use seal::Seal;
pub use shelf::Shelf;
pub use transfer::Issued;
pub use turn::Turn;
pub use waiting::{Condition, Event};
pub use watch::{Watch, name_watch};
