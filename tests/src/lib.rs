//! The conformance suite: cases that check what Tasuki promises, in every way a job can be started.
//!
//! A [`Case`] is one function, `fn(&Job) -> Result<()>`, that asserts. One table ([`each_case`])
//! lists all cases. The runners in `tests/` make tests of each case: with ranks as threads, as
//! threads with test switches set, as processes, and as simulated ranks. If a fabric cannot keep
//! every assertion of a case, the case asks which fabric it runs on.
//!
//! The suite also has [failing jobs](failing_jobs), which must end with a certain error on every
//! rank. A [`Watchdog`](watchdog::Watchdog) ends each test that hangs. No test asserts that
//! something is fast. README.md lists the families of cases and says where a new case goes.

pub mod case;
pub mod case_runner;
pub mod cases;
pub mod failing_jobs;
pub mod order_mutants;
pub mod processes;
pub mod simulated_machines;
pub mod support;
pub mod table;

pub use case::{Body, Case, Ways};
use support::{blocked_operation, exchange, expected_error, leak, pattern, random, wait_until};
pub use support::{pmi_manager, watchdog};
