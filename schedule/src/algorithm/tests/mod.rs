//! Tests of all algorithms: they are proven, take the work that textbooks state, and also work when driven by one rank.

mod alternating_roots;
mod proofs;
mod single_driver;
mod textbook;
