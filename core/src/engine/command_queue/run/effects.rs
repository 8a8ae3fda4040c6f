//! Effects: what a command, or a handler, was to bring about happens, and the queues that it lets go on are noted.

use crate::base::log::Level;
use crate::base::{Cause, Rank, Result};
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::run::ready_list::ReadyList;
use crate::engine::operation::kind::Operation;
use crate::engine::worker::Worker;
use crate::fabric::{BOUND, NOBODY, Poison, Posted, Refused, SignalControl};
use crate::queue::command::{Command, Effect};
use crate::segment::GlobalAddress;
use crate::segment::layout::{is_signal, signal_offset};

impl Worker {
    /// Takes the lease of the one queue that waits for a signal which is about to be raised: its rank, which may be
    /// looking, leaves it alone then, and what follows is done by this processor, which has the lines at hand. The mark
    /// that stands for that queue, if so; others may come to wait for the signal before it is raised.
    #[inline(always)]
    fn take_ahead(&self, signal: GlobalAddress, todo: &mut ReadyList) -> Option<u64> {
        if !self.commands().direct || !is_signal(signal.offset()) {
            return None;
        }
        let mark = self.signal_control_at(signal).map_or(NOBODY, SignalControl::armed_hint);
        if mark == NOBODY || mark & BOUND != 0 {
            return None;
        }
        let (owner, queue) = (signal.rank(), mark - 1);
        let is_held = todo.hold(owner, queue, || {
            let named = self.find_queue(owner, queue);
            named.is_some_and(|named| named.queue.lease().take_if_free(self.rank().0))
        });
        is_held.then_some(mark.into())
    }

    /// EventKind a command was to bring about happens; if it failed, the signals are poisoned instead.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn take_effect(
        &self,
        named: &ResolvedQueue<'_>,
        command: &Command,
        failure: Option<&Poison>,
        todo: &mut ReadyList,
    ) {
        if let Some(poison) = failure {
            named.queue.count_failure(poison.words());
        } else if command.calls().is_some() {
            return; // they happen when the handler has run
        }
        for &effect in command.effects.iter().flatten() {
            let happened = match self.recorder() {
                None => self.perform_effect(effect, failure, todo),
                Some(recorder) => self.perform_effect_and_record(recorder, named, effect, failure, todo),
            };
            if let Err(cause) = happened {
                named.queue.count_failure(Poison::of(&cause, self.rank()).words());
            }
        }
    }

    /// One effect happens. An error: it cannot.
    #[inline(always)]
    pub(in crate::engine::command_queue) fn perform_effect(
        &self,
        effect: Effect,
        failure: Option<&Poison>,
        todo: &mut ReadyList,
    ) -> Result<(), Cause> {
        let Effect { signal, amount } = effect;
        if !self.commands().direct && self.comes_too_late(signal, failure.is_some()) {
            return Ok(());
        }
        let accept = || self.enter_in_flight(raising(signal, amount, failure), None, false);
        let ahead = self.take_ahead(signal, todo);
        let posted = match failure {
            None => self.fabric().raise(&accept, signal, u64::from(amount)),
            Some(poison) => self.fabric().poison(&accept, signal, poison.forwarded()),
        };
        match posted {
            Ok(Posted::Started) => {}
            Ok(Posted::Done(mark)) if mark == 0 || ahead == Some(mark) => {}
            Ok(Posted::Done(_)) if self.is_polled(signal.rank()) => {
                if !self.commands().direct {
                    self.notify_helper(signal.rank()); // nobody else can look
                }
            }
            Ok(Posted::Done(mark)) => self.note(todo, signal.rank(), mark),
            Err(Refused::Never(cause)) => return Err(*cause),
            Err(Refused::Again | Refused::Relay) => self.hold_unclaimed(raising(signal, amount, failure)),
        }
        Ok(())
    }

    /// Whether this rank has poisoned that signal before, where nothing keeps the order of what it does to one: what it
    /// did now might come first, and hide the failure.
    #[cold]
    fn comes_too_late(&self, signal: GlobalAddress, is_poison: bool) -> bool {
        let spoilt = &self.commands().spoilt;
        let is_late = !spoilt.is_empty() && spoilt.snapshot().contains(&signal);
        if is_poison && !is_late {
            spoilt.push(signal);
        }
        is_late
    }

    /// Effects of a call happen, and all that follows; it came from that queue, if that is known.
    pub(in crate::engine) fn let_happen(
        &self,
        from: Option<&ResolvedQueue<'_>>,
        effects: &[Option<Effect>; 2],
        failure: Option<&Poison>,
    ) {
        let mut todo = ReadyList::default();
        for effect in effects.iter().copied().flatten() {
            let happened = match (self.recorder(), from) {
                (Some(recorder), Some(named)) => {
                    self.perform_effect_and_record(recorder, named, effect, failure, &mut todo)
                }
                _ => self.perform_effect(effect, failure, &mut todo),
            };
            if let Err(cause) = happened {
                self.log().say(Level::Warn, format_args!("an effect did not happen: {cause}"));
            }
        }
        self.run_ready(todo);
    }

    /// A signal of any rank is poisoned, and all that follows.
    pub(in crate::engine) fn poison_signal(&self, rank: Rank, signal: u32, poison: Poison) {
        let signal = GlobalAddress::new(rank, signal_offset(signal));
        self.let_happen(None, &[Some(Effect { signal, amount: 0 }), None], Some(&poison));
    }
}

/// An effect as an operation, for a fabric that does not raise signals at once.
fn raising(signal: GlobalAddress, amount: u32, failure: Option<&Poison>) -> Operation {
    match failure {
        None => Operation::Raise { signal, amount: u64::from(amount) },
        Some(poison) => Operation::Poison { signal, poison: poison.forwarded() },
    }
}
