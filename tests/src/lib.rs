//! The conformance suite: what Tasuki promises, as cases that run in every way a job can be started.
//!
//! A [`Case`] is one body, `fn(&Job) -> Result<()>`, which asserts; all of them stand in one table ([`each_case`]).
//! The runners below `tests/` make a test of each: ranks as threads, the same with test switches thrown, ranks as
//! processes, simulated ranks. A body that a fabric cannot hold to every assertion asks which fabric it runs on.
//!
//! Beside them stand [failing jobs](failing_jobs), which must end in a certain error on every rank. Each test has a
//! [`Watchdog`](watchdog::Watchdog); none asserts that something is quick. README.md says how each case was seen to
//! fail.

pub mod case;
pub mod case_runner;
pub mod cases;
pub mod failing_jobs;
pub mod order_mutants;
pub mod pmi_manager;
pub mod processes;
pub mod simulated_machines;
pub mod table;
pub mod watchdog;

mod blocked_operation;
mod exchange;
mod expected_error;
mod leak;
mod pattern;
mod random;
mod wait_until;

pub use case::{Body, Case, Ways};
