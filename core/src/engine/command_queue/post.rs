//! Posting commands, and taking them back.

use super::lifecycle::LocalQueue;
use super::lookup::ResolvedQueue;
use super::run::Failure;
use crate::base::{Cause, Rank, hint};
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::node::park::WakeMode;
use crate::os::prefetch;
use crate::queue::command::{Action, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::ReceivedCall;
use crate::queue::layout::{CALLS, Queue};
use crate::queue::ring::RingWriters;
use crate::segment::layout::GRANULE;
use crate::segment::{GlobalAddress, layout};
use std::sync::atomic::{Ordering, fence};

/// A queue of any rank, in a word that may be sent to anyone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct QueueName(u64);

/// EventKind is in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// EncodedCommand that were reserved and not read.
    pub unread: u64,
    /// CommandQueues that wait for their triggers.
    pub waiting: u64,
    /// CommandQueues that have fired and whose effects have not happened.
    pub in_flight: u64,
    /// CommandQueues that have failed.
    pub failed: u64,
}

impl QueueName {
    /// Generations that are told apart: all bits below the place.
    pub(super) const GENERATIONS: u32 = GRANULE as u32 - 1;

    /// Queues begin at granules: the bits of a place within one are free.
    pub(super) fn new(at: GlobalAddress, generation: u32) -> QueueName {
        debug_assert!(at.bits().is_multiple_of(GRANULE) && generation <= QueueName::GENERATIONS);
        QueueName(at.bits() | u64::from(generation))
    }

    /// The queue that lies at the same place on another rank, and is its namesake.
    #[inline]
    pub(in crate::engine) fn on(self, rank: Rank) -> QueueName {
        QueueName::new(GlobalAddress::new(rank, self.address().offset()), self.generation())
    }

    /// Where it begins.
    pub fn address(self) -> GlobalAddress {
        GlobalAddress::from_bits(self.0 / GRANULE * GRANULE)
    }

    pub(super) fn generation(self) -> u32 {
        self.0 as u32 & QueueName::GENERATIONS
    }
}

impl Worker {
    /// Posts commands to a queue of this rank's own: all of them, one behind the other, or none. Where the first is.
    #[inline]
    pub fn post_own<'c>(
        &self,
        own: &LocalQueue,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        self.check()?;
        let named = self.named(own);
        let lines = self.check_all(commands.clone(), named.queue.credit().is_some())?;
        if !self.commands().coherent {
            return self.post_remotely(own.name(), &own.card(), lines, commands);
        }
        let first = write_all(&named, lines, commands.clone())?;
        self.announce_all(&named, first, commands, || {
            self.run_queue_and_ready(&self.named(own));
        });
        Ok(first)
    }

    /// The same to a queue of any rank.
    #[inline]
    pub fn post_commands<'c>(
        &self,
        name: QueueName,
        commands: impl Iterator<Item = &'c EncodedCommand> + Clone,
    ) -> Result<u64, Cause> {
        self.check()?;
        self.check_end(name.address())?;
        if !self.commands().reach(self.rank(), name) {
            let card = self.remote_card(name)?;
            let lines = self.check_all(commands.clone(), card.credit.is_some())?;
            return self.post_remotely(name, &card, lines, commands);
        }
        let named = self.named_so(name)?;
        let lines = self.check_all(commands.clone(), named.queue.credit().is_some())?;
        let first = write_all(&named, lines, commands.clone())?;
        self.announce_all(&named, first, commands, || self.run_queue_at(name.address()));
        Ok(first)
    }

    /// Posts a call, of which the handler was checked, to the queue of calls of a rank.
    #[inline]
    pub(in crate::engine) fn post_call(&self, name: QueueName, call: &EncodedCommand) -> Result<(), Cause> {
        self.check()?;
        if !self.has_places_of(call) {
            self.check_closely(call, false)?;
        }
        let (lines, call) = (call.count(), std::iter::once(call));
        if !self.commands().reach(self.rank(), name) {
            return self.post_remotely(name, &self.remote_card(name)?, lines, call).map(drop);
        }
        let named = self.named_so(name)?;
        let first = write_all(&named, lines, call.clone())?;
        self.announce_all(&named, first, call, || {});
        Ok(())
    }

    /// The queue of that name, which is in reach.
    #[inline(always)]
    fn named_so(&self, name: QueueName) -> Result<ResolvedQueue<'_>, Cause> {
        match self.queue_at(name.address()) {
            Some(named) if named.generation == name.generation() => Ok(named),
            _ => Err(Cause::Stale { address: name.address().bits() }),
        }
    }

    /// CommandQueues have been written: somebody looks, and it is recorded, if the rank is traced.
    #[inline(always)]
    fn announce_all<'c>(
        &self,
        named: &ResolvedQueue<'_>,
        first: u64,
        commands: impl Iterator<Item = &'c EncodedCommand>,
        attend: impl FnOnce(),
    ) {
        let begin = self.recorder().map(|recorder| (recorder, self.platform().observer_now_ns()));
        if !self.is_left_to_owner(named) {
            attend();
        }
        if let Some((recorder, begin)) = begin {
            self.record_posts(recorder, begin, named.id(), first, commands);
        }
    }

    /// CommandQueues have been written. True: the owner sees them, and is woken if they are calls; false: it does not
    /// serve, and this thread has to look.
    #[inline(always)]
    fn is_left_to_owner(&self, named: &ResolvedQueue<'_>) -> bool {
        RingWriters::fence_after_reserve();
        if self.node_state().wake_mode() == WakeMode::Fence {
            fence(Ordering::SeqCst); // SYNC serving
        } else {
            crate::base::sync::compiler_fence(Ordering::SeqCst);
        }
        let serving = &named.station().serving;
        if !named.takes_calls() {
            return serving.is_on();
        }
        if !serving.is_by_itself() {
            self.node_state().rank_state(named.owner).wake();
        }
        true
    }

    /// Looks at the queue that begins there.
    #[inline(never)]
    fn run_queue_at(&self, at: GlobalAddress) {
        if let Some(named) = self.queue_at(at) {
            self.run_queue_and_ready(&named);
        }
    }

    /// How many lines those commands take, if nothing can be said against them.
    #[inline(always)]
    fn check_all<'c>(
        &self,
        commands: impl Iterator<Item = &'c EncodedCommand>,
        in_session: bool,
    ) -> Result<u64, Cause> {
        let mut lines = 0;
        for command in commands {
            self.check_command(command, in_session)?;
            lines += command.count();
        }
        Ok(lines)
    }

    /// EventKind can be said against a command in this job, without looking at its operands.
    #[inline(always)]
    pub(in crate::engine) fn check_command(
        &self,
        command: &EncodedCommand,
        in_session: bool,
    ) -> Result<(), Cause> {
        let is_plain = !(command.is_call() || in_session && command.is_triggered());
        if is_plain && self.has_places_of(command) { Ok(()) } else { self.check_closely(command, in_session) }
    }

    /// Whether all that it names can be there.
    #[inline(always)]
    fn has_places_of(&self, command: &EncodedCommand) -> bool {
        let size = self.size() as u64;
        let is_there = |at: GlobalAddress| !at.is_null() & (u64::from(at.rank().0) < size);
        command.all_ends(is_there) && command.all_effects(is_there)
    }

    /// The same of a call, or to say what it is.
    #[inline(never)]
    fn check_closely(&self, command: &EncodedCommand, in_session: bool) -> Result<(), Cause> {
        if in_session && command.is_triggered() {
            let text = "a command of a session queue has no trigger: the queue's own signal lets it go on";
            return Err(Cause::Argument(text.into()));
        }
        let mut outcome = Ok(());
        command.all_ends(|at| {
            outcome = self.check_end(at);
            outcome.is_ok()
        });
        outcome?;
        for Effect { signal, .. } in command.effects().into_iter().flatten() {
            self.check_rank(signal.rank())?;
        }
        let Some(ReceivedCall { peer, handler, len, .. }) = command.call() else { return Ok(()) };
        self.check_rank(peer)?;
        self.check_handler(handler, len)
    }

    #[inline(always)]
    fn check_end(&self, at: GlobalAddress) -> Result<(), Cause> {
        if at.is_null() { Err(Cause::NullAddress) } else { self.check_rank(at.rank()) }
    }

    /// Takes a command back. True: it never fires; false: it has fired, or fires now, once. Waits for whoever runs the
    /// queue at the moment.
    pub fn cancel(&self, own: &LocalQueue, position: u64) -> Result<bool, Cause> {
        let named = self.named(own);
        let queue = &named.queue;
        if queue.cycle().is_some() {
            return Err(Cause::Argument(
                "the commands of a queue that begins anew cannot be taken back".into(),
            ));
        }
        loop {
            let taken = queue.lease().call(self.rank().0);
            let outcome = if taken { self.cancel_now(&named, position) } else { None };
            if taken {
                while !queue.lease().give_back() {} // what others called for is done now
                self.run_queue_and_ready(&named);
            }
            if let Some(cancelled) = outcome {
                return Ok(cancelled);
            }
            self.check()?;
            self.pause();
        }
    }

    /// Takes a command back, under the lease. `None`: it has not arrived yet.
    fn cancel_now(&self, named: &ResolvedQueue<'_>, position: u64) -> Option<bool> {
        let queue = &named.queue;
        if let Some((signal, was_last)) = queue.parked().withdraw(position) {
            if was_last {
                self.disarm(named, signal);
            }
            return Some(true);
        }
        if position < queue.reader().read() {
            return Some(false);
        }
        // Not read yet: it is overwritten by one that does nothing.
        let lines = self.lines_at(named, position)?;
        let mut nothing = EncodedCommand::of(&Action::Nothing);
        nothing.set_count(lines.count());
        queue.line(position).write(position, &nothing.words[0]);
        Some(true)
    }

    /// EventKind is in a queue of this rank's own.
    pub fn queue_stats(&self, own: &LocalQueue) -> QueueStats {
        let queue = own.queue();
        let flights = queue.flights().numbers();
        QueueStats {
            unread: queue.posters().reserved().saturating_sub(queue.reader().read()),
            waiting: u64::from(queue.parked().len()),
            in_flight: flights.end - flights.start,
            failed: queue.failures().0,
        }
    }

    /// The first failure of a command of that queue.
    pub fn first_failure(&self, own: &LocalQueue) -> Option<Cause> {
        let (failed, words) = own.queue().failures();
        let poison: Failure = (failed > 0).then(|| Poison::from_words(words)).flatten();
        poison.map(Poison::cause)
    }

    /// A session queue of this rank's own begins anew after all that was posted to it up to now.
    pub fn repeat(&self, own: &LocalQueue) -> Result<(), Cause> {
        let queue = own.queue();
        let refuse = |text: &str| Err(Cause::Argument(text.into()));
        if queue.credit().is_none() {
            return refuse("only a session queue begins anew: make it with Job::session_queue");
        }
        let lines = self.reserved_in(own)?;
        if lines == 0 {
            return refuse("the queue has no commands: post all of them before it is to begin anew");
        }
        if queue.reader().read() > 0 || lines > queue.capacity() {
            return refuse(
                "one of its commands has run already: let it begin anew before its credit is first raised",
            );
        }
        queue.set_cycle(self.close(own)?);
        let named = self.named(own);
        if !self.reaches_words() {
            self.heads(&named).for_each(|signal| named.arming(signal).arm(named.number, false));
        }
        Ok(())
    }
}

/// How many lines ahead of a post the ring's lines are taken from whoever read them last: it takes as long as a few
/// posts, and whoever reads what is posted does not look that far.
const AHEAD: u64 = 8;

/// Writes commands, which take so many lines, where places are reserved for them; where the first is.
#[inline(always)]
fn write_all<'c>(
    named: &ResolvedQueue<'_>,
    lines: u64,
    commands: impl Iterator<Item = &'c EncodedCommand>,
) -> Result<u64, Cause> {
    let queue = &named.queue;
    let Some(first) = queue.posters().reserve(lines, queue.capacity(), queue.reader()) else {
        return Err(match queue.posters().are_closed() {
            true => closed(named.number, named.owner, queue.cycle().is_some()),
            false => full(named.number, queue.capacity(), lines),
        });
    };
    if !queue.is_there() {
        // It was taken down since it was found, and its memory freed: what was reserved is nobody's.
        return Err(closed(named.number, named.owner, false));
    }
    let mut position = first;
    for command in commands {
        position += write(queue, position, command);
    }
    Ok(first)
}

/// Writes a command that has places reserved; how many lines it took. The first line last: who sees it sees both.
#[inline]
fn write(queue: &Queue<'_>, position: u64, lines: &EncodedCommand) -> u64 {
    let count = lines.count();
    prefetch::for_writing(std::ptr::from_ref(queue.line(position + AHEAD)).cast());
    if count == 2 {
        queue.line(position + 1).write(position + 1, &lines.words[1]);
    }
    queue.line(position).write(position, &lines.words[0]);
    count
}

/// A queue has no room for commands that take so many lines.
#[cold]
pub(super) fn full(number: u32, capacity: u64, lines: u64) -> Cause {
    if lines > capacity {
        return Cause::Argument(format!(
            "the queue has {capacity} places, and this takes {lines}: a command takes one, or two with more than its \
             line holds, and those of post_many find room all at once"
        ));
    }
    let what = if number == CALLS { hint::QUEUE_OF_CALLS } else { hint::COMMAND_QUEUE };
    Cause::Full { what, capacity: capacity as usize }
}

/// A queue takes no commands any more.
#[cold]
pub(super) fn closed(number: u32, owner: Rank, begins_anew: bool) -> Cause {
    match number {
        CALLS => Cause::PeerLeft { peer: owner },
        _ if begins_anew => Cause::QueueRepeats,
        _ => Cause::QueueDropped,
    }
}

const _: () = assert!(layout::LOCAL.start.is_multiple_of(GRANULE));
