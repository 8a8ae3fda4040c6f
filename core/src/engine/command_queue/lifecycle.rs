//! The queues of this rank: made, found, and taken down.
#![allow(unsafe_code)]
//! Unsafe: a queue over job memory of this rank, which it frees only when the queue is gone; what is freed stays
//! mapped while the fabric lives, and the machine keeps that.

use super::lookup::ResolvedQueue;
use super::post::QueueName;
use super::run::ready_list::ReadyList;
use crate::base::hint::QUEUES_OF_RANK;
use crate::base::{Cause, Error, Rank, Result};
use crate::engine::worker::Worker;
use crate::fabric::{Atomic, AtomicKind, Poison, Width};
use crate::node::node_state;
use crate::queue::command::Command;
use crate::queue::in_flight::InFlightStage;
use crate::queue::layout::{self, CALLS, CAPACITY_MAX, Queue, QueueInfo, QueueWord};
use crate::queue::ring::CLOSED;
use crate::segment::GlobalAddress;
use crate::segment::layout::QUEUES_MAX;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// How often a thread that panics tries to get the lease of a queue that it drops.
const TRIES_IN_A_PANIC: u32 = 10_000;

/// A queue of this rank's own.
#[derive(Debug)]
pub struct LocalQueue {
    place: NonNull<u8>,
    at: GlobalAddress,
    card: QueueInfo,
}

// SAFETY: a pointer to shared memory that is mapped while the machine lives.
unsafe impl Send for LocalQueue {}
// SAFETY: as above.
unsafe impl Sync for LocalQueue {}

impl LocalQueue {
    /// How others name it.
    pub fn name(&self) -> QueueName {
        QueueName::new(self.at, self.card.generation)
    }

    /// EncodedCommand that its ring has.
    pub fn capacity(&self) -> u64 {
        self.card.capacity
    }

    #[inline]
    pub(super) fn card(&self) -> QueueInfo {
        self.card
    }

    #[inline]
    pub(in crate::engine) fn queue(&self) -> Queue<'_> {
        // SAFETY: the queue is there while this is, and its memory longer.
        unsafe { Queue::over(self.place, self.card.capacity) }
    }
}

impl Worker {
    /// Makes a queue with room for at least `capacity` lines. With `credit`, a session queue: its head waits until
    /// that signal of this rank has counted one more than the commands that were read.
    pub fn make_queue(&self, capacity: usize, credit: Option<u32>) -> Result<Arc<LocalQueue>, Cause> {
        self.check()?;
        if capacity == 0 || capacity as u64 > CAPACITY_MAX {
            return Err(Cause::Argument(format!("a queue has 1 to {CAPACITY_MAX} places, not {capacity}")));
        }
        let own = self.lay_out_queue(capacity, credit, &|bytes| self.registry().allocate_local(bytes))?;
        if let Some(credit) = credit {
            self.named(&own).arming(credit).arm(own.card.number, false);
        }
        self.commands().own.add(own.card.number, &own);
        Ok(own)
    }

    /// Makes a queue that others find, and at which this rank does not look yet, in memory that `allocate` gives.
    pub(super) fn lay_out_queue(
        &self,
        capacity: usize,
        credit: Option<u32>,
        allocate: &dyn Fn(u64) -> Result<u64>,
    ) -> Result<Arc<LocalQueue>, Cause> {
        let commands = self.commands();
        let _making = commands.making.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |number: &u32| commands.station().queue(*number).is_none();
        let full = || Cause::Full { what: QUEUES_OF_RANK, capacity: QUEUES_MAX as usize };
        let number = (0..QUEUES_MAX).find(is_free).ok_or_else(full)?;
        let generation = commands.made.fetch_add(1, Ordering::Relaxed) & QueueName::GENERATIONS;
        let card = QueueInfo { capacity: capacity.next_power_of_two() as u64, number, generation, credit };
        let at = allocate(layout::bytes(card.capacity));
        let own = at.and_then(|at| self.lay_out(card, at)).map_err(|error| error.cause().clone())?;
        let own = Arc::new(own);
        commands.station().set_queue(number, own.at.offset());
        Ok(own)
    }

    /// Makes a queue of calls, which only this rank's process reads.
    pub(in crate::engine) fn lay_out_call_queue(&self, capacity: u64, level: u32) -> Result<LocalQueue> {
        let at = self.registry().allocate_local(layout::bytes(capacity))?;
        let own = self.lay_out(QueueInfo { capacity, number: CALLS, generation: level, credit: None }, at)?;
        self.commands().station().set_calls(level, own.at.offset());
        Ok(own)
    }

    /// Makes a queue in memory that was allocated at that offset of this rank's range.
    fn lay_out(&self, card: QueueInfo, at: u64) -> Result<LocalQueue> {
        let bytes = layout::bytes(card.capacity);
        let at = GlobalAddress::new(self.rank(), at);
        let place = self.own_place(at, bytes).map_err(|cause| {
            let _ = self.registry().free(at.offset()); // the cause that counts is the first
            Error::new(cause)
        })?;
        let place = NonNull::new(place).ok_or_else(|| Error::new(Cause::NullAddress))?;
        // SAFETY: zeroed, of that size, aligned to a granule, and ours until the queue is dropped.
        unsafe { Queue::over(place, card.capacity) }.begin(card);
        Ok(LocalQueue { place, at, card })
    }

    /// Takes a queue down: nobody can post any more; what can fire does, and is waited for, unless the job is over;
    /// what cannot never will, and its signals are poisoned.
    pub fn drop_queue(&self, own: &LocalQueue) {
        let named = self.named(own);
        let Ok(reserved) = self.close(own) else { return }; // it goes with the job's memory
        let mut tries = 0;
        loop {
            match self.empty(&named, reserved) {
                Some(true) => break,
                _ if self.check().is_err() => return, // it goes with the job's memory
                _ if !std::thread::panicking() => self.pause(),
                // So it does here, when those who wait were told. The lease may be this thread's own.
                None if tries < TRIES_IN_A_PANIC => {
                    tries += 1;
                    self.pause_briefly();
                }
                _ => return,
            }
        }
        let commands = self.commands();
        let making = commands.making.lock().unwrap_or_else(PoisonError::into_inner);
        commands.own.remove(own.card.number);
        commands.station().set_queue(own.card.number, 0);
        drop(making);
        let freed = self.registry().free(own.at.offset());
        debug_assert!(freed.is_ok(), "{freed:?}");
    }

    /// Nobody can post any more. How many lines there will ever have been.
    pub(in crate::engine) fn close(&self, own: &LocalQueue) -> Result<u64, Cause> {
        if self.commands().coherent {
            own.queue().posters().close();
            return self.reserved_in(own);
        }
        self.change_reserved(own, AtomicKind::Or, CLOSED)
    }

    /// How many lines there have been.
    pub(super) fn reserved_in(&self, own: &LocalQueue) -> Result<u64, Cause> {
        if self.commands().coherent {
            return Ok(own.queue().posters().reserved());
        }
        self.change_reserved(own, AtomicKind::Load, 0)
    }

    fn change_reserved(&self, own: &LocalQueue, kind: AtomicKind, operand: u64) -> Result<u64, Cause> {
        let atomic = Atomic { kind, operand, width: Width::W8 };
        let before = self.atomic(QueueWord::Reserved.of(own.at), atomic);
        before.map(|before| before & !CLOSED).map_err(|error| error.cause().clone())
    }

    /// One try to empty a queue that is closed: what can fire does, and is waited for; what cannot is given up. True
    /// when nothing is left of it; `None` where somebody else has the lease.
    fn empty(&self, named: &ResolvedQueue<'_>, reserved: u64) -> Option<bool> {
        let mut todo = ReadyList::default();
        if !named.queue.lease().call(self.rank().0) {
            return None;
        }
        self.end_those_of_the_left(named);
        let (long, _) = self.move_on(named, &mut todo);
        let is_idle = long.is_none() && named.queue.flights().is_empty();
        if is_idle || std::thread::panicking() {
            self.give_up(named, &mut todo); // at once, if nobody will wait
        }
        let is_read = named.queue.cycle().is_some() || named.queue.reader().read() >= reserved;
        let done = is_idle && is_read && named.queue.flights().is_empty();
        if done {
            if let Some(credit) = named.queue.credit() {
                self.disarm(named, credit);
            }
            self.heads(named).for_each(|signal| self.disarm(named, signal));
            named.queue.end();
        }
        self.give_back(named, long, &mut todo);
        self.run_ready(todo);
        Some(done)
    }

    /// The signals that commands of a queue that begins anew wait for at its head, some of them more than once.
    pub(super) fn heads<'n>(&'n self, named: &'n ResolvedQueue<'n>) -> impl Iterator<Item = u32> + use<'n> {
        let (end, mut at) = (named.queue.cycle().unwrap_or(0), 0);
        let all = std::iter::from_fn(move || {
            let lines = if at < end { self.lines_at(named, at) } else { None };
            at += lines.map_or(0, |lines| lines.count());
            lines
        });
        all.filter_map(|lines| Some(lines.head(0)?.signal))
    }

    /// CommandQueues under way that only ranks may run which have left end, in all queues of this rank: their effects are
    /// waited for.
    pub(in crate::engine) fn end_what_only_the_left_could_run(&self) {
        for own in self.commands().own.iter().filter(|own| own.queue().for_others() > 0) {
            let (named, mut todo) = (self.named(own), ReadyList::default());
            if self.bound_to_the_left(&named).next().is_some() && named.queue.lease().call(self.rank().0) {
                self.end_those_of_the_left(&named);
                let (long, _) = self.move_on(&named, &mut todo);
                self.give_back(&named, long, &mut todo);
                self.run_ready(todo);
            }
        }
    }

    /// EventKind only ranks may run that have left ends.
    fn end_those_of_the_left(&self, named: &ResolvedQueue<'_>) {
        for (number, peer) in self.bound_to_the_left(named) {
            let gone = Poison::of(&Cause::PeerLeft { peer }, self.rank());
            named.queue.flights().end(number, Some(gone.words()));
        }
    }

    /// CommandQueues that have fired and that only ranks may run which have left: each with its rank.
    fn bound_to_the_left<'n>(
        &'n self,
        named: &ResolvedQueue<'n>,
    ) -> impl Iterator<Item = (u64, Rank)> + use<'n> {
        let flights = named.queue.flights();
        let has_left =
            |&peer: &Rank| self.node_state().rank_state(peer).stage() >= node_state::Stage::Leaving;
        let fired = flights.numbers().filter(move |&number| flights.stage(number) == InFlightStage::Fired);
        fired.filter_map(move |number| {
            let runner = flights.command(number).and_then(|command| command.runner());
            Some((number, runner.filter(|&peer| peer != self.rank()).filter(has_left)?))
        })
    }

    /// EventKind waits in a queue never fires, its signals are poisoned. Makes room for what was posted and not read, which
    /// is looked at then.
    fn give_up(&self, named: &ResolvedQueue<'_>, todo: &mut ReadyList) {
        let unwound = std::thread::panicking();
        let cause = if unwound { Cause::QueueUnwound { rank: self.rank() } } else { Cause::QueueDropped };
        let dropped = Poison::of(&cause, self.rank());
        self.give_up_parked(named, dropped, todo);
        // A program that is dropped was through: what lies there was not started again.
        if named.queue.credit().is_some() && !named.queue.is_program() {
            self.give_up_unread(named, dropped, todo);
        }
    }

    fn give_up_parked(&self, named: &ResolvedQueue<'_>, dropped: Poison, todo: &mut ReadyList) {
        let lists = named.queue.parked();
        while let Some(trigger) = lists.triggers().next() {
            let first = lists.first(0);
            self.release(named, 0, trigger.signal);
            if let Some(command) = first.and_then(|(lines, _)| Command::from_lines(&lines)) {
                self.take_effect(named, &command, Some(&dropped), todo);
            }
        }
    }

    /// EventKind lies in a session queue that is not let go on; once, where it begins anew.
    fn give_up_unread(&self, named: &ResolvedQueue<'_>, dropped: Poison, todo: &mut ReadyList) {
        let reader = named.queue.reader();
        let mut left = named.queue.cycle().unwrap_or(u64::MAX);
        while left > 0
            && let Some(lines) = self.lines_at(named, reader.read())
        {
            if let Some(command) = Command::from_lines(&lines) {
                self.take_effect(named, &command, Some(&dropped), todo);
            }
            reader.set_read(named.queue.behind(reader.read(), lines.count()));
            left -= lines.count().min(left);
        }
    }
}
