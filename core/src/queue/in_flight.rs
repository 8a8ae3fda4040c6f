//! In-flight commands: commands that have fired and whose effects have not happened yet. They are kept in a ring, in
//! the order in which they fired.
//!
//! ```text
//! FREE --fire--> FIRED --take--> RUNNING --end--> DONE | FAILED --retire--> RETIRED --> FREE
//!                                         (the rank that ran it)
//! ```
//!
//! All steps but one happen under the queue's lease. The rank that has run a command records its end without the lease
//! (`SYNC command-end`), and runs the queue after that. The commands of a *stream* have effects on the same signal.
//! They may end in any order, but their effects happen in the order in which the commands fired. Commands of different
//! streams do not wait for each other.

use super::command::{Command, Effect};
use super::encoding::EncodedCommand;
use super::ring::LINE_WORDS;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};

const FREE: u32 = 0;
const FIRED: u32 = 1;
const RUNNING: u32 = 2;
const DONE: u32 = 3;
const FAILED: u32 = 4;
const RETIRED: u32 = 5;

/// Most commands of a queue that are in flight at a time.
pub const IN_FLIGHT_MAX: u64 = 64;

/// One in-flight command.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct InFlightCommand {
    /// FREE, FIRED, RUNNING, DONE, FAILED or RETIRED. Written under the lease, except DONE and FAILED, which the rank
    /// that runs the command writes without the lease.
    state: AtomicU32,
    /// The rank that runs the command, while it runs. Written under the lease.
    runner: AtomicU32,
    /// The encoded command. Written under the lease.
    words: [[AtomicU64; LINE_WORDS]; 2],
    /// Why the command failed: the words of a poison. The rank that ran it writes them before the state.
    failure: [AtomicU64; 3],
}

/// The range of in-flight commands. Both numbers only grow; they are written under the lease.
#[repr(C)]
#[derive(Debug)]
pub struct InFlightState {
    /// Number of the oldest in-flight command.
    first: AtomicU64,
    /// Number of the next command to fire.
    next: AtomicU64,
}

/// The state of an in-flight command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFlightStage {
    /// The command waits for a rank to run it.
    Fired,
    /// The rank runs the command.
    Running(u32),
    /// The command has ended and its effects have not happened. Holds the words of its poison, if it failed.
    Ended(Option<[u64; 3]>),
    /// The effects of the command have happened, or the entry is free.
    Retired,
}

/// The in-flight commands of a queue.
#[derive(Clone, Copy, Debug)]
pub struct InFlight<'q> {
    pub(super) state: &'q InFlightState,
    pub(super) in_flight: &'q [InFlightCommand],
}

impl<'q> InFlight<'q> {
    fn entry(&self, number: u64) -> &'q InFlightCommand {
        &self.in_flight[(number % IN_FLIGHT_MAX) as usize]
    }

    /// Returns true if one more command may fire. Without the lease it is a guess, and `first` may have passed the
    /// `next` that is seen.
    pub fn has_room(&self) -> bool {
        self.state.next.load(Relaxed).saturating_sub(self.state.first.load(Relaxed)) < IN_FLIGHT_MAX
    }

    /// Returns true if no command is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.state.next.load(Relaxed) == self.state.first.load(Relaxed)
    }

    /// The numbers of the in-flight commands, in the order in which they fired.
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.state.first.load(Relaxed)..self.state.next.load(Relaxed)
    }

    /// Returns true if `such` holds for at least one command that has not ended.
    pub fn any_unfinished(&self, such: impl Fn(&Command) -> bool) -> bool {
        let is_open =
            |number: &u64| !matches!(self.stage(*number), InFlightStage::Ended(_) | InFlightStage::Retired);
        self.numbers().filter(is_open).any(|number| self.command(number).as_ref().is_some_and(&such))
    }

    /// Adds a command that has fired, and returns its number. There must be room for it.
    pub fn fire(&self, command: &Command) -> u64 {
        let number = self.state.next.load(Relaxed);
        let entry = self.entry(number);
        let encoded = command.encode();
        for (into, from) in entry.words.iter().flatten().zip(encoded.words.iter().flatten()) {
            into.store(*from, Relaxed);
        }
        entry.state.store(FIRED, Relaxed);
        self.state.next.store(number + 1, Relaxed);
        number
    }

    /// Decodes a command.
    pub fn command(&self, number: u64) -> Option<Command> {
        let entry = self.entry(number);
        let line = |at: usize| std::array::from_fn(|word| entry.words[at][word].load(Relaxed));
        Command::decode(&EncodedCommand { words: [line(0), line(1)] })
    }

    /// The state of a command.
    pub fn stage(&self, number: u64) -> InFlightStage {
        let entry = self.entry(number);
        match entry.state.load(Ordering::Acquire) {
            FIRED => InFlightStage::Fired,
            RUNNING => InFlightStage::Running(entry.runner.load(Relaxed)),
            DONE => InFlightStage::Ended(None), // SYNC command-end
            FAILED => {
                InFlightStage::Ended(Some(std::array::from_fn(|word| entry.failure[word].load(Relaxed))))
            }
            FREE | RETIRED => InFlightStage::Retired,
            _ => InFlightStage::Retired,
        }
    }

    /// Records that a rank runs the command.
    pub fn take(&self, number: u64, rank: u32) {
        let entry = self.entry(number);
        entry.runner.store(rank, Relaxed);
        entry.state.store(RUNNING, Relaxed);
    }

    /// Records that the command has ended. The rank that ran the command calls this function. The rank needs no lease
    /// for the call, but must run the queue after it.
    pub fn end(&self, number: u64, failure: Option<[u64; 3]>) {
        let entry = self.entry(number);
        for (into, from) in entry.failure.iter().zip(failure.unwrap_or_default()) {
            into.store(from, Relaxed);
        }
        let state = if failure.is_some() { FAILED } else { DONE };
        entry.state.store(state, Ordering::Release); // SYNC command-end
    }

    /// Returns true if effects on one of these signals must wait for a command that fired before `number`.
    pub fn must_wait(&self, effects: &[Option<Effect>; 2], number: u64) -> bool {
        let mine = effects.map(|effect| effect.map_or(0, |effect| effect.signal.bits()));
        let before = self.state.first.load(Relaxed)..number;
        before.into_iter().any(|other| {
            let entry = self.entry(other);
            let theirs = [entry.words[0][5].load(Relaxed), entry.words[1][LINE_WORDS - 1].load(Relaxed)];
            let same = |one: u64| one != 0 && theirs.contains(&one);
            entry.state.load(Relaxed) != RETIRED && mine.into_iter().any(same)
        })
    }

    /// Records that the effects of the command have happened.
    pub fn retire(&self, number: u64) {
        self.entry(number).state.store(RETIRED, Relaxed);
        let next = self.state.next.load(Relaxed);
        let mut first = self.state.first.load(Relaxed);
        while first < next && self.entry(first).state.load(Relaxed) == RETIRED {
            self.entry(first).state.store(FREE, Relaxed);
            first += 1;
        }
        self.state.first.store(first, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Action;
    use super::*;
    use crate::base::Rank;
    use crate::segment::GlobalAddress;

    fn memory() -> (InFlightState, Vec<InFlightCommand>) {
        let word = || AtomicU64::new(0);
        let entry = || InFlightCommand {
            state: AtomicU32::new(FREE),
            runner: AtomicU32::new(0),
            words: std::array::from_fn(|_| std::array::from_fn(|_| word())),
            failure: std::array::from_fn(|_| word()),
        };
        (InFlightState { first: word(), next: word() }, (0..IN_FLIGHT_MAX).map(|_| entry()).collect())
    }

    fn raising(signals: [u64; 2]) -> Command {
        let signal = |offset| GlobalAddress::new(Rank(0), offset);
        let effect = |offset| (offset != 0).then(|| Effect { signal: signal(offset), amount: 1 });
        Command { effects: signals.map(effect), ..Command::new(Action::Nothing) }
    }

    #[test]
    fn effects_wait_only_for_earlier_commands_with_the_same_signal() {
        let (state, in_flight) = memory();
        let in_flight = InFlight { state: &state, in_flight: &in_flight };
        let commands = [raising([8, 0]), raising([16, 0]), raising([8, 16]), raising([0, 24])];
        let numbers: Vec<u64> = commands.iter().map(|command| in_flight.fire(command)).collect();
        let held = |at: usize| in_flight.must_wait(&commands[at].effects, numbers[at]);
        assert_eq!([held(0), held(1), held(2), held(3)], [false, false, true, false]);
        in_flight.retire(numbers[1]);
        assert!(held(2), "a command on the first signal has not retired");
        in_flight.retire(numbers[0]);
        assert!(!held(2));
        assert_eq!(in_flight.numbers(), 2..4);
        assert_eq!(in_flight.command(2), Some(commands[2]));
    }

    #[test]
    fn entries_are_reused_when_all_before_them_are_retired() {
        let (state, in_flight) = memory();
        let in_flight = InFlight { state: &state, in_flight: &in_flight };
        let command = raising([8, 0]);
        let numbers: Vec<u64> = (0..IN_FLIGHT_MAX).map(|_| in_flight.fire(&command)).collect();
        assert_eq!(numbers, (0..IN_FLIGHT_MAX).collect::<Vec<_>>());
        (1..IN_FLIGHT_MAX).for_each(|number| in_flight.retire(number));
        assert!(!in_flight.has_room());
        in_flight.retire(0);
        assert!(in_flight.has_room() && in_flight.is_empty());
        assert_eq!(in_flight.fire(&command), IN_FLIGHT_MAX);
    }

    #[test]
    fn a_look_without_the_lease_may_see_first_behind_next() {
        let (state, in_flight) = memory();
        state.first.store(5, Relaxed);
        state.next.store(4, Relaxed);
        let in_flight = InFlight { state: &state, in_flight: &in_flight };
        assert!(in_flight.has_room() && in_flight.numbers().next().is_none());
    }

    #[test]
    fn stage_follows_a_command_to_its_failure() {
        let (state, in_flight) = memory();
        let in_flight = InFlight { state: &state, in_flight: &in_flight };
        let number = in_flight.fire(&raising([0, 0]));
        assert_eq!(in_flight.stage(number), InFlightStage::Fired);
        in_flight.take(number, 5);
        assert_eq!(in_flight.stage(number), InFlightStage::Running(5));
        in_flight.end(number, Some([1, 2, 3]));
        assert_eq!(in_flight.stage(number), InFlightStage::Ended(Some([1, 2, 3])));
        in_flight.retire(number);
        assert_eq!(in_flight.stage(number), InFlightStage::Retired);
    }
}
