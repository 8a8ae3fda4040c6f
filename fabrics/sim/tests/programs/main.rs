//! Programs of the simulator over the real engine: properties that hold on every seed, and runs with a broken promise
//! that must fail.
#![cfg(test)]

mod determinism;
mod fabric_collectives;
mod faults;
mod harness;
mod killed_ranks;
mod operations;
mod order;
mod waiting;
