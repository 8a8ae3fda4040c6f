//! Programs: commands that are prepared once, and run anew for each start.
//!
//! A program is a queue that begins anew, whose credit counts starts. Its commands run in their order, each when what
//! it waits for at the head has come, which grows from pass to pass; so nothing is ever reset, and starting costs a
//! raise. Whoever may run a queue may run it: the rank that starts it, one that raises a signal, one that waits, a
//! helper.

pub(super) mod compiled;

use crate::base::sync::fence;
use crate::base::{Cause, Result};
use crate::engine::command_queue::lifecycle::LocalQueue;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::repeating::compiled::CompiledCommands;
use crate::engine::wait::Condition;
use crate::engine::wait::probe::scoped_wait_probe;
use crate::engine::worker::Worker;
use crate::fabric::{SEVERAL, SignalCell, SignalControl, certainly_reached};
use crate::queue::encoding::EncodedCommand;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a thread that waits for programs offers its processor before it sees to everything else, where ranks share
/// processors: as long as it may take until another rank's message is looked at.
const OFFERS: u32 = 8;

/// A start that is about so many bytes is left to a helper that is awake: it notices in the time that fewer take.
const HELPER_BYTES_MIN: u64 = 2 << 10;
/// To move or combine so many it is worth while to wake one: that takes about 5 us, in which 200 KiB are copied.
const WOKEN_FROM: u64 = 256 << 10;

/// A program of this rank's own.
#[derive(Debug)]
pub struct RepeatingQueue {
    local: Arc<LocalQueue>,
    compiled: Option<CompiledCommands>,
}

/// How far an own signal has come when a start is over.
#[derive(Clone, Copy, Debug)]
pub struct SignalTarget {
    /// The signal.
    pub cell: SignalCell,
    /// What it has counted then.
    pub threshold: u64,
}

impl RepeatingQueue {
    #[inline]
    pub(in crate::engine::command_queue) fn local(&self) -> &LocalQueue {
        &self.local
    }
}

/// Whoever raises that signal is told of the queue from now on. False: that has been so.
#[inline]
fn arm(control: &SignalControl, number: u32) -> bool {
    let mark = control.armed_hint();
    if mark == number + 1 || mark == SEVERAL {
        return false;
    }
    control.arm(number, false);
    true
}

impl SignalTarget {
    #[inline]
    fn is_certainly_reached(&self, worker: &Worker) -> bool {
        certainly_reached(self.cell.read(worker.fabric()), self.threshold)
    }
}

impl Worker {
    /// Makes a program of those commands. Each raise of the own signal `starts` by one lets `per_start` of them run;
    /// all of them are as many starts in a row, after which they begin anew.
    ///
    /// Errors: there is no room for it; a command is wrong in itself. It lasts until
    /// [`drop_repeating_queue`](Worker::drop_repeating_queue).
    pub fn make_repeating_queue(
        &self,
        commands: &[EncodedCommand],
        starts: u32,
        per_start: u32,
    ) -> Result<RepeatingQueue, Cause> {
        let lines: u64 = commands.iter().map(EncodedCommand::line_count).sum();
        let local = self.make_queue(lines as usize, Some(starts))?;
        local.queue().set_per_credit(per_start, self.count_of_own(starts));
        let posted = self.post_own(&local, commands.iter()).and_then(|_| self.repeat(&local));
        let compiled = posted.and_then(|()| self.compile_commands(commands, starts, per_start));
        let compiled = compiled.inspect_err(|_| self.drop_queue(&local))?;
        Ok(RepeatingQueue { local, compiled })
    }

    /// Takes a program down.
    pub fn drop_repeating_queue(&self, repeating: &RepeatingQueue) {
        self.drop_queue(&repeating.local);
    }

    /// How far a signal of this rank's own has come.
    pub fn count_of_own(&self, signal: u32) -> u64 {
        self.fabric().read_signal(GlobalAddress::new(self.rank(), signal_offset(signal)))
    }

    /// Starts programs that count their starts by that signal of this rank's own, which nobody else raises, and runs
    /// what can be run at once, unless that is left to a helper: what they are about, here or elsewhere, has so many
    /// `bytes`. One start after the other.
    #[inline]
    pub fn start_repeating_queues(
        &self,
        queues: &[RepeatingQueue],
        starts: GlobalAddress,
        bytes: u64,
    ) -> Result<()> {
        match queues.first().and_then(|repeating| repeating.compiled.as_ref()) {
            Some(first) => {
                first.start();
                if self.is_left_to_helper(queues, bytes) {
                    return Ok(());
                }
                for repeating in queues {
                    repeating.compiled.iter().for_each(|compiled| self.begin(repeating, compiled));
                }
                Ok(())
            }
            None => self.raise(starts, 1),
        }
    }

    /// Whether what has just been started is much, here or elsewhere, and somebody else sees to it.
    #[inline]
    fn is_left_to_helper(&self, queues: &[RepeatingQueue], bytes: u64) -> bool {
        let moved =
            |repeating: &RepeatingQueue| repeating.compiled.as_ref().map_or(0, CompiledCommands::moved);
        let moved: u64 = queues.iter().map(moved).sum();
        bytes.max(moved) >= HELPER_BYTES_MIN && self.finds_poller(moved >= WOKEN_FROM)
    }

    /// Whether somebody looks at this rank's queues, perhaps woken for that.
    #[inline(never)]
    fn finds_poller(&self, wakes: bool) -> bool {
        fence(Ordering::SeqCst); // SYNC serving
        self.commands().directory().poll_state.is_polled() || wakes && self.wakes_helper()
    }

    /// Runs what can be run now of programs of this rank's own, as far as they are at hand. Whether anything was.
    #[inline]
    pub fn run_repeating_queues(&self, queues: &[RepeatingQueue]) -> bool {
        let run = |repeating: &RepeatingQueue| {
            repeating.compiled.as_ref().is_some_and(|it| self.run_unless_leased(repeating, it))
        };
        queues.iter().fold(false, |moved, repeating| moved | run(repeating))
    }

    /// Runs what can be run now of a program that was just started; whoever raises what it waits for then goes on.
    /// Whose look it was that came too early for the start, another's or this, is called.
    #[inline]
    fn begin(&self, repeating: &RepeatingQueue, compiled: &CompiledCommands) {
        self.run_or_mark_lease(repeating, compiled);
        self.arm_and_run(repeating, compiled);
    }

    /// Whoever raises what a program of this rank's own waits for looks at it from now on.
    #[inline]
    fn arm_and_run(&self, repeating: &RepeatingQueue, compiled: &CompiledCommands) {
        if self.arm_next_wait(repeating, compiled) {
            self.run_or_mark_lease(repeating, compiled);
        }
    }

    /// The same of programs.
    #[inline]
    fn arm_all(&self, queues: &[RepeatingQueue]) {
        for repeating in queues {
            repeating.compiled.iter().for_each(|compiled| self.arm_and_run(repeating, compiled));
        }
    }

    /// Waits until all those milestones are reached, and runs those programs meanwhile. A long wait asks that watch.
    #[inline]
    pub fn wait_for_repeating_queues(
        &self,
        queues: &[RepeatingQueue],
        targets: impl Iterator<Item = SignalTarget> + Clone,
        wait_probe: u32,
        call: &dyn Fn() -> String,
    ) -> Result<()> {
        let are_reached = || targets.clone().all(|target| target.is_certainly_reached(self));
        if are_reached() {
            return Ok(());
        }
        if queues.iter().all(|repeating| repeating.compiled.is_some())
            && self.spins_until_reached(queues, &are_reached)
        {
            return Ok(());
        }
        let _named = scoped_wait_probe(wait_probe);
        targets.clone().try_for_each(|target| {
            let SignalTarget { cell, threshold } = target;
            self.wait(&Condition::Signal(cell, threshold, None), None, call)
        })
    }

    /// Whether it has happened before everything else that this rank sees to must be looked at.
    fn spins_until_reached(&self, queues: &[RepeatingQueue], are_reached: &dyn Fn() -> bool) -> bool {
        let is_crowded = !self.platform().has_processor();
        let looks = if is_crowded { OFFERS } else { self.platform().spins() };
        let mut left = looks;
        while left > 0 {
            if self.run_repeating_queues(queues) {
                left = looks;
            } else {
                left -= 1;
                if is_crowded {
                    self.arm_all(queues); // who raises it has the processor
                }
                self.platform().offer();
            }
            if are_reached() {
                return true;
            }
        }
        false
    }

    /// The queue begins anew, and what is next in it waits for a signal: whoever raises that is told to look, unless
    /// that is left to the queue's rank. Whether it has been raised meanwhile. Where signals are out of reach all that
    /// may ever be waited for is marked from the beginning.
    #[inline]
    pub(in crate::engine::command_queue) fn arm_head(&self, resolved: &ResolvedQueue<'_>) -> bool {
        resolved.queue.cycle().is_some() && self.reaches_words() && self.arm_next(resolved)
    }

    fn arm_next(&self, resolved: &ResolvedQueue<'_>) -> bool {
        let position = resolved.queue.reader().read();
        let Some(encoded) = self.encoded_at(resolved, position).filter(|encoded| !encoded.is_left_to_owner())
        else {
            return false;
        };
        let Some(trigger) = encoded.head(resolved.queue.place_of(position).1) else { return false };
        resolved.credit(self).is_some()
            && resolved.trigger_outcome(self, trigger).is_none()
            && arm(resolved.signal_control(trigger.signal), resolved.number)
            && resolved.trigger_outcome(self, trigger).is_some()
    }

    /// Whether all that was started of a program has been run.
    pub fn has_run_all(&self, repeating: &RepeatingQueue) -> bool {
        let queue = repeating.local.queue();
        let started = queue.credit().map_or(0, |credit| self.count_of_own(credit));
        let is_run = queue.commands() == started.wrapping_mul(queue.per_credit());
        is_run && queue.in_flight().is_empty() && queue.lease().snapshot().is_free()
    }
}
