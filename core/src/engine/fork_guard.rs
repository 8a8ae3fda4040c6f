//! Detects whether this process is still the rank that joined.
#![allow(unsafe_code)]
//! Unsafe: one atomic in a private page of our own.
//!
//! The word lies in a page that the kernel wipes in a forked child. The child's copy reads 0, so each call detects at
//! the cost of one load that this process is not the rank.

use crate::base::sync::{AtomicU32, Ordering};
use crate::base::{Cause, Result};
use crate::os::mapping::Mapping;

const FORKED: u32 = 0;
const ALIVE: u32 = 1;
const OVER: u32 = 2;

/// The state of a rank in this process: alive, over, or a fork.
#[derive(Debug)]
pub struct ForkGuard(Mapping);

impl ForkGuard {
    /// Creates the guard of a rank that has just joined.
    pub fn new() -> Result<ForkGuard> {
        let life = ForkGuard(Mapping::wiped_on_fork(4096)?);
        life.word().store(ALIVE, Ordering::Relaxed);
        Ok(life)
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped as long as the structure lives, and holds zeros or our word.
        unsafe { self.0.start().cast().as_ref() }
    }

    /// Returns true if calls are possible. One load.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.word().load(Ordering::Relaxed) == ALIVE
    }

    /// Returns true if this process is a fork of the rank.
    pub fn is_forked(&self) -> bool {
        self.word().load(Ordering::Relaxed) == FORKED
    }

    /// Ends the rank: no calls are possible from now on. Returns false if it had ended already or this is a fork.
    pub fn end(&self) -> bool {
        self.word().compare_exchange(ALIVE, OVER, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns why calls are not possible.
    #[cold]
    pub fn why_not(&self) -> Cause {
        match self.word().load(Ordering::Relaxed) {
            FORKED => Cause::Forked,
            _ => Cause::JobOver,
        }
    }
}
