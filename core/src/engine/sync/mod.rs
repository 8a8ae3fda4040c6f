//! What threads of a rank, or ranks, share: locks that are only tried, an owner-biased lock, a queue with a count that is
//! read without its lock, a flag that lies beside its data, and user memory that can be taken back.

pub(super) mod inline_flag;
pub mod owner_lock;
pub(super) mod revocable_buffer;
pub(super) mod try_lock;
pub(super) mod work_queue;
