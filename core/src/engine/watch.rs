//! What a thread that waits long has looked at: whether what it waits for can come at all.
//!
//! A model knows more of a call than its waits say: that other ranks are in another call, say, which only a look at all
//! of them tells. It registers a [`Watch`], and a thread that is in such a call names it. A wait that has lasted a
//! while asks it now and then, and ends with its complaint.

use super::machine::Machine;
use crate::base::Cause;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

/// Something to be asked while a call waits.
pub trait Watch: Send + Sync + Debug {
    /// Why the call cannot end well.
    fn complaint(&self) -> Option<Cause>;

    /// Whether it has something to tell others when a call waits long, who may be asleep until they hear of it: it is
    /// asked as soon as the wait is a long one, though nothing happens. The same at any time.
    fn tells(&self) -> bool {
        false
    }
}

/// The part of a watch's number that says that it tells others.
const TELLS: u32 = 1 << 31;

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
        let tells = if watch.tells() { TELLS } else { 0 };
        all.push(watch);
        all.len() as u32 | tells
    }

    /// Whether the watch that this thread has named tells others.
    #[inline]
    pub(super) fn tells_of_waits(&self) -> bool {
        NAMED.get() & TELLS != 0
    }

    /// What the watch complains about that this thread has named.
    pub(super) fn complaint(&self) -> Option<Cause> {
        let number = (NAMED.get() & !TELLS).checked_sub(1)?;
        let all = self.watches().0.read().unwrap_or_else(PoisonError::into_inner);
        let watch = all.get(number as usize).cloned();
        drop(all);
        watch?.complaint()
    }
}
