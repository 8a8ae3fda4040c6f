//! What the program itself adds to a trace: marks and spans.

use crate::job::Job;
use std::marker::PhantomData;
use tasuki_core::engine::Worker;

/// A part of the program that a trace shows as a span: from [`Job::span`] until it is dropped, on the thread that
/// called it.
#[must_use = "the span ends when it is dropped"]
#[derive(Debug)]
pub struct Span<'j> {
    worker: &'j Worker,
    /// When it began; `None` if the rank is not traced.
    begin_ns: Option<u64>,
    name: &'j str,
    /// It ends on the thread on which it began.
    stays: PhantomData<*const ()>,
}

impl Job {
    /// Puts a mark of that name into the trace of this rank, if there is one (`tasuki run --trace`).
    ///
    /// A name has up to 72 bytes; what is longer is cut. Tools group what happened by name, so let names be few and
    /// put no varying number into them. Costs one load and a branch where the rank is not traced, else about 60 ns.
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

    /// Begins a span of that name in the trace of this rank; it ends when the guard is dropped. It is red in pictures
    /// if a panic drops it. Names and costs are as for [`Job::mark`].
    ///
    /// Spans of one thread lie inside each other: one that is dropped before a span that began inside it is drawn as
    /// if both had ended together.
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
