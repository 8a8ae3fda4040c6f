//! Performing the effects of commands and handlers, and collecting the queues that they make ready.

use crate::base::log::Level;
use crate::base::{Cause, Error, Result};
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::ready_list::ReadyList;
use crate::engine::operation::kind::Operation;
use crate::engine::worker::Worker;
use crate::fabric::{Accepted, BOUND, NOBODY, Poison, Refused, SignalControl};
use crate::queue::command::{Command, Effect};
use crate::segment::GlobalAddress;
use crate::segment::layout::is_signal;

impl Worker {
    /// Takes the lease of the only queue that waits for a signal, before the signal is raised. Then
    /// this thread runs the queue, because its cache holds the lines, and the queue's rank does
    /// not, even if it is polling. Returns the mark of the queue if the lease was taken. Other
    /// queues may begin to wait for the signal before it is raised.
    #[inline(always)]
    fn acquire_waiting_queue(&self, signal: GlobalAddress, ready: &mut ReadyList) -> Option<u64> {
        if !self.commands().direct || !is_signal(signal.offset()) {
            return None;
        }
        let mark = self.commands().signal_control_at(signal).map_or(NOBODY, SignalControl::armed_hint);
        if mark == NOBODY || mark & BOUND != 0 {
            return None;
        }
        let (owner, queue) = (signal.rank(), mark - 1);
        let is_held = ready.hold_next(owner, queue, || {
            let resolved = self.commands().find_queue(owner, queue);
            resolved.is_some_and(|resolved| resolved.queue.lease().try_acquire(self.rank().to_word()))
        });
        is_held.then_some(mark.into())
    }

    /// Performs the effects of a command. If it failed, poisons the signals instead.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn perform_command_effects(
        &self,
        resolved: &ResolvedQueue<'_>,
        command: &Command,
        failure: Option<&Poison>,
        ready: &mut ReadyList,
    ) {
        if let Some(poison) = failure {
            resolved.queue.count_failure(poison.words());
        } else if command.as_call().is_some() {
            return; // the rank that runs the handler performs them
        }
        for &effect in command.effects.iter().flatten() {
            let happened = match self.recorder() {
                None => self.perform_effect(effect, failure, ready),
                Some(recorder) => self.perform_effect_and_record(recorder, resolved, effect, failure, ready),
            };
            if let Err(cause) = happened {
                resolved.queue.count_failure(Poison::of(&cause, self.rank()).words());
            }
        }
    }

    /// Performs one effect. Fails if it is impossible.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn perform_effect(
        &self,
        effect: Effect,
        failure: Option<&Poison>,
        ready: &mut ReadyList,
    ) -> Result<(), Cause> {
        let Effect { signal, amount } = effect;
        if !self.commands().direct && self.follows_poison(signal, failure.is_some()) {
            return Ok(());
        }
        let accept =
            || self.operations().enter_in_flight(effect_operation(signal, amount, failure), None, false);
        let ahead = self.acquire_waiting_queue(signal, ready);
        let posted = match failure {
            None => self.fabric().raise(&accept, signal, u64::from(amount)),
            Some(poison) => self.fabric().poison(&accept, signal, poison.forwarded()),
        };
        match posted {
            Ok(Accepted::Started) => {}
            Ok(Accepted::Done(mark)) if mark == 0 || ahead == Some(mark) => {}
            Ok(Accepted::Done(_)) if self.commands().is_left_to(signal.rank()) => {
                if !self.commands().direct {
                    self.node_state().notify_helper(signal.rank()); // no other thread can run the queue
                }
            }
            Ok(Accepted::Done(mark)) => self.commands().add_armed_queues(ready, signal.rank(), mark),
            Err(Refused::Never(cause)) => return Err(*cause),
            Err(Refused::Again | Refused::Relay) => {
                self.operations().enter_unattended(effect_operation(signal, amount, failure))
            }
        }
        Ok(())
    }

    /// Like [`settle`](Worker::settle). What this rank has poisoned has then arrived, so from now on it raises these
    /// signals again: they may be freed and belong to something else.
    pub fn settle_poisons(&self, call: &dyn Fn() -> String) -> Result<(), Error> {
        let poisoned_signals = &self.commands().poisoned_signals;
        let known = (!poisoned_signals.is_empty()).then(|| poisoned_signals.snapshot());
        self.settle(call)?;
        known.iter().for_each(|known| poisoned_signals.retain(|signal| !known.contains(signal)));
        Ok(())
    }

    /// Returns true if this rank has poisoned the signal before. Used where operations on one signal may arrive in any
    /// order: an operation that is started now might arrive first and hide the failure.
    #[cold]
    fn follows_poison(&self, signal: GlobalAddress, is_poison: bool) -> bool {
        let poisoned_signals = &self.commands().poisoned_signals;
        let is_late = !poisoned_signals.is_empty() && poisoned_signals.snapshot().contains(&signal);
        if is_poison && !is_late {
            poisoned_signals.push(signal);
        }
        is_late
    }

    /// Performs the effects of a call and runs the queues that become ready. `from`: the queue of the call, if known.
    pub(in crate::engine) fn perform_effects(
        &self,
        from: Option<&ResolvedQueue<'_>>,
        effects: &[Option<Effect>; 2],
        failure: Option<&Poison>,
    ) {
        let mut ready = ReadyList::default();
        for effect in effects.iter().copied().flatten() {
            let happened = match (self.recorder(), from) {
                (Some(recorder), Some(resolved)) => {
                    self.perform_effect_and_record(recorder, resolved, effect, failure, &mut ready)
                }
                _ => self.perform_effect(effect, failure, &mut ready),
            };
            if let Err(cause) = happened {
                self.log().say(Level::Warn, format_args!("an effect could not be performed: {cause}"));
            }
        }
        self.run_ready(ready);
    }
}

/// The operation for an effect, for a fabric that does not raise signals at once.
fn effect_operation(signal: GlobalAddress, amount: u32, failure: Option<&Poison>) -> Operation {
    match failure {
        None => Operation::Raise { signal, amount: u64::from(amount) },
        Some(poison) => Operation::Poison { signal, poison: poison.forwarded() },
    }
}
