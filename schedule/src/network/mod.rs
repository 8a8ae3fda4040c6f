//! A network model in closed form: the links between two nodes, the cost of a transfer, and contention on links.
//!
//! It uses no threads, no clock and no random numbers, so it is deterministic. It does not depend on what the ranks do
//! together.
//!
//! ```text
//! time          virtual time in whole femtoseconds
//! parameters    LogGP: the cost of a hop, a byte, a step and a call; engines of a node
//! topology      topologies by name; grid, fat_tree, dragonfly: their links and routes
//! model         a network: a topology with its parameters and a number of ranks on each node
//! links         links in use: until when, and how much each carried
//! ports         receiving sides of engines: transfers that queue at a receiver
//! ```

mod dragonfly;
mod fat_tree;
mod grid;
mod links;
mod model;
mod parameters;
mod ports;
mod time;
mod topology;

pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use grid::{DIMENSIONS_MAX, Grid};
pub use links::{Links, Passage, Used};
pub use model::Network;
pub use parameters::Parameters;
pub use ports::Ports;
pub use time::Time;
pub use topology::{Topology, WrongTopology};
