//! What a thread that waits long has looked at: whether what it waits for can come at all.
//!
//! A model knows more of a call than its waits say: that other ranks are in another call, say, which only a look at all
//! of them tells. It registers a [`Watch`], and a thread that is in such a call names it. A wait that has lasted a while
//! asks it now and then, and ends with its complaint.

use super::machine::Machine;
use crate::base::Cause;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

/// Something to be asked while a call waits.
pub trait Watch: Send + Sync + Debug {
    /// Why the call cannot end well.
    fn complaint(&self) -> Option<Cause>;
}

/// The watches of a rank: numbers stand for them, from 1 on.
#[derive(Debug, Default)]
pub(super) struct Watches(RwLock<Vec<Arc<dyn Watch>>>);

thread_local! {
    /// Which the thread has named; 0: none.
    static NAMED: Cell<u32> = const { Cell::new(0) };
}

/// Waits of this thread's ask that one from now on; 0: none.
#[inline]
pub fn name_watch(number: u32) {
    NAMED.set(number);
}

impl Machine {
    /// Registers a watch, as long as the machine lives: its number.
    pub fn add_watch(&self, watch: Arc<dyn Watch>) -> u32 {
        let mut all = self.watches().0.write().unwrap_or_else(PoisonError::into_inner);
        all.push(watch);
        all.len() as u32
    }

    /// What the watch complains about that this thread has named.
    pub(super) fn complaint(&self) -> Option<Cause> {
        let number = NAMED.get().checked_sub(1)?;
        let all = self.watches().0.read().unwrap_or_else(PoisonError::into_inner);
        let watch = all.get(number as usize).cloned();
        drop(all);
        watch?.complaint()
    }
}
