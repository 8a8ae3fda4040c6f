//! Running a queue: whoever gets its lease reads it, fires what may fire, and lets effects happen in their order.

use super::reach::Named;
use super::todo::Todo;
use crate::base::Rank;
use crate::engine::action::Action;
use crate::engine::machine::Machine;
use crate::fabric::{Poison, Posted, Refused, SEVERAL};
use crate::queue::command::{Command, Effect, Lines, Trigger, trigger_of};
use crate::queue::flights::Stage;
use crate::queue::parked::reached;
use crate::queue::ring::LINE_WORDS;
use crate::segment::GlobalAddress;

/// Lines after which posters are told that there is room again.
const TELL_EVERY: u64 = 32;

/// Why a command failed, as it is kept in shared memory.
pub(super) type Failure = Option<Poison>;

impl Machine {
    /// A signal has been raised, and commands wait for it: the queue of that mark, or several. Its owner looks, if it
    /// serves; else this thread.
    #[cold]
    pub(in crate::engine) fn raised(&self, owner: Rank, mark: u64) {
        let serves = self.station_of(owner).is_none_or(|station| station.serving.is_on());
        if owner == self.rank() || !serves {
            let mut todo = Todo::default();
            self.note(&mut todo, owner, mark);
            self.work_off(todo);
        }
    }

    /// Notes the queues that a mark of a signal stands for.
    pub(super) fn note(&self, todo: &mut Todo, owner: Rank, mark: u64) {
        if mark != u64::from(SEVERAL) {
            return todo.add(owner, mark as u32 - 1);
        }
        if let Some(station) = self.station_of(owner) {
            station.numbers().for_each(|number| todo.add(owner, number));
        }
    }

    /// Looks at those queues, and at those that they let go on.
    pub(super) fn work_off(&self, mut todo: Todo) {
        while let Some((owner, number)) = todo.take() {
            if let Some(named) = self.find_queue(owner, number) {
                self.attend(&named, &mut todo);
            }
        }
    }

    /// Runs a queue until nothing in it can go on now, unless somebody else is at it, who then sees to that.
    pub(super) fn attend(&self, named: &Named<'_>, todo: &mut Todo) {
        let (lease, me) = (named.queue.lease(), self.rank().0);
        while lease.call(me) {
            let mut long = None;
            loop {
                if named.queue.is_there() {
                    self.move_on(named, todo, &mut long);
                }
                if lease.give_back() {
                    break;
                }
            }
            match long {
                Some(flight) => self.begin_flight(named, flight),
                None => return,
            }
        }
    }

    /// Does all that can be done under the lease. A command that takes longer is left in `long`, taken for this rank.
    fn move_on(&self, named: &Named<'_>, todo: &mut Todo, long: &mut Option<u64>) {
        loop {
            let mut moved = self.fire_met(named, todo);
            moved |= self.read_ring(named, todo);
            moved |= self.take_flights(named, long);
            moved |= self.retire(named, todo);
            if !moved {
                return;
            }
        }
    }

    /// Fires waiting commands whose triggers are met, or will never be.
    fn fire_met(&self, named: &Named<'_>, todo: &mut Todo) -> bool {
        let lists = named.queue.parked();
        let mut moved = false;
        while named.queue.flights().has_room() {
            let met = lists.triggers().find_map(|trigger| {
                let failure = self.poison_of(named, trigger);
                let met = failure.is_some()
                    || reached(self.count_of(named.owner, trigger.signal), trigger.threshold);
                met.then_some((trigger.signal, failure))
            });
            let Some((signal, failure)) = met else { break };
            let Some(released) = lists.release(signal) else { break };
            if released.was_last {
                self.disarm(named, signal);
            }
            match released.command {
                Some(command) => self.fire(named, &command, failure, todo),
                None => self.unreadable(named),
            }
            moved = true;
        }
        moved
    }

    pub(super) fn disarm(&self, named: &Named<'_>, signal: u32) {
        if let Some(arming) = self.arming_of(named.owner, signal) {
            arming.disarm(named.number);
        }
    }

    fn poison_of(&self, named: &Named<'_>, trigger: Trigger) -> Failure {
        self.arming_of(named.owner, trigger.signal)?.poisoned()
    }

    /// Reads what was posted, as far as there is room for it.
    fn read_ring(&self, named: &Named<'_>, todo: &mut Todo) -> bool {
        let queue = &named.queue;
        let begin = queue.reader().read();
        let mut position = begin;
        while let Some(lines) = self.next_lines(named, position) {
            if !self.take_in(named, &lines, position, todo) {
                break;
            }
            position += lines.count();
            queue.count_command();
            if (position - begin).is_multiple_of(TELL_EVERY) {
                queue.reader().set_read(position);
            }
        }
        queue.reader().set_read(position);
        position != begin
    }

    /// The command at that position, if it is there and may be read.
    #[inline]
    fn next_lines(&self, named: &Named<'_>, position: u64) -> Option<Lines> {
        let queue = &named.queue;
        if let Some(credit) = queue.credit()
            && (self.count_of(named.owner, credit).wrapping_sub(queue.commands()) as i64) <= 0
        {
            return None;
        }
        self.lines_at(named, position)
    }

    /// The command at that position, if it is there.
    #[inline]
    pub(super) fn lines_at(&self, named: &Named<'_>, position: u64) -> Option<Lines> {
        let queue = &named.queue;
        let written = queue.cycle().map_or(position, |cycle| position % cycle);
        let line = queue.line(written);
        if !line.holds(written) {
            return None;
        }
        let mut lines = Lines { words: [line.read(), [0; LINE_WORDS]] };
        if lines.count() == 2 {
            lines.words[1] = queue.line(written + 1).read();
        }
        Some(lines)
    }

    /// Fires a command that was read, or lets it wait. False: there is no room for either.
    #[inline]
    fn take_in(&self, named: &Named<'_>, lines: &Lines, position: u64, todo: &mut Todo) -> bool {
        let mut failure = None;
        if let Some(trigger) = trigger_of(lines.words[0][0], lines.words[0][1]) {
            failure = self.poison_of(named, trigger);
            let met =
                failure.is_some() || reached(self.count_of(named.owner, trigger.signal), trigger.threshold);
            if !met {
                return self.park(named, lines, trigger, position);
            }
        }
        if !named.queue.flights().has_room() {
            return false;
        }
        match Command::from_lines(lines) {
            Some(command) => self.fire(named, &command, failure, todo),
            None => self.unreadable(named),
        }
        true
    }

    #[cold]
    fn unreadable(&self, named: &Named<'_>) {
        let cause = crate::base::Cause::Bug("a command that nobody can have posted".into());
        named.queue.count_failure(Poison::of(&cause, self.rank()).words());
    }

    /// Lets a command wait for its trigger. The counter is looked at again after that: the caller goes round once more.
    fn park(&self, named: &Named<'_>, lines: &Lines, trigger: Trigger, position: u64) -> bool {
        let lists = named.queue.parked();
        if !lists.has_room() {
            return false;
        }
        if lists.park(lines, trigger, position)
            && let Some(arming) = self.arming_of(named.owner, trigger.signal)
        {
            arming.arm(named.number);
        }
        true
    }

    /// A command fires: what is short happens now, the rest is under way. There is room for it among the flights.
    #[inline]
    fn fire(&self, named: &Named<'_>, command: &Command, failure: Failure, todo: &mut Todo) {
        let outcome = match failure {
            Some(poison) => Some(Some(poison)),
            None if self.may_run(command) => self.run_at_once(command),
            None => None,
        };
        let flights = named.queue.flights();
        match outcome {
            Some(failure)
                if flights.is_empty() || !flights.holds_back(&command.effects, flights.numbers().end) =>
            {
                self.take_effect(named, command, failure, todo);
            }
            Some(failure) => {
                let number = flights.fire(command);
                flights.end(number, failure.map(Poison::words));
            }
            None => drop(flights.fire(command)),
        }
    }

    /// Whether this rank may run a command that fired.
    #[inline]
    pub(super) fn may_run(&self, command: &Command) -> bool {
        command.runner().is_none_or(|rank| rank == self.rank())
    }

    /// Looks for commands that this rank can run, at once or, one of them, when it has given the lease back.
    fn take_flights(&self, named: &Named<'_>, long: &mut Option<u64>) -> bool {
        let flights = named.queue.flights();
        let (mut moved, mut for_owner) = (false, 0);
        for number in flights.numbers() {
            if flights.stage(number) != Stage::Fired {
                continue;
            }
            let Some(command) = flights.command(number) else { continue };
            if !self.may_run(&command) {
                for_owner += u32::from(command.runner() == Some(named.owner));
            } else if let Some(failure) = self.run_at_once(&command) {
                flights.end(number, failure.map(Poison::words));
                moved = true;
            } else if long.is_none() {
                flights.take(number, self.rank().0);
                *long = Some(number);
            } else {
                for_owner += 1; // whoever comes first
            }
        }
        named.queue.set_for_owner(for_owner);
        moved
    }

    /// Lets the effects of commands that have ended happen, each stream in its order.
    pub(super) fn retire(&self, named: &Named<'_>, todo: &mut Todo) -> bool {
        let flights = named.queue.flights();
        let mut moved = false;
        for number in flights.numbers() {
            if let Stage::Ended(failure) = flights.stage(number)
                && let Some(command) = flights.command(number)
                && !flights.holds_back(&command.effects, number)
            {
                self.take_effect(named, &command, failure.and_then(Poison::from_words), todo);
                flights.retire(number);
                moved = true;
            }
        }
        moved
    }

    /// What a command was to bring about happens; if it failed, the signals are poisoned instead.
    #[inline]
    pub(super) fn take_effect(
        &self,
        named: &Named<'_>,
        command: &Command,
        failure: Failure,
        todo: &mut Todo,
    ) {
        if let Some(poison) = failure {
            named.queue.count_failure(poison.words());
        }
        for Effect { signal, amount } in command.effects.into_iter().flatten() {
            let accept = || self.open(raising(signal, amount, failure), None, false);
            let posted = match failure {
                None => self.fabric().raise(&accept, signal, u64::from(amount)),
                Some(poison) => self.fabric().poison(&accept, signal, poison),
            };
            match posted {
                Ok(Posted::Done(0)) | Ok(Posted::Started) => {}
                Ok(Posted::Done(mark)) => self.note(todo, signal.rank(), mark),
                Err(Refused::Never(cause)) => {
                    named.queue.count_failure(Poison::of(&cause, self.rank()).words());
                }
                Err(Refused::Again | Refused::Relay) => self.hold_unclaimed(raising(signal, amount, failure)),
            }
        }
    }
}

/// An effect as an operation, for a fabric that does not raise signals at once.
fn raising(signal: GlobalAddress, amount: u32, failure: Failure) -> Action {
    match failure {
        None => Action::Raise { signal, amount: u64::from(amount) },
        Some(poison) => Action::Poison { signal, poison },
    }
}
