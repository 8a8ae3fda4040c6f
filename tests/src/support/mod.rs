//! What several cases and runners need.

pub mod blocked_operation;
pub mod exchange;
pub mod expected_error;
pub mod leak;
pub mod pattern;
pub mod pmi_manager;
pub mod random;
pub mod wait_until;
pub mod watchdog;
