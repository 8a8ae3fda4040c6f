//! Networks as arithmetic: which links lie between two nodes, what a transfer costs, and who waits for whom on a link.
//!
//! No threads, no clock, no randomness: the same questions get the same answers. Nothing here knows what ranks do
//! together; that is for who asks.
//!
//! ```text
//! time          virtual time, whole femtoseconds
//! parameters    LogGP: what a hop, a byte, a command and a call cost; engines of a node
//! topology      the shapes by name; grid, fat_tree, dragonfly: where their links are
//! network       a topology with its parameters and so many ranks on each node
//! links         links in use: until when, and how much went over each
//! ports         receiving sides of engines: who waits for whom at a receiver
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
