//! A queue that this process has mapped, with the signals that its commands wait for.
#![allow(unsafe_code)]
//! Unsafe: pointers into system pieces that the fabric has mapped, and that stay mapped while it lives.

use crate::base::Rank;
use crate::base::sync::Ordering;
use crate::fabric::{DirectCell, Fabric, Poison, SignalControl, certainly_reached};
use crate::queue::command::{Command, Trigger};
use crate::queue::directory::QueueDirectory;
use crate::queue::encoding::EncodedCommand;
use crate::queue::layout::{CALLS, Queue};
use crate::queue::ring::LINE_WORDS;
use crate::segment::GlobalAddress;
use crate::segment::layout::{QUEUE_DIRECTORY, signal_offset};
use std::ptr::NonNull;
use std::sync::Arc;

/// Why a command failed, if it did, as the cause is kept in shared memory.
pub(in crate::engine::command_queue) type Failure = Option<Poison>;

/// A queue with its identity, and with the system piece of its rank, which holds the signals that its commands wait
/// for.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct ResolvedQueue<'m> {
    pub(in crate::engine::command_queue) owner: Rank,
    pub(in crate::engine::command_queue) number: u32,
    pub(in crate::engine::command_queue) generation: u32,
    pub(in crate::engine::command_queue) queue: Queue<'m>,
    pub(super) system: NonNull<u8>,
    /// True if the counters of signals are read by loads, false if by the fabric.
    pub(super) direct: bool,
}

impl<'m> ResolvedQueue<'m> {
    /// The control line of a signal: which queue waits for it, and whether it is poisoned.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn signal_control(&self, signal: u32) -> &'m SignalControl {
        // SAFETY: signal memory lies in the system piece, which is mapped for `'m`; the second line of a signal is its
        // control.
        unsafe { self.system.add(signal_offset(signal) as usize + 64).cast::<SignalControl>().as_ref() }
    }

    /// The queue directory of its rank.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn directory(&self) -> &'m QueueDirectory {
        // SAFETY: the system piece is mapped for `'m`.
        unsafe { directory_in(self.system) }
    }

    /// Returns true if it is a call queue, which only its own rank's process reads.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn takes_calls(&self) -> bool {
        self.number == CALLS
    }

    /// The outcome of the credit for the next command: `None` if it has to wait, else the failure, if the credit is
    /// poisoned. The commands of a queue without credit never wait.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn credit(&self, fabric: &Arc<dyn Fabric>) -> Option<Failure> {
        let Some(credit) = self.queue.credit() else { return Some(None) };
        let granted = self.signal_count(fabric, credit).wrapping_mul(self.queue.per_credit());
        let left = granted.wrapping_sub(self.queue.commands()) as i64;
        if left > 0 { Some(None) } else { self.poisoned_credit(credit) }
    }

    /// The outcome of a credit that is not large enough: it may be poisoned. Commands that it had released before the
    /// poison run, the others fail. A repeating queue fails at most as many commands as it has lines: by then all of
    /// their signals are poisoned.
    #[cold]
    fn poisoned_credit(&self, credit: u32) -> Option<Failure> {
        let (poison, stood) = self.signal_control(credit).poison_and_value()?;
        let left = stood.wrapping_mul(self.queue.per_credit()).wrapping_sub(self.queue.commands()) as i64;
        let most = self.queue.cycle().map_or(i64::MAX, |lines| lines as i64);
        if left > 0 { Some(None) } else { (left > -most).then_some(Some(poison)) }
    }

    /// The outcome of a trigger: `None` if it is not met yet, else the failure, if it will never be met.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn trigger_outcome(
        &self,
        fabric: &Arc<dyn Fabric>,
        trigger: Trigger,
    ) -> Option<Failure> {
        let count = self.signal_count(fabric, trigger.signal);
        if certainly_reached(count, trigger.threshold) {
            return Some(None);
        }
        let verdict = self.signal_control(trigger.signal).check_threshold(count, trigger.threshold)?;
        Some(verdict.err())
    }

    /// The outcome of the trigger for which a command waits at the head of the queue. A command without one does not
    /// wait.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn head_outcome(
        &self,
        fabric: &Arc<dyn Fabric>,
        encoded: &EncodedCommand,
        pass: u64,
    ) -> Option<Failure> {
        encoded.head(pass).map_or(Some(None), |trigger| self.trigger_outcome(fabric, trigger))
    }

    /// The counter of a signal of the queue's rank.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn signal_count(
        &self,
        fabric: &Arc<dyn Fabric>,
        signal: u32,
    ) -> u64 {
        if !self.direct {
            return fabric.read_signal(GlobalAddress::new(self.owner, signal_offset(signal)));
        }
        // SAFETY: signal memory lies in the system piece, which is mapped for `'m`.
        let cell = unsafe { DirectCell::new(self.system.add(signal_offset(signal) as usize)) };
        cell.counter().load(Ordering::Acquire) // SYNC signal-raise
    }

    /// The command at a position, if it is written and may be read.
    #[inline]
    pub(in crate::engine::command_queue) fn next_encoded(
        &self,
        fabric: &Arc<dyn Fabric>,
        position: u64,
    ) -> Option<EncodedCommand> {
        self.credit(fabric)?;
        let encoded = self.encoded_at(position)?;
        self.head_outcome(fabric, &encoded, self.queue.place_of(position).1).map(|_| encoded)
    }

    /// The command at a position, if it is written.
    #[inline]
    pub(in crate::engine) fn encoded_at(&self, position: u64) -> Option<EncodedCommand> {
        let queue = &self.queue;
        let (written, _) = queue.place_of(position);
        let line = queue.line(written);
        if !line.holds(written) {
            return None;
        }
        let mut encoded = EncodedCommand { words: [line.read(), [0; LINE_WORDS]] };
        if encoded.line_count() == 2 {
            encoded.words[1] = queue.line(written + 1).read();
        }
        Some(encoded)
    }

    /// The signals that commands of a repeating queue wait for at its head. A signal may come more than once.
    pub(in crate::engine::command_queue) fn head_signals(&self) -> impl Iterator<Item = u32> {
        let (end, mut at) = (self.queue.cycle().unwrap_or(0), 0);
        let all = std::iter::from_fn(move || {
            let encoded = if at < end { self.encoded_at(at) } else { None };
            at += encoded.map_or(0, |encoded| encoded.line_count());
            encoded
        });
        all.filter_map(|encoded| Some(encoded.head(0)?.signal))
    }

    /// Removes the first command of a list.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn remove_first(&self, at: usize, signal: u32) {
        if self.queue.triggered().remove_first(at) {
            self.disarm(signal);
        }
    }

    /// Records that no command of the queue waits for a signal any more.
    #[inline]
    pub(in crate::engine::command_queue) fn disarm(&self, signal: u32) {
        self.signal_control(signal).disarm(self.number);
    }

    /// Returns true if the effects of a command that fires now need not wait for an earlier command.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn may_perform_effects(&self, command: &Command) -> bool {
        let in_flight = self.queue.in_flight();
        in_flight.is_empty() || !in_flight.must_wait(&command.effects, in_flight.numbers().end)
    }
}

/// The first byte of a rank's own system piece.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct OwnSystemPiece(pub(in crate::engine::command_queue) NonNull<u8>);

// SAFETY: a pointer to shared memory that is mapped while the worker's fabric lives.
unsafe impl Send for OwnSystemPiece {}
// SAFETY: a pointer to shared memory that is mapped while the worker's fabric lives.
unsafe impl Sync for OwnSystemPiece {}

/// The queue directory in a system piece.
///
/// # Safety
/// `system` is the first byte of a system piece that is mapped for `'s`.
pub(super) unsafe fn directory_in<'s>(system: NonNull<u8>) -> &'s QueueDirectory {
    // SAFETY: the caller promises a mapped system piece, which holds the queue directory at this offset; a queue
    // directory is made of atomics.
    unsafe { system.add(QUEUE_DIRECTORY as usize).cast::<QueueDirectory>().as_ref() }
}
