//! Recording trace events of commands and waits, on ranks that are traced: `engine/trace`.
//!
//! Untraced ranks do not run this code: they check once whether there is a recorder.

use super::lookup::{Failure, ResolvedQueue};
use super::run::ready_list::ReadyList;
use crate::base::{Cause, Result};
use crate::engine::Issued;
use crate::engine::operation::kind::Operation;
use crate::engine::trace::{
    CommandId, CommandSummary, EventKind, QueueId, Raise, Recorder, TraceText, Transfer,
};
use crate::engine::wait::condition::Condition;
use crate::engine::wait::deadline::Deadline;
use crate::engine::worker::Worker;
use crate::fabric::Poison;
use crate::queue::command::{Command, Effect};
use crate::queue::encoding::EncodedCommand;
use crate::segment::GlobalAddress;

impl ResolvedQueue<'_> {
    /// The name of the queue in traces.
    pub(super) fn id(&self) -> QueueId {
        QueueId { owner: self.owner, number: self.number, generation: self.generation }
    }

    /// A command of it: `number` is the position of its post or its number among the in-flight commands.
    pub(super) fn place(&self, number: u64) -> CommandId {
        CommandId { queue: self.id(), number }
    }
}

impl Worker {
    /// Records that commands were posted from position `first` on, in a call that began at `begin` and ends now.
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
            number += command.line_count();
        }
    }

    /// Fires a command and records it.
    #[cold]
    pub(super) fn fire_and_record(
        &self,
        recorder: &Recorder,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
        position: u64,
        failure: Failure,
        ready: &mut ReadyList,
    ) {
        let begin = self.platform().observer_now_ns();
        let is_done = failure.is_none() && self.try_run_at_once(resolved, command);
        let outcome = if is_done { Some(None) } else { self.run_call_or_fail(resolved, command, failure) };
        let end = self.platform().observer_now_ns();
        let is_in_flight = outcome.is_none() || !resolved.may_perform_effects(command);
        let command_number = is_in_flight.then(|| resolved.queue.in_flight().numbers().end);
        let place = resolved.place(position);
        let failed = outcome.is_some_and(|failure| failure.is_some());
        recorder.record(
            begin,
            end,
            failed,
            EventKind::Fired(place, command_number, CommandSummary::of(&command.encode())),
        );
        self.finish_or_keep(resolved, command, outcome, ready);
    }

    /// Runs the action of an in-flight command if it is short, and records it. Returns true if it was run.
    pub(super) fn try_in_flight_inline(
        &self,
        resolved: &ResolvedQueue<'_>,
        number: u64,
        command: &Command,
    ) -> bool {
        let Some(recorder) = self.recorder() else { return self.try_short_action(command) };
        let begin = self.platform().observer_now_ns();
        let is_done = self.try_short_action(command);
        if is_done {
            recorder.record(
                begin,
                self.platform().observer_now_ns(),
                false,
                EventKind::Ran(resolved.place(number)),
            );
        }
        is_done
    }

    /// Records an event of an in-flight command.
    pub(super) fn record_in_flight(
        &self,
        resolved: &ResolvedQueue<'_>,
        number: u64,
        failed: bool,
        what: fn(CommandId) -> EventKind,
    ) {
        if let Some(recorder) = self.recorder() {
            let now = self.platform().observer_now_ns();
            recorder.record(now, now, failed, what(resolved.place(number)));
        }
    }

    /// Performs one effect and records it.
    #[cold]
    pub(super) fn perform_effect_and_record(
        &self,
        recorder: &Recorder,
        resolved: &ResolvedQueue<'_>,
        effect: Effect,
        failure: Option<&Poison>,
        ready: &mut ReadyList,
    ) -> Result<(), Cause> {
        let begin = self.platform().observer_now_ns();
        let happened = self.perform_effect(effect, failure, ready);
        let value = self.commands().signal_now(effect.signal);
        let what = EventKind::Effect(resolved.id(), effect.signal, u64::from(effect.amount), value);
        recorder.record(begin, self.platform().observer_now_ns(), failure.is_some(), what);
        happened
    }

    /// Records that the handler of the call at `position` has run.
    #[cold]
    pub(in crate::engine) fn record_handled(
        &self,
        recorder: &Recorder,
        begin: u64,
        resolved: &ResolvedQueue<'_>,
        position: u64,
        (name, failed): (&str, bool),
    ) {
        let place = resolved.place(position);
        let end = self.platform().observer_now_ns();
        recorder.record(begin, end, failed, EventKind::Handled(place, TraceText::of(name)));
    }

    /// Records that a blocking call of the program has moved bytes or raised a signal, or has
    /// failed.
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

    /// Records that a call of the program has begun an operation, which may have ended already.
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
        let raise = |signal, amount| Raise { signal, amount, value: self.commands().signal_now(signal) };
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

    /// Records the end of an operation that its call may not have waited for.
    pub(in crate::engine) fn note_arrived(&self, number: u64) {
        if let Some(recorder) = self.recorder() {
            let now = self.platform().observer_now_ns();
            recorder.record(now, now, false, EventKind::Arrived(number));
        }
    }

    /// Records a mark that the program sets in the trace.
    #[inline]
    pub fn mark(&self, name: &str) {
        if let Some(recorder) = self.recorder() {
            let now = self.platform().observer_now_ns();
            recorder.record(now, now, false, EventKind::Marked(TraceText::of(name)));
        }
    }

    /// Returns the time now, at which a span of the program begins. `None`: the rank is not traced.
    #[inline]
    pub fn begin_span(&self) -> Option<u64> {
        self.recorder().map(|_| self.platform().observer_now_ns())
    }

    /// Records that a span of the program, which began at `begin`, has ended.
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

    /// Waits for a condition of the program and records the wait.
    #[cold]
    pub(in crate::engine) fn wait_and_record(
        &self,
        recorder: &Recorder,
        condition: &Condition,
        deadline: Deadline,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let begin = self.platform().observer_now_ns();
        let outcome = self.wait_loop(condition, deadline, call);
        let awaited = match condition {
            Condition::Signal(cell, value, _) => {
                self.commands().signal_in(cell).map(|signal| (signal, *value))
            }
            _ => None,
        };
        let what = EventKind::Waited(awaited, TraceText::of(&call()));
        recorder.record(begin, self.platform().observer_now_ns(), outcome.is_err(), what);
        outcome
    }
}
