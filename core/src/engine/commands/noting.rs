//! What is recorded of commands and waits, where a rank is traced: `engine/trace`.
//!
//! All of it lies beside the ways that untraced ranks go, which ask once and go on.

use super::attend::Failure;
use super::reach::Named;
use super::todo::Todo;
use crate::base::{Cause, Result};
use crate::engine::machine::Machine;
use crate::engine::trace::{Brief, Place, QueueId, Recorder, Text, What};
use crate::engine::waiting::Condition;
use crate::fabric::Poison;
use crate::queue::command::{Command, Effect};
use crate::queue::lines::Lines;
use crate::segment::GlobalAddress;
use std::time::Duration;

impl Named<'_> {
    /// What ranks call the queue.
    pub(super) fn id(&self) -> QueueId {
        QueueId { owner: self.owner, number: self.number, generation: self.generation }
    }

    /// A command of it: where it was posted, or which of those under way it is.
    pub(super) fn place(&self, number: u64) -> Place {
        Place { queue: self.id(), number }
    }
}

impl Machine {
    /// Commands were posted from that position on, in a call that began then and ends now.
    #[cold]
    pub(super) fn note_posts<'c>(
        &self,
        recorder: &Recorder,
        begin: u64,
        queue: QueueId,
        first: u64,
        commands: impl Iterator<Item = &'c Lines>,
    ) {
        let end = self.host().glance_ns();
        let mut number = first;
        for command in commands {
            recorder.record(begin, end, false, What::Posted(Place { queue, number }, Brief::of(command)));
            number += command.count();
        }
    }

    /// A command fires.
    #[cold]
    pub(super) fn fire_and_note(
        &self,
        recorder: &Recorder,
        named: &Named<'_>,
        command: &Command,
        position: u64,
        failure: Failure,
        todo: &mut Todo,
    ) {
        let begin = self.host().glance_ns();
        let is_done = failure.is_none() && self.try_as_it_fires(named, command);
        let outcome = if is_done { Some(None) } else { self.run_otherwise(named, command, failure) };
        let end = self.host().glance_ns();
        let is_flight = outcome.is_none() || !self.may_take_effect(named, command);
        let flight = is_flight.then(|| named.queue.flights().numbers().end);
        let place = named.place(position);
        let failed = outcome.is_some_and(|failure| failure.is_some());
        recorder.record(begin, end, failed, What::Fired(place, flight, Brief::of(&command.lines())));
        self.follow_up(named, command, outcome, todo);
    }

    /// Does what a command under way says, if that is short.
    pub(super) fn try_flight_at_once(&self, named: &Named<'_>, number: u64, command: &Command) -> bool {
        let Some(recorder) = self.recorder() else { return self.try_at_once(command) };
        let begin = self.host().glance_ns();
        let is_done = self.try_at_once(command);
        if is_done {
            recorder.record(begin, self.host().glance_ns(), false, What::Ran(named.place(number)));
        }
        is_done
    }

    /// A moment in the life of a command under way.
    pub(super) fn note_flight(&self, named: &Named<'_>, number: u64, failed: bool, what: fn(Place) -> What) {
        if let Some(recorder) = self.recorder() {
            let now = self.host().glance_ns();
            recorder.record(now, now, failed, what(named.place(number)));
        }
    }

    /// One effect happens.
    #[cold]
    pub(super) fn bring_about_and_note(
        &self,
        recorder: &Recorder,
        named: &Named<'_>,
        effect: Effect,
        failure: Option<&Poison>,
        todo: &mut Todo,
    ) -> Result<(), Cause> {
        let begin = self.host().glance_ns();
        let happened = self.bring_about(effect, failure, todo);
        let value = self.signal_now(effect.signal);
        let what = What::Effect(named.id(), effect.signal, u64::from(effect.amount), value);
        recorder.record(begin, self.host().glance_ns(), failure.is_some(), what);
        happened
    }

    /// A handler has run, of a call that was posted at that position.
    #[cold]
    pub(in crate::engine) fn note_handled(
        &self,
        recorder: &Recorder,
        begin: u64,
        named: &Named<'_>,
        position: u64,
        (name, failed): (&str, bool),
    ) {
        let place = named.place(position);
        let end = self.host().glance_ns();
        recorder.record(begin, end, failed, What::Handled(place, Text::of(name)));
    }

    /// The program has raised a signal that commands wait for.
    #[cold]
    pub(in crate::engine) fn note_raise(&self, signal: GlobalAddress) {
        if let Some(recorder) = self.recorder() {
            let now = self.host().glance_ns();
            recorder.record(now, now, false, What::Raised(signal, self.signal_now(signal)));
        }
    }

    /// The program waits.
    #[cold]
    pub(in crate::engine) fn wait_and_note(
        &self,
        recorder: &Recorder,
        condition: &Condition,
        limit: Option<Duration>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let begin = self.host().glance_ns();
        let outcome = self.wait_alive(condition, limit, call);
        let awaited = match condition {
            Condition::Signal(cell, value, _) => self.signal_in(cell).map(|signal| (signal, *value)),
            _ => None,
        };
        let what = What::Waited(awaited, Text::of(&call()));
        recorder.record(begin, self.host().glance_ns(), outcome.is_err(), what);
        outcome
    }
}
