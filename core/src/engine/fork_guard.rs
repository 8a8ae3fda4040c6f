//! Whether this process still is the rank that joined.
#![allow(unsafe_code)]
//! Unsafe: one atomic in a private page of our own.
//!
//! The word lies in a page that the kernel wipes in a forked child: the child's copy reads 0, so each call finds
//! out at the cost of one load that the child is not the rank.

use crate::base::{Cause, Result};
use crate::os::mapping::Mapping;
use std::sync::atomic::{AtomicU32, Ordering};

const FORKED: u32 = 0;
const ALIVE: u32 = 1;
const OVER: u32 = 2;

/// The life of a rank in this process.
#[derive(Debug)]
pub struct ForkGuard(Mapping);

impl ForkGuard {
    /// A rank that has just joined.
    pub fn new() -> Result<ForkGuard> {
        let life = ForkGuard(Mapping::wiped_on_fork(4096)?);
        life.word().store(ALIVE, Ordering::Relaxed);
        Ok(life)
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped as long as the structure lives, and zeroed or ours.
        unsafe { self.0.start().cast().as_ref() }
    }

    /// Whether calls are possible. One load.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.word().load(Ordering::Relaxed) == ALIVE
    }

    /// Whether this process is a fork of the rank.
    pub fn is_forked(&self) -> bool {
        self.word().load(Ordering::Relaxed) == FORKED
    }

    /// The rank has left: no calls from now on. False if it had already, or is a fork.
    pub fn end(&self) -> bool {
        self.word().compare_exchange(ALIVE, OVER, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Why calls are not possible.
    #[cold]
    pub fn why_not(&self) -> Cause {
        match self.word().load(Ordering::Relaxed) {
            FORKED => Cause::Forked,
            _ => Cause::JobOver,
        }
    }
}
