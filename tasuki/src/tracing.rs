//! Marks and spans that the program adds to its trace.

use crate::job::Job;
use std::marker::PhantomData;
use tasuki_core::engine::Worker;

/// A part of the program that a trace shows as a span: from [`Job::span`] until this value is dropped, on the thread
/// that called it.
///
/// ```
/// tasuki::local(2, |job| {
///     let sum = {
///         let _step = job.span("sum"); // ends with the block
///         job.world().allreduce(&1_u64, tasuki::Sum)?
///     };
///     assert_eq!(sum, 2);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[must_use = "the span ends when it is dropped"]
#[derive(Debug)]
pub struct Span<'j> {
    worker: &'j Worker,
    /// The time of the beginning; `None` if the rank is not traced.
    begin_ns: Option<u64>,
    name: &'j str,
    /// Makes the type `!Send`: a span ends on the thread on which it began.
    stays: PhantomData<*const ()>,
}

impl Job {
    /// Adds a mark with that name to the trace of this rank, if the rank is traced (`tasuki run --trace`).
    ///
    /// A longer name than 72 bytes is cut. Tools group events by name, so use few names and put no varying numbers
    /// into them. Cost: a load and a branch if the rank is not traced, otherwise about 60 ns.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     job.mark("input is read");
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn mark(&self, name: &str) {
        self.worker.mark(name);
    }

    /// Begins a span with that name in the trace of this rank. The span ends when the returned value is dropped.
    /// Pictures show it in red if a panic drops it. Names and costs: those of [`Job::mark`].
    ///
    /// The spans of one thread are nested. If a span is dropped before a span that began inside it, both are drawn as
    /// if they had ended together.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     for _ in 0..3 {
    ///         let _step = job.span("step");
    ///         job.barrier()?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn span<'j>(&'j self, name: &'j str) -> Span<'j> {
        Span { worker: &self.worker, begin_ns: self.worker.begin_span(), name, stays: PhantomData }
    }
}

impl Drop for Span<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(begin) = self.begin_ns {
            self.worker.end_span(begin, self.name, std::thread::panicking());
        }
    }
}
