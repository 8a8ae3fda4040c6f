//! What the ranks of one node share besides memory: a board that says who is there, sleeps, waits or died.

pub mod board;
pub mod bulk;
pub mod park;
pub mod room;
pub mod slot;
