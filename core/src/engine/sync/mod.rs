//! State shared by threads of a rank, or by ranks: a lock that is only tried, an owner-biased lock,
//! a queue whose length is read without its lock, a flag beside its data, words that are
//! read together, user memory that can be revoked, and blocks of it.

pub(super) mod inline_flag;
pub mod owner_lock;
pub(super) mod revocable_buffer;
pub(super) mod strided_view;
pub(super) mod try_lock;
pub(super) mod versioned_words;
pub(super) mod work_queue;
