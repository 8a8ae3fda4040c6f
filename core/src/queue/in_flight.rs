//! Commands that have fired and whose effects have not happened yet: a ring, in the order in which they fired.
//!
//! ```text
//! FREE --fire--> FIRED --take--> RUNNING --end--> DONE | FAILED --retire--> RETIRED --> FREE
//!                                         (whoever ran it)
//! ```
//!
//! All but one step is done under the queue's lease. Whoever has run a command says so without it (`SYNC flight-end`),
//! and calls the queue after that. The commands of a *stream*, whose effects go to one signal, may end in any order:
//! their effects happen in the order in which the commands fired. Commands of different streams do not wait for each
//! other.

use super::command::{Command, Effect};
use super::encoding::EncodedCommand;
use super::ring::LINE_WORDS;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};

const FREE: u32 = 0;
const FIRED: u32 = 1;
const RUNNING: u32 = 2;
const DONE: u32 = 3;
const FAILED: u32 = 4;
const RETIRED: u32 = 5;

/// Commands that may be under way at a time.
pub const IN_FLIGHT_MAX: u64 = 64;

/// One command under way.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct InFlightCommand {
    state: AtomicU32,
    /// Who runs it, while it runs.
    runner: AtomicU32,
    words: [[AtomicU64; LINE_WORDS]; 2],
    /// Why it failed: words of a poison, written by its runner before the state.
    failure: [AtomicU64; 3],
}

/// QueueKind there are: numbers that only grow.
#[repr(C)]
#[derive(Debug)]
pub struct InFlightState {
    first: AtomicU64,
    next: AtomicU64,
}

/// How a command under way stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFlightStage {
    /// It waits for somebody to run it.
    Fired,
    /// That rank runs it.
    Running(u32),
    /// It has ended; its effects have not happened. With the words of its poison, if it failed.
    Ended(Option<[u64; 3]>),
    /// Nothing is left of it.
    Retired,
}

/// The commands under way of a queue.
#[derive(Clone, Copy, Debug)]
pub struct InFlight<'q> {
    pub(super) books: &'q InFlightState,
    pub(super) flights: &'q [InFlightCommand],
}

impl<'q> InFlight<'q> {
    fn flight(&self, number: u64) -> &'q InFlightCommand {
        &self.flights[(number % IN_FLIGHT_MAX) as usize]
    }

    /// Whether one more may fire.
    pub fn has_room(&self) -> bool {
        self.books.next.load(Relaxed) - self.books.first.load(Relaxed) < IN_FLIGHT_MAX
    }

    /// Whether nothing is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.books.next.load(Relaxed) == self.books.first.load(Relaxed)
    }

    /// The numbers of those under way, in the order in which they fired.
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.books.first.load(Relaxed)..self.books.next.load(Relaxed)
    }

    /// Whether there are such commands that have not ended.
    pub fn are_open(&self, such: impl Fn(&Command) -> bool) -> bool {
        let is_open =
            |number: &u64| !matches!(self.stage(*number), InFlightStage::Ended(_) | InFlightStage::Retired);
        self.numbers().filter(is_open).any(|number| self.command(number).as_ref().is_some_and(&such))
    }

    /// A command has fired, for which there is room; its number.
    pub fn fire(&self, command: &Command) -> u64 {
        let number = self.books.next.load(Relaxed);
        let flight = self.flight(number);
        let lines = command.lines();
        for (into, from) in flight.words.iter().flatten().zip(lines.words.iter().flatten()) {
            into.store(*from, Relaxed);
        }
        flight.state.store(FIRED, Relaxed);
        self.books.next.store(number + 1, Relaxed);
        number
    }

    /// What it does.
    pub fn command(&self, number: u64) -> Option<Command> {
        let flight = self.flight(number);
        let line = |at: usize| std::array::from_fn(|word| flight.words[at][word].load(Relaxed));
        Command::from_lines(&EncodedCommand { words: [line(0), line(1)] })
    }

    /// How it stands.
    pub fn stage(&self, number: u64) -> InFlightStage {
        let flight = self.flight(number);
        match flight.state.load(Ordering::Acquire) {
            FIRED => InFlightStage::Fired,
            RUNNING => InFlightStage::Running(flight.runner.load(Relaxed)),
            DONE => InFlightStage::Ended(None), // SYNC flight-end
            FAILED => {
                InFlightStage::Ended(Some(std::array::from_fn(|word| flight.failure[word].load(Relaxed))))
            }
            FREE | RETIRED => InFlightStage::Retired,
            _ => InFlightStage::Retired,
        }
    }

    /// A rank runs it from now on.
    pub fn take(&self, number: u64, rank: u32) {
        let flight = self.flight(number);
        flight.runner.store(rank, Relaxed);
        flight.state.store(RUNNING, Relaxed);
    }

    /// It has ended. Whoever ran it; the lease is not needed, but the queue must be called after it.
    pub fn end(&self, number: u64, failure: Option<[u64; 3]>) {
        let flight = self.flight(number);
        for (into, from) in flight.failure.iter().zip(failure.unwrap_or_default()) {
            into.store(from, Relaxed);
        }
        let state = if failure.is_some() { FAILED } else { DONE };
        flight.state.store(state, Ordering::Release); // SYNC flight-end
    }

    /// Whether effects on one of those signals must wait for a command that fired before `number`.
    pub fn holds_back(&self, effects: &[Option<Effect>; 2], number: u64) -> bool {
        let mine = effects.map(|effect| effect.map_or(0, |effect| effect.signal.bits()));
        let before = self.books.first.load(Relaxed)..number;
        before.into_iter().any(|other| {
            let flight = self.flight(other);
            let theirs = [flight.words[0][5].load(Relaxed), flight.words[1][LINE_WORDS - 1].load(Relaxed)];
            let same = |one: u64| one != 0 && theirs.contains(&one);
            flight.state.load(Relaxed) != RETIRED && mine.into_iter().any(same)
        })
    }

    /// Its effects have happened.
    pub fn retire(&self, number: u64) {
        self.flight(number).state.store(RETIRED, Relaxed);
        let next = self.books.next.load(Relaxed);
        let mut first = self.books.first.load(Relaxed);
        while first < next && self.flight(first).state.load(Relaxed) == RETIRED {
            self.flight(first).state.store(FREE, Relaxed);
            first += 1;
        }
        self.books.first.store(first, Relaxed);
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
        let flight = || InFlightCommand {
            state: AtomicU32::new(FREE),
            runner: AtomicU32::new(0),
            words: std::array::from_fn(|_| std::array::from_fn(|_| word())),
            failure: std::array::from_fn(|_| word()),
        };
        (InFlightState { first: word(), next: word() }, (0..IN_FLIGHT_MAX).map(|_| flight()).collect())
    }

    fn raising(signals: [u64; 2]) -> Command {
        let signal = |offset| GlobalAddress::new(Rank(0), offset);
        let effect = |offset| (offset != 0).then(|| Effect { signal: signal(offset), amount: 1 });
        Command { effects: signals.map(effect), ..Command::new(Action::Nothing) }
    }

    #[test]
    fn a_stream_keeps_its_order_and_streams_do_not_wait_for_each_other() {
        let (books, flights) = memory();
        let flights = InFlight { books: &books, flights: &flights };
        let commands = [raising([8, 0]), raising([16, 0]), raising([8, 16]), raising([0, 24])];
        let numbers: Vec<u64> = commands.iter().map(|command| flights.fire(command)).collect();
        let held = |at: usize| flights.holds_back(&commands[at].effects, numbers[at]);
        assert_eq!([held(0), held(1), held(2), held(3)], [false, false, true, false]);
        flights.retire(numbers[1]);
        assert!(held(2), "the first stream is still there");
        flights.retire(numbers[0]);
        assert!(!held(2));
        assert_eq!(flights.numbers(), 2..4);
        assert_eq!(flights.command(2), Some(commands[2]));
    }

    #[test]
    fn places_are_used_again_when_all_before_them_are_retired() {
        let (books, flights) = memory();
        let flights = InFlight { books: &books, flights: &flights };
        let command = raising([8, 0]);
        let numbers: Vec<u64> = (0..IN_FLIGHT_MAX).map(|_| flights.fire(&command)).collect();
        assert_eq!(numbers, (0..IN_FLIGHT_MAX).collect::<Vec<_>>());
        (1..IN_FLIGHT_MAX).for_each(|number| flights.retire(number));
        assert!(!flights.has_room());
        flights.retire(0);
        assert!(flights.has_room() && flights.is_empty());
        assert_eq!(flights.fire(&command), IN_FLIGHT_MAX);
    }

    #[test]
    fn how_a_command_ended_is_known() {
        let (books, flights) = memory();
        let flights = InFlight { books: &books, flights: &flights };
        let number = flights.fire(&raising([0, 0]));
        assert_eq!(flights.stage(number), InFlightStage::Fired);
        flights.take(number, 5);
        assert_eq!(flights.stage(number), InFlightStage::Running(5));
        flights.end(number, Some([1, 2, 3]));
        assert_eq!(flights.stage(number), InFlightStage::Ended(Some([1, 2, 3])));
        flights.retire(number);
        assert_eq!(flights.stage(number), InFlightStage::Retired);
    }
}
