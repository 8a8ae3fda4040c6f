//! Programs in the simulator, over the real engine: what holds on every seed, and twins that must fail.
#![cfg(test)]

mod determinism;
mod fabric_collectives;
mod faults;
mod harness;
mod killed_ranks;
mod operations;
mod order;
mod waiting;
