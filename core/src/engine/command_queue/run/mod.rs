//! Running a queue: whoever gets its lease reads it, fires what may fire, and lets effects happen in their order.

mod effects;
pub(super) mod in_flight;
pub(super) mod inline;
pub(super) mod poll;
mod prefetch;
pub(super) mod ready_list;
mod remote_notes;
mod shared_copy;

use crate::base::{Cause, Rank};
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::ready_list::{ReadyList, ReadyQueue};
use crate::engine::trace::EventKind;
use crate::engine::worker::Worker;
use crate::fabric::{BOUND, Poison, SEVERAL};
use crate::queue::command::{Command, Trigger};
use crate::queue::encoding::EncodedCommand;
use crate::queue::in_flight::InFlightStage;
use crate::queue::layout::Waiting;
use crate::queue::ring::LINE_WORDS;
use std::sync::atomic::{Ordering, fence};

/// EncodedCommand after which posters are told that there is room again.
const TELL_EVERY: u64 = 32;

/// EventKind became of a command that was read.
enum AcceptResult {
    /// There is no room for it.
    No,
    Fired,
    /// It waits for its trigger.
    Aside,
}

/// EventKind was read.
struct ReadResult {
    /// Anything.
    some: bool,
    /// A command that was put aside.
    aside: bool,
}

/// Why a command failed, as it is kept in shared memory.
pub(in crate::engine::command_queue) type Failure = Option<Poison>;

impl Worker {
    /// A signal has been raised, and commands wait for it: the queue of that mark, or several. Its owner looks, if it
    /// serves; else this thread.
    #[cold]
    pub(in crate::engine) fn raised(&self, owner: Rank, mark: u64) {
        if self.station_of(owner).is_none() {
            return self.notify_helper(owner); // nobody else can look
        }
        if owner == self.rank() || !self.is_polled(owner) {
            let mut todo = ReadyList::default();
            self.note(&mut todo, owner, mark);
            self.run_ready(todo);
        }
    }

    /// Whether another rank looks at its queues itself, or nobody else can.
    #[inline]
    pub(in crate::engine::command_queue) fn is_polled(&self, owner: Rank) -> bool {
        owner != self.rank() && self.station_of(owner).is_none_or(|station| station.serving.is_on())
    }

    /// Notes the queues that a mark of a signal stands for.
    pub(in crate::engine::command_queue) fn note(&self, todo: &mut ReadyList, owner: Rank, mark: u64) {
        if mark != u64::from(SEVERAL) {
            return todo.add(owner, (mark as u32 & !BOUND) - 1);
        }
        if let Some(station) = self.station_of(owner) {
            station.numbers().for_each(|number| todo.add(owner, number));
        }
    }

    /// Looks at those queues, and at those that they let go on.
    pub(in crate::engine::command_queue) fn run_ready(&self, mut todo: ReadyList) {
        loop {
            while let Some(ReadyQueue { owner, queue, held }) = todo.take() {
                if let Some(named) = self.find_queue(owner, queue) {
                    if held {
                        self.run_held(&named, &mut todo);
                    } else {
                        self.run_queue(&named, &mut todo);
                    }
                }
            }
            let Some(ReadyQueue { owner, queue, .. }) = todo.close() else { return };
            if let Some(named) = self.find_queue(owner, queue) {
                self.give_back(&named, None, &mut todo);
            }
        }
    }

    /// Looks at a queue, and at those that it lets go on. Whether anything in it went on here.
    pub(in crate::engine::command_queue) fn run_queue_and_ready(&self, named: &ResolvedQueue<'_>) -> bool {
        let mut todo = ReadyList::default();
        let moved = self.run_queue(named, &mut todo);
        self.run_ready(todo);
        moved
    }

    /// Runs a queue until nothing in it can go on now, unless somebody else is at it, who then sees to that. Whether
    /// anything went on here.
    #[inline]
    pub(in crate::engine::command_queue) fn run_queue(
        &self,
        named: &ResolvedQueue<'_>,
        todo: &mut ReadyList,
    ) -> bool {
        if !named.queue.lease().call(self.rank().0) {
            return false;
        }
        let (long, moved) = self.move_on(named, todo);
        self.give_back(named, long, todo);
        self.fetch_destinations(named);
        moved
    }

    /// The same with the lease in hand, and kept.
    #[inline]
    fn run_held(&self, named: &ResolvedQueue<'_>, todo: &mut ReadyList) {
        let (long, _) = self.move_on(named, todo);
        if long.is_some() {
            todo.let_go(named.owner, named.number);
            self.give_back(named, long, todo);
        }
    }

    /// Gives a lease back, and carries out what was taken for this rank after that. EventKind others called for meanwhile is
    /// done before.
    pub(in crate::engine::command_queue) fn give_back(
        &self,
        named: &ResolvedQueue<'_>,
        long: Option<u64>,
        todo: &mut ReadyList,
    ) {
        let mut long = long;
        loop {
            while !named.queue.lease().give_back() {
                self.move_on_beside(named, todo, &mut long);
            }
            match long.take() {
                Some(flight) => self.begin_flight(named, flight),
                None => return self.leave_to_others(named),
            }
            if !named.queue.lease().call(self.rank().0) {
                return;
            }
            self.move_on_beside(named, todo, &mut long);
        }
    }

    /// EventKind only the queue's rank may run, it finds when it looks; if it sleeps it is woken. Others are told.
    #[inline]
    fn leave_to_others(&self, named: &ResolvedQueue<'_>) {
        if named.queue.for_owner() > 0 && named.owner != self.rank() {
            fence(Ordering::SeqCst); // as after a raised signal
            self.node_state().rank_state(named.owner).wake();
        }
        if named.queue.for_others() > 0 {
            self.leave_remote_notes(named);
        }
    }

    /// Does all that can be done under the lease. A command that takes longer is the answer, taken for this rank; and
    /// whether anything was done.
    #[inline]
    pub(in crate::engine::command_queue) fn move_on(
        &self,
        named: &ResolvedQueue<'_>,
        todo: &mut ReadyList,
    ) -> (Option<u64>, bool) {
        let mut long = None;
        let moved = self.move_on_beside(named, todo, &mut long);
        (long, moved || long.is_some())
    }

    /// The same, where one may have been taken already.
    fn move_on_beside(
        &self,
        named: &ResolvedQueue<'_>,
        todo: &mut ReadyList,
        long: &mut Option<u64>,
    ) -> bool {
        if !named.queue.is_there() {
            return false;
        }
        let mut moved = false;
        loop {
            moved |= self.fire_met(named, todo);
            let read = self.read_ring(named, todo);
            // Whose triggers were met while they were put aside is seen now.
            let mut again = read.aside;
            if !named.queue.flights().is_empty() {
                again |= self.take_flights(named, long);
                again |= self.retire(named, todo);
            }
            moved |= again || read.some;
            if !again && !self.watch_head(named) {
                return moved;
            }
        }
    }

    /// Fires waiting commands whose triggers are met, or will never be. Whether there were any.
    #[inline]
    fn fire_met(&self, named: &ResolvedQueue<'_>, todo: &mut ReadyList) -> bool {
        let lists = named.queue.parked();
        let mut moved = false;
        while named.queue.flights().has_room() {
            let met = lists.triggers().enumerate().find_map(|(at, trigger)| {
                named.firing(self, trigger).map(|failure| (at, trigger.signal, failure))
            });
            let Some((at, signal, failure)) = met else { break };
            let Some((lines, position)) = lists.first(at) else {
                self.unreadable(named);
                break;
            };
            let failure = match lines.triggers()[1].filter(|_| failure.is_none()) {
                None => failure,
                Some(second) => match named.firing(self, second) {
                    Some(failure) => failure,
                    None => {
                        self.release(named, at, signal); // which leaves room for it
                        self.park(named, &lines.past_first(), second, position);
                        moved = true;
                        continue;
                    }
                },
            };
            match Command::from_lines(&lines) {
                Some(command) => self.fire(named, &command, position, failure, todo),
                None => self.unreadable(named),
            }
            self.release(named, at, signal); // after what others wait for
            moved = true;
        }
        moved
    }

    /// The first command of that list waits no more.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn release(
        &self,
        named: &ResolvedQueue<'_>,
        at: usize,
        signal: u32,
    ) {
        if named.queue.parked().release(at) {
            self.disarm(named, signal);
        }
    }

    pub(in crate::engine::command_queue) fn disarm(&self, named: &ResolvedQueue<'_>, signal: u32) {
        named.arming(signal).disarm(named.number);
    }

    /// Reads what was posted, as far as there is room for it.
    #[inline]
    fn read_ring(&self, named: &ResolvedQueue<'_>, todo: &mut ReadyList) -> ReadResult {
        let queue = &named.queue;
        let begin = queue.reader().read();
        let (mut position, mut aside) = (begin, false);
        while let Some(lines) = self.next_lines(named, position) {
            match self.take_in(named, &lines, position, todo) {
                AcceptResult::No => break,
                AcceptResult::Fired => {}
                AcceptResult::Aside => aside = true,
            }
            position = queue.behind(position, lines.count());
            queue.count_command();
            if position.wrapping_sub(begin).is_multiple_of(TELL_EVERY) {
                queue.reader().set_read(position);
            }
        }
        let some = position != begin;
        if some {
            queue.reader().set_read(position);
        }
        ReadResult { some, aside }
    }

    /// The command at that position, if it is there and may be read.
    #[inline]
    fn next_lines(&self, named: &ResolvedQueue<'_>, position: u64) -> Option<EncodedCommand> {
        named.credit(self)?;
        let lines = self.lines_at(named, position)?;
        named.head_goes_on(self, &lines, named.queue.place_of(position).1).map(|_| lines)
    }

    /// The command at that position, if it is there.
    #[inline]
    pub(in crate::engine) fn lines_at(
        &self,
        named: &ResolvedQueue<'_>,
        position: u64,
    ) -> Option<EncodedCommand> {
        let queue = &named.queue;
        let (written, _) = queue.place_of(position);
        let line = queue.line(written);
        if !line.holds(written) {
            return None;
        }
        let mut lines = EncodedCommand { words: [line.read(), [0; LINE_WORDS]] };
        if lines.count() == 2 {
            lines.words[1] = queue.line(written + 1).read();
        }
        Some(lines)
    }

    /// Fires a command that was read, or lets it wait.
    #[inline(always)]
    fn take_in(
        &self,
        named: &ResolvedQueue<'_>,
        lines: &EncodedCommand,
        position: u64,
        todo: &mut ReadyList,
    ) -> AcceptResult {
        let mut failure = None;
        if let [Some(trigger), also] = lines.triggers() {
            match named.firing(self, trigger) {
                Some(how) => failure = how,
                None => return self.park(named, lines, trigger, position),
            }
            if also.is_some() && failure.is_none() {
                return self.take_in_second(named, lines, position, todo);
            }
            // Its signal may have been raised since those that wait were looked at: they fire first.
            if !named.queue.parked().is_empty() {
                self.fire_met(named, todo);
            }
        }
        if !named.queue.flights().has_room() {
            return AcceptResult::No;
        }
        if named.queue.credit().is_some() {
            failure = named.credit(self).flatten();
        }
        if failure.is_none() {
            failure = named.head_goes_on(self, lines, named.queue.place_of(position).1).flatten();
        }
        match Command::from_lines(lines) {
            Some(command) => self.fire(named, &command, position, failure, todo),
            None => self.unreadable(named),
        }
        AcceptResult::Fired
    }

    /// The same of one that has two triggers, of which the first is met.
    #[inline(never)]
    fn take_in_second(
        &self,
        named: &ResolvedQueue<'_>,
        lines: &EncodedCommand,
        position: u64,
        todo: &mut ReadyList,
    ) -> AcceptResult {
        self.take_in(named, &lines.past_first(), position, todo)
    }

    #[cold]
    fn unreadable(&self, named: &ResolvedQueue<'_>) {
        let cause = Cause::Bug("a command that nobody can have posted".into());
        named.queue.count_failure(Poison::of(&cause, self.rank()).words());
    }

    /// Lets a command wait for its trigger. The counter is looked at again after that: the caller goes round once more.
    fn park(
        &self,
        named: &ResolvedQueue<'_>,
        lines: &EncodedCommand,
        trigger: Trigger,
        position: u64,
    ) -> AcceptResult {
        let lists = named.queue.parked();
        if !lists.has_room() {
            return AcceptResult::No;
        }
        let bound = lines.are_bound();
        if lists.park(lines, trigger, position) || bound {
            named.arming(trigger.signal).arm(named.number, bound);
        }
        AcceptResult::Aside
    }

    /// A command fires: what is short happens now, the rest is under way. There is room for it among the flights.
    #[inline(always)]
    fn fire(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
        position: u64,
        failure: Failure,
        todo: &mut ReadyList,
    ) {
        if let Some(recorder) = self.recorder() {
            return self.fire_and_record(recorder, named, command, position, failure, todo);
        }
        if failure.is_none() && self.try_as_it_fires(named, command) {
            return self.follow_up(named, command, Some(None), todo);
        }
        self.fire_otherwise(named, command, failure, todo);
    }

    /// Does what a command that fires says, if that is short, and it need not wait for another: two that combine values
    /// each read what is there before they write.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn try_as_it_fires(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
    ) -> bool {
        let waits = command.reduces() && named.queue.flights().are_open(Command::reduces);
        !waits && self.try_inline(command)
    }

    /// One that is not run at once, or will never be.
    #[inline(never)]
    fn fire_otherwise(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
        failure: Failure,
        todo: &mut ReadyList,
    ) {
        let outcome = self.run_otherwise(named, command, failure);
        self.follow_up(named, command, outcome, todo);
    }

    /// How such a one ended, if it did.
    pub(in crate::engine::command_queue) fn run_otherwise(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
        failure: Failure,
    ) -> Option<Failure> {
        match failure {
            Some(poison) => Some(Some(poison)),
            None if command.calls().is_some() => self.call_inline(named, command),
            None => None,
        }
    }

    /// The effects of a command that fired happen, or it is under way.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn follow_up(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
        outcome: Option<Failure>,
        todo: &mut ReadyList,
    ) {
        match outcome {
            Some(failure) if self.may_take_effect(named, command) => {
                self.take_effect(named, command, failure.as_ref(), todo);
            }
            Some(failure) => {
                let flights = named.queue.flights();
                let number = flights.fire(command);
                flights.end(number, failure.map(Poison::words));
            }
            None => drop(named.queue.flights().fire(command)),
        }
    }

    /// Whether the effects of a command that fires now would overtake those of no other.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn may_take_effect(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
    ) -> bool {
        let flights = named.queue.flights();
        flights.is_empty() || !flights.holds_back(&command.effects, flights.numbers().end)
    }

    /// Whether this rank may run a command that fired.
    #[inline]
    pub(in crate::engine::command_queue) fn may_run(&self, command: &Command) -> bool {
        command.runner().is_none_or(|rank| rank == self.rank())
    }

    /// Looks for commands that this rank can run, at once or, one of them, when it has given the lease back.
    fn take_flights(&self, named: &ResolvedQueue<'_>, long: &mut Option<u64>) -> bool {
        let flights = named.queue.flights();
        let (mut moved, mut for_owner, mut for_others, mut for_room) = (false, 0, 0, 0);
        let (mut calls_wait, mut reduces_wait) = (false, false);
        for number in flights.numbers() {
            let stage = flights.stage(number);
            if !matches!(stage, InFlightStage::Fired | InFlightStage::Running(_)) {
                continue;
            }
            let Some(command) = flights.command(number) else { continue };
            let (is_call, reduces) = (command.calls().is_some(), command.reduces());
            let (waits, is_next) = (calls_wait && is_call, !(reduces && reduces_wait));
            (calls_wait, reduces_wait) = (calls_wait || is_call, reduces_wait || reduces);
            if stage != InFlightStage::Fired || !is_next {
                continue; // whoever ends the reduction before it looks again
            }
            let may_run = self.may_run(&command);
            if waits {
                for_room += 1; // calls keep their order
            } else if let Some(outcome) = self.forward_flight(named, &command) {
                match outcome {
                    Some(failure) => flights.end(number, failure.map(Poison::words)),
                    None => for_room += 1,
                }
                calls_wait = outcome.is_none();
                moved |= outcome.is_some();
            } else if !may_run && self.commands().is_direct() {
                let is_owners = command.runner() == Some(named.owner);
                for_owner += u32::from(is_owners);
                for_others += u32::from(!is_owners);
            } else if may_run && self.try_in_flight_inline(named, number, &command) {
                flights.end(number, None);
                moved = true;
            } else if long.is_none() {
                flights.take(number, self.rank().0);
                *long = Some(number);
            } else {
                for_owner += 1; // whoever comes first
            }
        }
        if named.owner != self.rank() {
            for_owner += std::mem::take(&mut for_room); // nobody says when there is room: the queue's rank asks again
        }
        named.queue.set_waiting(Waiting { for_owner, for_others, for_room });
        moved
    }

    /// Lets the effects of commands that have ended happen, each stream in its order.
    pub(in crate::engine::command_queue) fn retire(
        &self,
        named: &ResolvedQueue<'_>,
        todo: &mut ReadyList,
    ) -> bool {
        let flights = named.queue.flights();
        let mut moved = false;
        for number in flights.numbers() {
            if let InFlightStage::Ended(failure) = flights.stage(number)
                && let Some(command) = flights.command(number)
                && !flights.holds_back(&command.effects, number)
            {
                self.record_in_flight(named, number, false, EventKind::Retired);
                let poison = failure.and_then(Poison::from_words);
                self.take_effect(named, &command, poison.as_ref(), todo);
                flights.retire(number);
                moved = true;
            }
        }
        moved
    }
}
