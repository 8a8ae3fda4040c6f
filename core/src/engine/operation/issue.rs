//! Issuing operations: directly if the fabric completes them within the call, otherwise through the operation table.
#![allow(unsafe_code)]
//! Unsafe: hands local buffers to the fabric. Blocking calls return only after the operation has ended; the others
//! pass a keep-alive, which the table holds until then.

use crate::base::error_hint::FAILURES;
use crate::base::{Cause, Error, Result};
use crate::engine::operation::fabric_step::FabricStep;
use crate::engine::operation::kind::{Local, Operation};
use crate::engine::operation::order::{After, Handle, Order};
use crate::engine::operation::set::FAILURES_MAX;
use crate::engine::operation::table::{KeepAlive, NewOperation};
use crate::engine::sync::revocable_buffer::BufferView;
use crate::engine::trace::Recorder;
use crate::engine::wait::condition::Condition;
use crate::engine::wait::deadline::Deadline;
use crate::engine::worker::Worker;
use crate::fabric::{Accept, Accepted, Atomic, AtomicKind, Refused, Width};
use crate::os::copy;
use crate::segment::GlobalAddress;
use std::cell::Cell;
use std::ptr::NonNull;

/// The result of issuing an operation without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issued {
    /// The handle of the operation.
    pub handle: Handle,
    /// True if the operation has already completed without an error.
    pub done: bool,
}

impl Worker {
    /// Copies `from` to global memory. When it returns, the bytes are visible there.
    #[inline]
    pub fn put(&self, to: GlobalAddress, from: &[u8]) -> Result<()> {
        let (from, len) = (Local(from.as_ptr().cast_mut()), from.len() as u64);
        // SAFETY: the slice is borrowed until the operation has ended.
        let post = |accept: Accept<'_>| unsafe { self.fabric().put(accept, to, from.0, len) };
        self.run_blocking(post, || Operation::Put { to, from, len }).map(drop)
    }

    /// Copies global memory into `to`.
    #[inline]
    pub fn get(&self, from: GlobalAddress, to: &mut [u8]) -> Result<()> {
        let (to, len) = (Local(to.as_mut_ptr()), to.len() as u64);
        // SAFETY: the slice is borrowed exclusively until the operation has ended.
        let post = |accept: Accept<'_>| unsafe { self.fabric().get(accept, from, to.0, len) };
        self.run_blocking(post, || Operation::Get { from, to, len }).map(drop)
    }

    /// Like [`Worker::put`].
    pub(super) fn put_view(&self, to: GlobalAddress, from: BufferView<'_>) -> Result<()> {
        let (from, len) = (Local(from.part(0, from.len() as u64).cast_mut()), from.len() as u64);
        // SAFETY: the view borrows the bytes until the operation has ended.
        let post = |accept: Accept<'_>| unsafe { self.fabric().put(accept, to, from.0, len) };
        self.run_blocking(post, || Operation::Put { to, from, len }).map(drop)
    }

    /// Like [`Worker::get`].
    pub(super) fn get_view(&self, from: GlobalAddress, to: BufferView<'_>) -> Result<()> {
        let (to, len) = (Local(to.part_mut(0, to.len() as u64)), to.len() as u64);
        // SAFETY: the view borrows the bytes, to write them, until the operation has ended.
        let post = |accept: Accept<'_>| unsafe { self.fabric().get(accept, from, to.0, len) };
        self.run_blocking(post, || Operation::Get { from, to, len }).map(drop)
    }

    /// Records a call that does what `action` says by several operations.
    pub(super) fn in_call(&self, action: &Operation, body: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(recorder) = self.recorder() else { return body() };
        let begin = self.platform().observer_now_ns();
        let outcome = body();
        self.note_call(recorder, begin, action, outcome.is_err());
        outcome
    }

    /// Copies `from` to global memory and then raises `signal`, which must be of the same rank, by `amount`. When it
    /// returns, `from` may be used again. A rank that sees the signal raised sees the bytes.
    #[inline]
    pub fn put_signal(
        &self,
        to: GlobalAddress,
        from: &[u8],
        signal: GlobalAddress,
        amount: u64,
    ) -> Result<()> {
        let (from, len) = (Local(from.as_ptr().cast_mut()), from.len() as u64);
        // SAFETY: the slice is borrowed until the operation has ended.
        let post =
            |accept: Accept<'_>| unsafe { self.fabric().put_signal(accept, to, from.0, len, signal, amount) };
        let mark = self.run_blocking(post, || Operation::PutSignal { to, from, len, signal, amount })?;
        self.notify_waiting_queues(signal, mark);
        Ok(())
    }

    /// Raises `signal` by `amount`.
    #[inline]
    pub fn raise(&self, signal: GlobalAddress, amount: u64) -> Result<()> {
        let post = |accept: Accept<'_>| self.fabric().raise(accept, signal, amount);
        let mark = self.run_blocking(post, || Operation::Raise { signal, amount })?;
        self.notify_waiting_queues(signal, mark);
        Ok(())
    }

    /// After a raise: runs or notifies queues whose commands may wait for the signal.
    #[inline(always)]
    pub(in crate::engine) fn notify_waiting_queues(&self, signal: GlobalAddress, mark: u64) {
        if mark != 0 {
            self.raised(signal.rank(), mark);
        }
    }

    /// Copies a word of global memory. Where words are not atomic, copies `width` bytes.
    #[inline]
    pub fn get_word(&self, from: GlobalAddress, width: Width) -> Result<u64> {
        match self.word(from, width) {
            // SAFETY: `word` has just returned the place.
            Some(place) => Ok(unsafe { width.load(place) }),
            None => self.get_word_as_bytes(from, width),
        }
    }

    /// Reads a word of eight bytes that other ranks change atomically, if this thread may access it directly. What was
    /// written before the word can be read afterwards.
    #[inline]
    pub fn peek_word(&self, at: GlobalAddress) -> Option<u64> {
        let load = Atomic { kind: AtomicKind::Load, operand: 0, width: Width::W8 };
        // SAFETY: `word` has just returned the place.
        self.word(at, Width::W8).map(|place| unsafe { load.apply(place) })
    }

    #[cold]
    fn get_word_as_bytes(&self, from: GlobalAddress, width: Width) -> Result<u64> {
        let mut value = 0_u64.to_le_bytes();
        self.get(from, &mut value[..width.bytes() as usize])?;
        Ok(u64::from_le_bytes(value))
    }

    /// Returns the place of a word that this thread may access directly.
    #[inline]
    fn word(&self, at: GlobalAddress, width: Width) -> Option<NonNull<u8>> {
        if self.is_open() { self.fabric().word(at, width) } else { None }
    }

    /// Changes one word atomically; returns its old value.
    #[inline]
    pub fn atomic(&self, at: GlobalAddress, atomic: Atomic) -> Result<u64> {
        match self.word(at, atomic.width) {
            // SAFETY: `word` has just returned the place.
            Some(place) => Ok(unsafe { atomic.apply(place) }),
            None => self.atomic_by_fabric(at, atomic),
        }
    }

    #[cold]
    fn atomic_by_fabric(&self, at: GlobalAddress, atomic: Atomic) -> Result<u64> {
        let post = |accept: Accept<'_>| self.fabric().atomic(accept, at, &atomic);
        self.run_blocking(post, || Operation::Atomic { at, atomic, result: GlobalAddress::NULL })
    }

    /// Issues a copy between any two global addresses, `len` in bytes.
    pub fn copy(&self, from: GlobalAddress, to: GlobalAddress, len: u64, after: After) -> Result<Issued> {
        self.issue(Operation::Copy { from, to, len }, after, None)
    }

    /// Issues an atomic operation; the old value goes to `result` in this rank's own memory, if that is not null.
    pub fn issue_atomic(
        &self,
        at: GlobalAddress,
        atomic: Atomic,
        result: GlobalAddress,
        after: After,
    ) -> Result<Issued> {
        let action = Operation::Atomic { at, atomic, result };
        if !result.is_null() {
            let own = self
                .own_place(result, atomic.width.bytes())
                .and_then(|place| aligned(result, atomic.width).map(|()| place));
            own.map_err(|cause| self.fault(cause, || action.to_string()))?;
        }
        self.issue(action, after, None)
    }

    /// Issues an operation on a local buffer.
    ///
    /// # Safety
    /// The buffer that `action` names must stay valid and unused until the operation has ended; `keep` is held until
    /// then.
    pub unsafe fn issue_kept(&self, action: Operation, after: After, keep: KeepAlive) -> Result<Issued> {
        self.issue(action, after, keep)
    }

    /// Waits for all operations up to `handle`. Returns the first failure among them that was not reported before.
    pub fn complete(&self, handle: Handle) -> Result<()> {
        self.complete_until(handle, self.call_deadline())
    }

    /// Completes until `deadline`. After that the operations go on.
    pub(in crate::engine) fn complete_until(&self, handle: Handle, deadline: Deadline) -> Result<()> {
        let through = handle.0;
        self.check_alive().map_err(|cause| self.fault(cause, || format!("complete(operation {through})")))?;
        if through > self.operations().issued() {
            return Ok(()); // never issued
        }
        if self.operations().unfinished() > 0 {
            self.wait(&Condition::FinishedThrough(through), deadline, &|| {
                format!("complete(operation {through})")
            })?;
        }
        self.operations().report(through)
    }

    /// Returns true if an operation up to `handle` is unfinished. Makes progress.
    pub fn is_pending(&self, handle: Handle) -> bool {
        if self.operations().unfinished() == 0 || handle.0 > self.operations().issued() {
            return false;
        }
        self.progress();
        !self.operations().is_finished_through(handle.0)
    }

    /// Returns the operation that this rank has issued last; the null handle if there was none.
    pub fn last_issued(&self) -> Handle {
        Handle(self.operations().issued())
    }

    /// Returns true if that operation is unfinished. Makes progress.
    pub fn is_pending_exactly(&self, handle: Handle) -> bool {
        if self.operations().unfinished() == 0 {
            return false;
        }
        self.progress();
        !self.operations().is_finished(handle.0)
    }

    /// Waits for one operation and takes its outcome. `complete` does not report its failure again.
    pub fn complete_exactly(&self, handle: Handle) -> Result<()> {
        let number = handle.0;
        if !self.operations().is_finished(number) {
            let call = || format!("complete(operation {number})");
            self.wait(&Condition::Finished(number), self.call_deadline(), &call)?;
        }
        self.operations().report_exactly(number)
    }

    /// A blocking call: issues the operation, waits for its end, and returns what it fetched. An operation that the
    /// fabric completes within the call stays in registers; it is described as an [`Operation`] only if it does not.
    #[inline]
    fn run_blocking(
        &self,
        post: impl FnOnce(Accept<'_>) -> Result<Accepted, Refused>,
        action: impl Fn() -> Operation,
    ) -> Result<u64> {
        if !self.is_open() {
            return Err(self.refusal(&action()));
        }
        match self.recorder() {
            None => self.run_blocking_untraced(post, action),
            Some(recorder) => self.run_blocking_traced(recorder, post, action),
        }
    }

    #[cold]
    fn run_blocking_traced(
        &self,
        recorder: &Recorder,
        post: impl FnOnce(Accept<'_>) -> Result<Accepted, Refused>,
        action: impl Fn() -> Operation,
    ) -> Result<u64> {
        let begin = self.platform().observer_now_ns();
        let outcome = self.run_blocking_untraced(post, &action);
        self.note_call(recorder, begin, &action(), outcome.is_err());
        outcome
    }

    #[inline(always)]
    fn run_blocking_untraced(
        &self,
        post: impl FnOnce(Accept<'_>) -> Result<Accepted, Refused>,
        action: impl Fn() -> Operation,
    ) -> Result<u64> {
        let entered = Cell::new(0);
        let posted = post(&|| {
            entered.set(self.operations().enter_in_flight(action(), None, true));
            entered.get()
        });
        match posted {
            Ok(Accepted::Done(value)) => Ok(value),
            other => self.run_blocking_slow(action(), other, entered.get()),
        }
    }

    #[cold]
    fn refusal(&self, action: &Operation) -> Error {
        let cause = self.check().err().unwrap_or(Cause::JobOver);
        self.fault(cause, || action.to_string())
    }

    #[cold]
    fn run_blocking_slow(
        &self,
        action: Operation,
        posted: Result<Accepted, Refused>,
        entered: u64,
    ) -> Result<u64> {
        match posted {
            Ok(Accepted::Done(value)) => Ok(value),
            Ok(Accepted::Started) => self.outcome(entered, &action),
            Err(Refused::Never(cause)) => Err(self.fault(*cause, || action.to_string())),
            Err(Refused::Again | Refused::Relay) => {
                let number = self.enqueue(action, Order::Free, None, true)?;
                self.outcome(number, &action)
            }
        }
    }

    /// Waits for an operation whose outcome this call takes. Without a limit: the fabric may use the caller's buffer
    /// until the operation has ended.
    #[cold]
    pub(super) fn outcome(&self, number: u64, action: &Operation) -> Result<u64> {
        let waited = self.wait(&Condition::Finished(number), Deadline::NEVER, &|| action.to_string());
        match self.operations().take(number) {
            Some(outcome) => outcome,
            None => Err(waited.err().unwrap_or_else(|| {
                self.fault(Cause::Bug("an operation ended without an outcome".into()), || action.to_string())
            })),
        }
    }

    /// Issues an operation. Waits only for room in the table.
    fn issue(&self, action: Operation, after: After, keep: KeepAlive) -> Result<Issued> {
        let Some(recorder) = self.recorder() else { return self.issue_untraced(action, after, keep) };
        let begin = self.platform().observer_now_ns();
        let issued = self.issue_untraced(action, after, keep);
        self.note_issued(recorder, begin, &action, &issued);
        issued
    }

    fn issue_untraced(&self, action: Operation, after: After, keep: KeepAlive) -> Result<Issued> {
        self.check().map_err(|cause| self.fault(cause, || action.to_string()))?;
        if self.operations().has_too_many_failures() {
            return Err(
                self.fault(Cause::Full { what: FAILURES, capacity: FAILURES_MAX }, || action.to_string())
            );
        }
        let order = after.fix(self.operations().issued());
        let entered = Cell::new(0);
        let mut posted = Err(Refused::Again);
        if order == Order::Free || self.operations().is_all_well() {
            posted = FabricStep::of(action).post(self.fabric(), &|| {
                entered.set(self.operations().enter_in_flight(action, keep.clone(), false));
                entered.get()
            });
        }
        match posted {
            Ok(Accepted::Done(value)) => {
                if let Operation::Atomic { atomic, result, .. } = action {
                    self.store_result(result, atomic.width, value)
                        .map_err(|cause| self.fault(cause, || action.to_string()))?;
                }
                Ok(Issued { handle: Handle(self.operations().next_number()), done: true })
            }
            Ok(Accepted::Started) => Ok(Issued { handle: Handle(entered.get()), done: false }),
            Err(Refused::Never(cause)) => Err(self.fault(*cause, || action.to_string())),
            Err(Refused::Again | Refused::Relay) => {
                let number = self.enqueue(action, order, keep, false)?;
                Ok(Issued { handle: Handle(number), done: false })
            }
        }
    }

    /// Enters an operation that starts later, when its order and its fabric allow it. Waits for room.
    #[cold]
    fn enqueue(
        &self,
        action: Operation,
        order: Order,
        keep: KeepAlive,
        caller_takes_outcome: bool,
    ) -> Result<u64> {
        if !self.operations().has_room() {
            self.wait(&Condition::Room, self.call_deadline(), &|| format!("{action}: waiting for room"))?;
        }
        let number =
            self.operations().enter(NewOperation { action, order, keep, caller_takes_outcome }, None);
        self.progress();
        Ok(number)
    }

    /// Stores the old value of an atomic where its issuer wants it.
    pub(in crate::engine) fn store_result(
        &self,
        result: GlobalAddress,
        width: Width,
        value: u64,
    ) -> Result<(), Cause> {
        if result.is_null() {
            return Ok(());
        }
        let place = self.own_place(result, width.bytes())?;
        // SAFETY: the lookup has just found registered memory of this rank with that many bytes.
        unsafe { copy::copy((&raw const value).cast(), place, width.bytes() as usize) };
        Ok(())
    }

    /// Returns the place of this rank's own registered memory in this process.
    pub fn own_place(&self, at: GlobalAddress, len: u64) -> Result<*mut u8, Cause> {
        if at.is_null() {
            return Err(Cause::NullAddress);
        }
        if at.rank() != self.rank() {
            return Err(Cause::Argument(format!(
                "{at} is memory of rank {}, not of rank {}",
                at.rank(),
                self.rank()
            )));
        }
        self.registry().own_place(at, len)
    }
}

/// Checks that a word at that address is naturally aligned.
#[inline]
fn aligned(at: GlobalAddress, width: Width) -> Result<(), Cause> {
    let align = width.bytes() as usize;
    let even = at.offset().is_multiple_of(width.bytes());
    if even { Ok(()) } else { Err(Cause::Misaligned { address: at.bits(), align }) }
}
