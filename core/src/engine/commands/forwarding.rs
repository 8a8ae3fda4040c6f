//! Calls of handlers that fire in a queue of commands: whoever runs the queue hands them on to the queue of calls of
//! the rank that they are for. One after the other: a call that finds no room there holds up the calls behind it, and
//! nothing else.

use super::attend::Failure;
use super::reach::Named;
use crate::base::Rank;
use crate::engine::machine::Machine;
use crate::fabric::Poison;
use crate::queue::command::Command;
use crate::queue::flights::Stage;

/// A call under way that this rank hands on.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Taken {
    owner: Rank,
    number: u32,
    generation: u32,
    flight: u64,
}

impl Machine {
    /// A call fires: how it ended, if it could be handed on at once.
    pub(super) fn call_at_once(&self, named: &Named<'_>, command: &Command) -> Option<Failure> {
        let flights = named.queue.flights();
        let is_call = |number| flights.command(number).is_some_and(|command| command.calls().is_some());
        let is_open = |number: &u64| !matches!(flights.stage(*number), Stage::Ended(_) | Stage::Retired);
        if !self.reaches_words() || flights.numbers().filter(is_open).any(is_call) {
            return None;
        }
        self.hand_on(named, command)
    }

    /// The next call under way: how it ended, the inner none if there is no room for it. The outer is none if it is no
    /// call, or if handing it on takes its time.
    pub(super) fn forward_flight(&self, named: &Named<'_>, command: &Command) -> Option<Option<Failure>> {
        let is_quick = command.calls().is_some() && self.reaches_words();
        is_quick.then(|| self.hand_on(named, command))
    }

    /// A call that was taken for this rank is handed on by a thread that may wait for the fabric.
    pub(super) fn forward_later(&self, named: &Named<'_>, flight: u64) {
        if let Some(calls) = self.calls() {
            let Named { owner, number, generation, .. } = *named;
            calls.take_over(Taken { owner, number, generation, flight });
        }
    }

    /// Hands on a call that was taken for this rank before. False: there is no room.
    pub(in crate::engine) fn forward_taken(&self, taken: Taken) -> bool {
        let found = self.find_queue(taken.owner, taken.number);
        let Some(named) = found.filter(|named| named.generation == taken.generation) else { return true };
        let flights = named.queue.flights();
        let Some(command) = flights.command(taken.flight) else { return true };
        let Some(failure) = self.hand_on(&named, &command) else { return false };
        flights.end(taken.flight, failure.map(Poison::words));
        self.attend_with_all_that_follows(&named);
        true
    }

    fn hand_on(&self, named: &Named<'_>, command: &Command) -> Option<Failure> {
        let call = command.calls()?;
        match self.forward(named.owner, command, call) {
            Ok(true) => Some(None),
            Ok(false) => None,
            Err(poison) => Some(Some(poison)),
        }
    }
}
