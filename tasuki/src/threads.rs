//! Threads of a rank.
#![allow(unsafe_code)]
//! Unsafe: closures that borrow are handed to the host as if they lived for ever; every thread is joined before the
//! borrow ends, also when one of them, or the caller, panics.

use crate::{Error, Job, Result};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

/// The end of a thread: waits for it.
type Join = Box<dyn FnOnce() + Send>;

/// Waits for all threads that were started, whatever happens.
struct Started(Vec<Join>);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|join| join());
    }
}

impl Job {
    /// Runs `body(0)`, ..., `body(count - 1)` on threads of this rank, each of which may make any call of the job;
    /// their values in order. On sim they are threads of virtual time, which `std::thread`'s would not be.
    ///
    /// Waits for all of them. Errors: the system starts no more threads. Panics if one of them panicked.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let words = job.alloc::<u64>(1)?;
    ///     let peer = job.rank_after(1);
    ///     let told = job.threads(3, |_| job.fetch_add(words.on(peer), 1))?;
    ///     assert!(told.into_iter().all(|before| before.is_ok_and(|before| before < 3)));
    ///     job.barrier()?;
    ///     assert_eq!(words.get(0)?, 3);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn threads<T: Send>(&self, count: usize, body: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
        self.worker
            .check_alive()
            .map_err(|cause| self.worker.fault(cause, || format!("threads({count})")))?;
        let outcomes: Vec<Mutex<Option<std::thread::Result<T>>>> =
            (0..count).map(|_| Mutex::default()).collect();
        let run = |index: usize| {
            let outcome = catch_unwind(AssertUnwindSafe(|| body(index)));
            *outcomes[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(outcome);
        };
        let mut started = Started(Vec::with_capacity(count));
        let run = &run;
        for index in 0..count {
            let thread: Box<dyn FnOnce() + Send + '_> = Box::new(move || run(index));
            // SAFETY: only the lifetime changes. `started` joins the thread before `run` and what it borrows go:
            // it is dropped before them, in every way out of this function.
            let thread: Box<dyn FnOnce() + Send> = unsafe { std::mem::transmute(thread) };
            let join = self.worker.platform().spawn(thread).map_err(|error| {
                Error::from_io("thread", &error).on_rank(self.rank()).in_call(|| format!("threads({count})"))
            })?;
            started.0.push(join);
        }
        drop(started);
        let ended =
            outcomes.into_iter().map(|outcome| outcome.into_inner().unwrap_or_else(|p| p.into_inner()));
        Ok(ended
            .map(|outcome| outcome.expect("joined").unwrap_or_else(|panic| resume_unwind(panic)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Rank, Sim};

    #[test]
    fn threads_of_a_rank_call_at_once() {
        let app = |job: &crate::Job| {
            let count = job.alloc::<u64>(1)?;
            let before = job.threads(4, |_| job.fetch_add(count.on(Rank(0)), 1))?;
            assert!(before.into_iter().all(|before| before.is_ok()));
            job.barrier()?;
            assert_eq!(job.get_value(count.on(Rank(0)))?, 4 * job.size() as u64);
            job.barrier()
        };
        crate::local(3, app).unwrap();
        crate::sim(Sim::seed(3).ranks(3), app).unwrap();
    }
}
