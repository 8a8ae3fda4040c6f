//! EventKind is recorded of commands and waits, where a rank is traced: `engine/trace`.
//!
//! All of it lies beside the ways that untraced ranks go, which ask once and go on.

use super::lookup::ResolvedQueue;
use super::run::Failure;
use super::run::ready_list::ReadyList;
use crate::base::{Cause, Result};
use crate::engine::Issued;
use crate::engine::operation::kind::Operation;
use crate::engine::trace::{
    CommandId, CommandSummary, EventKind, QueueId, Raise, Recorder, TraceText, Transfer,
};
use crate::engine::wait::Condition;
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::queue::command::{Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::segment::GlobalAddress;
use std::time::Duration;

impl ResolvedQueue<'_> {
    /// EventKind ranks call the queue.
    pub(super) fn id(&self) -> QueueId {
        QueueId { owner: self.owner, number: self.number, generation: self.generation }
    }

    /// A command of it: where it was posted, or which of those under way it is.
    pub(super) fn place(&self, number: u64) -> CommandId {
        CommandId { queue: self.id(), number }
    }
}

impl Worker {
    /// CommandQueues were posted from that position on, in a call that began then and ends now.
    #[cold]
    pub(super) fn record_posts<'c>(
        &self,
        recorder: &Recorder,
        begin: u64,
        queue: QueueId,
        first: u64,
        commands: impl Iterator<Item = &'c EncodedCommand>,
    ) {
        let end = self.platform().observer_now_ns();
        let mut number = first;
        for command in commands {
            recorder.record(
                begin,
                end,
                false,
                EventKind::Posted(CommandId { queue, number }, CommandSummary::of(command)),
            );
            number += command.count();
        }
    }

    /// A command fires.
    #[cold]
    pub(super) fn fire_and_record(
        &self,
        recorder: &Recorder,
        named: &ResolvedQueue<'_>,
        command: &Command,
        position: u64,
        failure: Failure,
        todo: &mut ReadyList,
    ) {
        let begin = self.platform().observer_now_ns();
        let is_done = failure.is_none() && self.try_as_it_fires(named, command);
        let outcome = if is_done { Some(None) } else { self.run_otherwise(named, command, failure) };
        let end = self.platform().observer_now_ns();
        let is_flight = outcome.is_none() || !self.may_take_effect(named, command);
        let flight = is_flight.then(|| named.queue.flights().numbers().end);
        let place = named.place(position);
        let failed = outcome.is_some_and(|failure| failure.is_some());
        recorder.record(
            begin,
            end,
            failed,
            EventKind::Fired(place, flight, CommandSummary::of(&command.lines())),
        );
        self.follow_up(named, command, outcome, todo);
    }

    /// Does what a command under way says, if that is short.
    pub(super) fn try_in_flight_inline(
        &self,
        named: &ResolvedQueue<'_>,
        number: u64,
        command: &Command,
    ) -> bool {
        let Some(recorder) = self.recorder() else { return self.try_inline(command) };
        let begin = self.platform().observer_now_ns();
        let is_done = self.try_inline(command);
        if is_done {
            recorder.record(
                begin,
                self.platform().observer_now_ns(),
                false,
                EventKind::Ran(named.place(number)),
            );
        }
        is_done
    }

    /// A moment in the life of a command under way.
    pub(super) fn record_in_flight(
        &self,
        named: &ResolvedQueue<'_>,
        number: u64,
        failed: bool,
        what: fn(CommandId) -> EventKind,
    ) {
        if let Some(recorder) = self.recorder() {
            let now = self.platform().observer_now_ns();
            recorder.record(now, now, failed, what(named.place(number)));
        }
    }

    /// One effect happens.
    #[cold]
    pub(super) fn perform_effect_and_record(
        &self,
        recorder: &Recorder,
        named: &ResolvedQueue<'_>,
        effect: Effect,
        failure: Option<&Poison>,
        todo: &mut ReadyList,
    ) -> Result<(), Cause> {
        let begin = self.platform().observer_now_ns();
        let happened = self.perform_effect(effect, failure, todo);
        let value = self.signal_now(effect.signal);
        let what = EventKind::Effect(named.id(), effect.signal, u64::from(effect.amount), value);
        recorder.record(begin, self.platform().observer_now_ns(), failure.is_some(), what);
        happened
    }

    /// A handler has run, of a call that was posted at that position.
    #[cold]
    pub(in crate::engine) fn record_handled(
        &self,
        recorder: &Recorder,
        begin: u64,
        named: &ResolvedQueue<'_>,
        position: u64,
        (name, failed): (&str, bool),
    ) {
        let place = named.place(position);
        let end = self.platform().observer_now_ns();
        recorder.record(begin, end, failed, EventKind::Handled(place, TraceText::of(name)));
    }

    /// A blocking call of the program has moved bytes or raised a signal, or failed.
    #[cold]
    pub(in crate::engine) fn note_call(
        &self,
        recorder: &Recorder,
        begin: u64,
        action: &Operation,
        failed: bool,
    ) {
        self.note_action(recorder, begin, action, None, failed);
    }

    /// A call of the program has begun an operation, which may have ended already.
    #[cold]
    pub(in crate::engine) fn note_issued(
        &self,
        recorder: &Recorder,
        begin: u64,
        action: &Operation,
        issued: &Result<Issued>,
    ) {
        let number = issued.as_ref().ok().filter(|issued| !issued.done).map(|issued| issued.handle.0);
        self.note_action(recorder, begin, action, number, issued.is_err());
    }

    fn note_action(
        &self,
        recorder: &Recorder,
        begin: u64,
        action: &Operation,
        number: Option<u64>,
        failed: bool,
    ) {
        let end = self.platform().observer_now_ns();
        let raise = |signal, amount| Raise { signal, amount, value: self.signal_now(signal) };
        let own = GlobalAddress::NULL;
        let (from, to, len, raise) = match *action {
            Operation::Put { to, len, .. } => (own, to, len, None),
            Operation::Get { from, len, .. } => (from, own, len, None),
            Operation::Copy { from, to, len } => (from, to, len, None),
            Operation::PutSignal { to, len, signal, amount, .. } => {
                (own, to, len, Some(raise(signal, amount)))
            }
            Operation::Raise { signal, amount } => {
                return recorder.record(begin, end, failed, EventKind::Raised(raise(signal, amount)));
            }
            Operation::Poison { .. } | Operation::Atomic { .. } => return,
        };
        let transfer = Transfer { from, to, len, raise, number };
        recorder.record(begin, end, failed, EventKind::Moved(transfer));
    }

    /// An operation has ended that its call may not have waited for.
    pub(in crate::engine) fn note_arrived(&self, number: u64) {
        if let Some(recorder) = self.recorder() {
            let now = self.platform().observer_now_ns();
            recorder.record(now, now, false, EventKind::Arrived(number));
        }
    }

    /// The program marks a moment, for the trace.
    #[inline]
    pub fn mark(&self, name: &str) {
        if let Some(recorder) = self.recorder() {
            let now = self.platform().observer_now_ns();
            recorder.record(now, now, false, EventKind::Marked(TraceText::of(name)));
        }
    }

    /// When a span of the program's own begins, if the rank is traced.
    #[inline]
    pub fn begin_span(&self) -> Option<u64> {
        self.recorder().map(|_| self.platform().observer_now_ns())
    }

    /// A span of the program's own has ended, that began then.
    #[cold]
    pub fn end_span(&self, begin: u64, name: &str, failed: bool) {
        if let Some(recorder) = self.recorder() {
            recorder.record(
                begin,
                self.platform().observer_now_ns(),
                failed,
                EventKind::Spanned(TraceText::of(name)),
            );
        }
    }

    /// The program waits.
    #[cold]
    pub(in crate::engine) fn wait_and_record(
        &self,
        recorder: &Recorder,
        condition: &Condition,
        limit: Option<Duration>,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let begin = self.platform().observer_now_ns();
        let outcome = self.wait_untraced(condition, limit, call);
        let awaited = match condition {
            Condition::Signal(cell, value, _) => self.signal_in(cell).map(|signal| (signal, *value)),
            _ => None,
        };
        let what = EventKind::Waited(awaited, TraceText::of(&call()));
        recorder.record(begin, self.platform().observer_now_ns(), outcome.is_err(), what);
        outcome
    }
}
