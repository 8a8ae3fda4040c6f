//! What an interface has between its init and its finalize, of which a process calls each once.

use crate::process_rank;
use crate::status::Failure;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tasuki::{Handlers, Job};

/// The state of an interface. It lives as long as the process.
pub(crate) struct InterfaceState<T> {
    /// The names of the calls that begin and end the interface.
    init: &'static str,
    finalize: &'static str,
    state: OnceLock<T>,
    /// True between init and finalize.
    is_running: AtomicBool,
}

impl<T> InterfaceState<T> {
    pub(crate) const fn new(init: &'static str, finalize: &'static str) -> InterfaceState<T> {
        InterfaceState { init, finalize, state: OnceLock::new(), is_running: AtomicBool::new(false) }
    }

    /// Returns the state. Failure: the interface does not run.
    #[inline]
    pub(crate) fn get(&self) -> Result<&T, Failure> {
        let is_running = self.is_running.load(Ordering::Acquire);
        self.state.get().filter(|_| is_running).ok_or_else(|| self.not_running())
    }

    #[cold]
    fn not_running(&self) -> Failure {
        Failure::not_running(format!("{} was not called, or {} was", self.init, self.finalize))
    }

    /// Starts the rank, with these handlers if no other interface has started it, and makes the state.
    pub(crate) fn begin(
        &self,
        handlers: Handlers,
        make: impl FnOnce(&'static Job) -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        if self.is_running.load(Ordering::Acquire) {
            return Err(Failure::misuse("it was called before"));
        }
        if self.state.get().is_some() {
            let text = format!("{} was called: a process cannot be a rank again", self.finalize);
            return Err(Failure::not_running(text));
        }
        match make(process_rank::start_with(handlers)?) {
            Ok(state) => {
                let _ = self.state.set(state); // a rank begins once
                self.is_running.store(true, Ordering::Release);
                Ok(())
            }
            Err(failure) => process_rank::end().and(Err(failure)),
        }
    }

    /// Lets calls find that the interface does not run any more. Failure: it did not run.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        if self.is_running.swap(false, Ordering::AcqRel) { Ok(()) } else { Err(self.not_running()) }
    }
}
