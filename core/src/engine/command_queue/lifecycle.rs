//! Making and dropping the queues of this rank.
#![allow(unsafe_code)]
//! Unsafe: lays out queues in memory that was allocated for them.

use super::local_queue::LocalQueue;
use super::lookup::ResolvedQueue;
use super::queue_name::QueueName;
use super::run::ready_list::ReadyList;
use crate::base::error_hint::QUEUES_OF_RANK;
use crate::base::sync::Ordering;
use crate::base::{Cause, Error, Rank, Result};
use crate::engine::worker::Worker;
use crate::fabric::{Atomic, AtomicKind, Poison, SignalControl, Width};
use crate::node::node_state;
use crate::queue::command::Command;
use crate::queue::in_flight::InFlightStage;
use crate::queue::layout::{self, CALLS, CAPACITY_MAX, QueueInfo, QueueWord};
use crate::queue::ring::CLOSED;
use crate::segment::GlobalAddress;
use crate::segment::layout::{QUEUES_MAX, signal_offset};
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

/// How often a panicking thread tries to get the lease of a queue that it drops.
const TRIES_IN_A_PANIC: u32 = 10_000;

impl Worker {
    /// Makes a queue with room for at least `capacity` lines. With `credit` it is a session queue: its head is read
    /// when that signal of this rank is larger than the number of commands that were read.
    ///
    /// Errors: the capacity is 0 or too large; the rank has too many queues; there is no memory.
    pub fn make_queue(&self, capacity: usize, credit: Option<u32>) -> Result<Arc<LocalQueue>, Cause> {
        self.check()?;
        if capacity == 0 || capacity as u64 > CAPACITY_MAX {
            return Err(Cause::Argument(format!("a queue has 1 to {CAPACITY_MAX} lines, not {capacity}")));
        }
        let local = self.lay_out_queue(capacity, credit, &|bytes| self.registry().allocate_local(bytes))?;
        if let Some(credit) = credit {
            self.commands().resolved(&local).signal_control(credit).arm(local.info().number, false);
        }
        self.commands().local.add(&local);
        Ok(local)
    }

    /// Makes a queue in memory from `allocate` and publishes it in the directory. This rank does not poll it yet.
    pub(super) fn lay_out_queue(
        &self,
        capacity: usize,
        credit: Option<u32>,
        allocate: &dyn Fn(u64) -> Result<u64>,
    ) -> Result<Arc<LocalQueue>, Cause> {
        let commands = self.commands();
        let _making = commands.make_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |number: &u32| commands.directory().queue(*number).is_none();
        let full = || Cause::Full { what: QUEUES_OF_RANK, capacity: QUEUES_MAX as usize };
        let number = (0..QUEUES_MAX).find(is_free).ok_or_else(full)?;
        let generation = commands.made_count.fetch_add(1, Ordering::Relaxed) & QueueName::GENERATIONS;
        let info = QueueInfo { capacity: capacity.next_power_of_two() as u64, number, generation, credit };
        let at = allocate(layout::bytes(info.capacity));
        let local = at.and_then(|at| self.lay_out(info, at)).map_err(|error| error.cause().clone())?;
        let local = Arc::new(local);
        commands.directory().set_queue(number, local.at().offset());
        Ok(local)
    }

    /// Makes a call queue, which only this rank's process reads.
    pub(in crate::engine) fn lay_out_call_queue(&self, capacity: u64, level: u32) -> Result<LocalQueue> {
        let at = self.registry().allocate_local(layout::bytes(capacity))?;
        let local =
            self.lay_out(QueueInfo { capacity, number: CALLS, generation: level, credit: None }, at)?;
        self.commands().directory().set_calls(level, local.at().offset());
        Ok(local)
    }

    /// Makes a queue in memory that was allocated at offset `at` of this rank's range.
    fn lay_out(&self, info: QueueInfo, at: u64) -> Result<LocalQueue> {
        let bytes = layout::bytes(info.capacity);
        let at = GlobalAddress::new(self.rank(), at);
        let place = self.own_place(at, bytes).map_err(|cause| {
            let _ = self.registry().free(at.offset()); // the first cause is the one that is reported
            Error::new(cause)
        })?;
        let place = NonNull::new(place).ok_or_else(|| Error::new(Cause::NullAddress))?;
        // SAFETY: zeroed, of that size, aligned to a granule, and used for nothing else until the queue is dropped.
        Ok(unsafe { LocalQueue::begin(place, at, info) })
    }

    /// Bytes of the command queues of this rank.
    pub fn command_queue_bytes(&self) -> u64 {
        self.commands().local.iter().map(|(info, _)| layout::bytes(info.capacity)).sum()
    }

    /// Drops a queue. No rank can post any more. Commands that can fire do so and are waited for, unless the job is
    /// over. Commands that cannot fire are abandoned, and their signals are poisoned.
    pub fn drop_queue(&self, local: &LocalQueue) {
        let resolved = self.commands().resolved(local);
        let Ok(reserved) = self.close(local) else { return }; // its memory is freed with the job
        let mut tries = 0;
        loop {
            match self.try_drain(&resolved, reserved) {
                Some(true) => break,
                _ if self.check().is_err() => return, // its memory is freed with the job
                _ if !std::thread::panicking() => self.pause(),
                // Its memory is freed with the job here, too, after the waiting ranks were notified. This thread itself
                // may hold the lease.
                None if tries < TRIES_IN_A_PANIC => {
                    tries += 1;
                    self.pause_briefly();
                }
                _ => return,
            }
        }
        let commands = self.commands();
        let make_lock = commands.make_lock.lock().unwrap_or_else(PoisonError::into_inner);
        commands.local.remove(local.info().number);
        commands.directory().set_queue(local.info().number, 0);
        drop(make_lock);
        let freed = self.registry().free(local.at().offset());
        debug_assert!(freed.is_ok(), "{freed:?}");
    }

    /// Makes those signals of this rank that are poisoned sound again, so that they can be freed. No rank may raise
    /// them, poison them or wait for them any more.
    pub fn cure_signals(&self, first: u32, count: u32) -> Result<()> {
        for signal in first..first + count {
            let address = GlobalAddress::new(self.rank(), signal_offset(signal));
            let subtracted = self.commands().signal_control_at(address).and_then(SignalControl::cure);
            subtracted.map_or(Ok(()), |amount| self.raise(address, amount))?;
        }
        Ok(())
    }

    /// Stops all posting. Returns the number of lines that were reserved.
    pub(in crate::engine) fn close(&self, local: &LocalQueue) -> Result<u64, Cause> {
        if self.commands().coherent {
            local.queue().writers().close();
            return self.reserved_in(local);
        }
        self.reserved_atomic(local, AtomicKind::Or, CLOSED)
    }

    /// Number of lines that were reserved.
    pub(super) fn reserved_in(&self, local: &LocalQueue) -> Result<u64, Cause> {
        if self.commands().coherent {
            return Ok(local.queue().writers().reserved());
        }
        self.reserved_atomic(local, AtomicKind::Load, 0)
    }

    fn reserved_atomic(&self, local: &LocalQueue, kind: AtomicKind, operand: u64) -> Result<u64, Cause> {
        let atomic = Atomic { kind, operand, width: Width::W8 };
        let before = self.atomic(QueueWord::Reserved.of(local.at()), atomic);
        before.map(|before| before & !CLOSED).map_err(|error| error.cause().clone())
    }

    /// One try to drain a closed queue: commands that can fire do so; the others are abandoned when none is in flight.
    /// Returns true when the queue is empty, and `None` if another thread holds the lease.
    fn try_drain(&self, resolved: &ResolvedQueue<'_>, reserved: u64) -> Option<bool> {
        let mut ready = ReadyList::default();
        if !resolved.queue.lease().acquire_or_mark(self.rank().to_word()) {
            return None;
        }
        self.fail_bound_to_departed(resolved);
        let (taken_command, _) = self.run_under_lease(resolved, &mut ready);
        let is_idle = taken_command.is_none() && resolved.queue.in_flight().is_empty();
        if is_idle || std::thread::panicking() {
            self.abandon_commands(resolved, &mut ready); // a panicking thread does not wait for the in-flight commands
        }
        let is_read = resolved.queue.cycle().is_some() || resolved.queue.reader().read() >= reserved;
        let done = is_idle && is_read && resolved.queue.in_flight().is_empty();
        if done {
            if let Some(credit) = resolved.queue.credit() {
                resolved.disarm(credit);
            }
            resolved.head_signals().for_each(|signal| resolved.disarm(signal));
            resolved.queue.end();
        }
        self.release(resolved, taken_command, &mut ready);
        self.run_ready(ready);
        Some(done)
    }

    /// Fails each in-flight command of this rank's queues that only a rank may run which has left
    /// the job: other ranks wait for the command's effects.
    pub(in crate::engine) fn fail_commands_of_departed_ranks(&self) {
        for resolved in self.commands().own_queues().filter(|resolved| resolved.queue.for_others() > 0) {
            let mut ready = ReadyList::default();
            if self.bound_to_departed(&resolved).next().is_some()
                && resolved.queue.lease().acquire_or_mark(self.rank().to_word())
            {
                self.fail_bound_to_departed(&resolved);
                let (taken_command, _) = self.run_under_lease(&resolved, &mut ready);
                self.release(&resolved, taken_command, &mut ready);
                self.run_ready(ready);
            }
        }
    }

    /// Fails each in-flight command of the queue that only a rank may run which has left the job.
    fn fail_bound_to_departed(&self, resolved: &ResolvedQueue<'_>) {
        for (number, peer) in self.bound_to_departed(resolved) {
            let gone = Poison::of(&Cause::PeerLeft { peer }, self.rank());
            resolved.queue.in_flight().end(number, Some(gone.words()));
        }
    }

    /// Returns the commands that have fired and that only a rank may run which has left the job,
    /// each by its number and that rank.
    fn bound_to_departed<'n>(
        &'n self,
        resolved: &ResolvedQueue<'n>,
    ) -> impl Iterator<Item = (u64, Rank)> + use<'n> {
        let in_flight = resolved.queue.in_flight();
        let has_left =
            |&peer: &Rank| self.node_state().rank_state(peer).stage() >= node_state::RankStage::Leaving;
        let fired =
            in_flight.numbers().filter(move |&number| in_flight.stage(number) == InFlightStage::Fired);
        fired.filter_map(move |number| {
            let runner = in_flight.command(number).and_then(|command| command.runner());
            Some((number, runner.filter(|&peer| peer != self.rank()).filter(has_left)?))
        })
    }

    /// Abandons the commands that wait in a queue and poisons their signals. This makes room for commands that were
    /// posted and not read, which the caller reads next.
    fn abandon_commands(&self, resolved: &ResolvedQueue<'_>, ready: &mut ReadyList) {
        let unwound = std::thread::panicking();
        let cause = if unwound { Cause::QueueUnwound { rank: self.rank() } } else { Cause::QueueDropped };
        let dropped = Poison::of(&cause, self.rank());
        self.abandon_triggered(resolved, dropped, ready);
        // A repeating queue that is dropped has run all its starts: its lines belong to a start that does not come.
        if resolved.queue.credit().is_some() && !resolved.queue.is_repeating() {
            self.abandon_unread(resolved, dropped, ready);
        }
    }

    fn abandon_triggered(&self, resolved: &ResolvedQueue<'_>, dropped: Poison, ready: &mut ReadyList) {
        let lists = resolved.queue.triggered();
        while let Some(trigger) = lists.triggers().next() {
            let first = lists.first(0);
            resolved.remove_first(0, trigger.signal);
            if let Some(command) = first.and_then(|(encoded, _)| Command::decode(&encoded)) {
                self.perform_command_effects(resolved, &command, Some(&dropped), ready);
            }
        }
    }

    /// Abandons the commands of a session queue that no credit released; in a repeating queue each command once.
    fn abandon_unread(&self, resolved: &ResolvedQueue<'_>, dropped: Poison, ready: &mut ReadyList) {
        let reader = resolved.queue.reader();
        let mut left = resolved.queue.cycle().unwrap_or(u64::MAX);
        while left > 0
            && let Some(encoded) = resolved.encoded_at(reader.read())
        {
            if let Some(command) = Command::decode(&encoded) {
                self.perform_command_effects(resolved, &command, Some(&dropped), ready);
            }
            reader.set_read(resolved.queue.behind(reader.read(), encoded.line_count()));
            left -= encoded.line_count().min(left);
        }
    }
}
