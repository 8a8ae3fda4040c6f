//! Atomics and locks, real or loom's. Every structure that threads or processes share takes them from here, so that the
//! same code runs in production and in the models, the files `loom_*.rs` of the crates' `tests`.

#[cfg(not(loom))]
pub use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        compiler_fence, fence,
    },
};

#[cfg(loom)]
pub use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    },
};

/// Real ones in models, too: for statics, which loom's cannot be, and for bytes that were not made as atomics.
pub use std::sync::atomic::{AtomicU8 as RealAtomicU8, AtomicU64 as RealAtomicU64};

/// A compiler fence does nothing under loom: it does not order processors.
#[cfg(loom)]
pub fn compiler_fence(_: Ordering) {}
