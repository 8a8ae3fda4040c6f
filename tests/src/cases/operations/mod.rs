//! Cases of one-sided operations, their order, and signals.

pub mod accumulations;
pub mod atomic_contention;
pub mod atomics;
pub mod call_limits;
pub mod copies;
pub mod failed_operations;
pub mod many_operations;
pub mod operation_order;
pub mod order_handles;
pub mod owner_atomics;
pub mod request_kinds;
pub mod signals;
pub mod transfer_requests;
