//! Programs in the simulator, over the real engine: what holds on every seed, and twins that must fail.
#![cfg(test)]

mod deaths;
mod faults;
mod groups;
mod operations;
mod order;
mod ranks;
mod repeat;
mod waiting;
