//! Waiting for flags, and flags that are set when a barrier or all transfers are done.
//!
//! The signal of the flags is raised after each store to a flag of this rank. A waiter reads the signal, then the flag, and
//! then waits until the signal exceeds what it has read, so it misses no store.
//!
//! Unsafe: the functions are symbols of C; flags are words of C's memory.
#![allow(unsafe_code)]

use super::state::{State, give, state};
use crate::status::Failure;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use tasuki::Request;
use tasuki::bindings::check_flag_words;

/// A flag, as `nicam.h` declares it.
#[repr(C)]
pub struct NicamFlag {
    value: u64,
    reserved: [u64; 3],
}

/// A flag of this rank.
#[derive(Clone, Copy)]
struct OwnFlag(*mut NicamFlag);

// SAFETY: its words are accessed as atomic ones only.
unsafe impl Send for OwnFlag {}

impl OwnFlag {
    fn new(at: *const NicamFlag) -> Result<OwnFlag, Failure> {
        if at.is_null() || !at.is_aligned() {
            return Err(Failure::misuse(format!("the flag at {at:p} is null, or not aligned to 8 bytes")));
        }
        Ok(OwnFlag(at.cast_mut()))
    }

    fn words(&self) -> [&AtomicU64; 4] {
        let first = self.0.cast::<u64>();
        // SAFETY: the flag has four aligned words, and its program keeps it until it is set.
        [0, 1, 2, 3].map(|word| unsafe { AtomicU64::from_ptr(first.add(word)) })
    }

    fn value(&self) -> u64 {
        self.words()[0].load(Ordering::Acquire)
    }

    fn set(&self, value: u64) {
        self.words()[1].store(0, Ordering::Relaxed);
        self.words()[0].store(value, Ordering::Release);
    }

    /// Returns the error of the copy by key, barrier or sync that the flag may belong to.
    fn check(&self, state: &State) -> Result<(), Failure> {
        state.check()?;
        let words = self.words().map(|word| word.load(Ordering::Acquire));
        Ok(check_flag_words(state.job, words, "the flag")?)
    }
}

/// A request, and the flag that is set when it has finished.
type Pending = (Box<dyn Request<Value = ()> + Send>, OwnFlag);

/// Sets flags when requests have finished, in the order in which these were begun. It is the waker of the first request:
/// whichever thread of the library finds that something has happened looks at it again.
#[derive(Default)]
pub(super) struct FlagQueue {
    waiting: Mutex<VecDeque<Pending>>,
    /// A wake has come since the first request was looked at last.
    is_woken: AtomicBool,
}

impl FlagQueue {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets a flag, and sets it when the request has finished. Requests finish in the order in which they were begun,
    /// so `begin` is called under the lock.
    fn add<R: Request<Value = ()> + Send + 'static>(
        self: &Arc<Self>,
        flag: OwnFlag,
        begin: impl FnOnce() -> tasuki::Result<R>,
    ) -> Result<(), Failure> {
        let mut waiting = self.waiting();
        let request = begin()?; // a refused call leaves the flag as it was
        flag.set(0);
        waiting.push_back((Box::new(request), flag));
        drop(waiting);
        self.wake_by_ref();
        Ok(())
    }

    /// Sets the flags of the first requests, as far as these have finished.
    fn look(self: &Arc<Self>, waiting: &mut VecDeque<Pending>) {
        let (Ok(state), waker) = (state(), Waker::from(self.clone())) else { return };
        while let Some((request, flag)) = waiting.front_mut() {
            if request.poll_finished(&mut Context::from_waker(&waker)).is_pending() {
                return;
            }
            match request.wait() {
                Ok(()) => flag.set(1),
                Err(error) => state.fail(error.into()), // the flag stays 0, and waits for flags return this
            }
            waiting.pop_front();
            let _ = state.job.raise(state.set.on(state.job.rank()), 1); // fails after the job's end
        }
    }
}

impl Wake for FlagQueue {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        while self.is_woken.load(Ordering::SeqCst) {
            // Whoever has the lock looks once more. It may be this thread, which a look has woken.
            let Ok(mut waiting) = self.waiting.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            self.look(&mut waiting);
        }
    }
}

calls! {
    /// Sets a flag of this node when all transfers that it has issued are done.
    nicam_sync(flag_addr: *mut NicamFlag) {
        let (state, flag) = (state()?, OwnFlag::new(flag_addr)?);
        state.syncs.add(flag, || Ok(state.transfers.sync()))
    }

    /// Starts a barrier, and sets a flag of this node when all nodes have started it.
    nicam_barrier(flag_addr: *mut NicamFlag) {
        let (state, flag) = (state()?, OwnFlag::new(flag_addr)?);
        state.barriers.add(flag, || state.job.world().fuzzy_barrier())
    }

    /// Waits until a flag of this node has a value.
    nicam_wait(flag_addr: *const NicamFlag, value: u64) {
        let (state, flag) = (state()?, OwnFlag::new(flag_addr)?);
        loop {
            let seen = state.set.value();
            if flag.value() == value {
                return Ok(());
            }
            flag.check(state)?;
            state.set.wait_at_least(seen + 1)?;
        }
    }

    /// Tells whether a flag of this node has a value.
    nicam_test(flag_addr: *const NicamFlag, value: u64, is_set: *mut c_int) {
        let (state, flag) = (state()?, OwnFlag::new(flag_addr)?);
        if flag.value() != value {
            flag.check(state)?;
            state.job.serve()?;
        }
        // SAFETY: the caller promises it.
        unsafe { give(is_set, c_int::from(flag.value() == value), "is_set") }
    }
}
