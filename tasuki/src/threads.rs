//! Several threads in one rank.
#![allow(unsafe_code)]
//! Unsafe: closures that borrow are passed to the platform as if they were `'static`; every thread is joined before
//! the borrow ends, also when one of the threads or the caller panics.

use crate::{Error, Job, Result};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

/// Waits for the end of one thread.
type Join = Box<dyn FnOnce() + Send>;

/// Joins all threads that were started when it is dropped, also during a panic.
struct Started(Vec<Join>);

impl Drop for Started {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|join| join());
    }
}

impl Job {
    /// Runs `body(0)`, ..., `body(count - 1)` on threads of this rank and returns their values in order. Each thread
    /// may make any call of the job. On the simulator these threads live in virtual time, which threads of
    /// `std::thread` would not.
    ///
    /// Waits for all of them. Errors: the system starts no more threads. Panics if one of the threads panicked.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let words = job.alloc::<u64>(1)?;
    ///     let peer = job.rank_after(1);
    ///     let before = job.threads(3, |_| job.fetch_add(words.on(peer), 1))?;
    ///     assert!(before.into_iter().all(|word| word.is_ok_and(|word| word < 3)));
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
            // SAFETY: only the lifetime changes. `started` joins the thread before `run` and what it borrows are
            // dropped, in every way out of this function, because it is dropped before them.
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
    fn threads_of_one_rank_make_calls_concurrently() {
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
