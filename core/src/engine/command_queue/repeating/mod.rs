//! Repeating queues: commands that are prepared once and run again for each start.
//!
//! The *credit* of such a queue, a signal, counts its starts. Its commands run in order. Each waits at the head of the
//! queue until its signal has reached a threshold that grows with each pass, so nothing is ever reset, and a start is
//! one raise of a signal. Any rank that may run queues may run it: the rank that starts it, a rank that raises a
//! signal, a rank that waits, or a helper.

mod encode;
mod in_queue;

use crate::base::sync::{Ordering, fence};
use crate::base::{Cause, Result};
use crate::engine::command_queue::local_queue::LocalQueue;
use crate::engine::command_queue::lookup::ResolvedQueue;
use crate::engine::command_queue::repeating::encode::command_of;
use crate::engine::command_queue::repeating::in_queue::QueueSteps;
use crate::engine::executor::StepSpec;
use crate::engine::wait::condition::Condition;
use crate::engine::wait::probe::scoped_wait_probe;
use crate::engine::worker::Worker;
use crate::fabric::{SEVERAL, SignalCell, SignalControl, certainly_reached};
use crate::queue::encoding::EncodedCommand;
use crate::queue::reduction::Reduction;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
use std::sync::Arc;

/// How often a thread that waits for repeating queues yields its processor before it makes progress on its other
/// work, if ranks share processors. The thread does not read messages of other ranks meanwhile.
const OFFERS: u32 = 8;

/// Bytes of a start from which on it is left to a helper that is awake. The helper notices the start in about the
/// time in which this rank would copy this many bytes.
const HELPER_BYTES_MIN: u64 = 2 << 10;
/// Bytes of a start from which on a sleeping helper is woken. Waking takes about 5 us, in which 200 KiB are copied.
const WOKEN_FROM: u64 = 256 << 10;

/// A repeating queue of this rank.
#[derive(Debug)]
pub struct RepeatingQueue {
    local: Arc<LocalQueue>,
    /// Its steps, resolved. `None`: they are run as commands.
    steps: Option<QueueSteps>,
}

/// The count that a signal of this rank has reached when a start is complete.
#[derive(Clone, Copy, Debug)]
pub struct SignalTarget {
    /// The signal.
    pub cell: SignalCell,
    /// Its count when the start is complete.
    pub threshold: u64,
}

impl RepeatingQueue {
    #[inline]
    pub(in crate::engine::command_queue) fn local(&self) -> &LocalQueue {
        &self.local
    }
}

/// Arms a signal for queue `number`, so that a rank that raises it runs the queue. Returns false if it was armed
/// before.
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
    /// Makes a repeating queue of steps; `how` says how they combine values, if they do. Each raise of this rank's
    /// signal `starts` by one lets the next `per_start` steps run. After the last step the first one follows again. The
    /// queue lasts until [`drop_repeating_queue`](Worker::drop_repeating_queue).
    ///
    /// Errors: there is no room for the queue, or a step cannot be a command.
    pub fn make_repeating_queue(
        &self,
        steps: &[StepSpec],
        how: Option<Reduction>,
        starts: u32,
        per_start: u32,
    ) -> Result<RepeatingQueue, Cause> {
        let commands = steps.iter().map(|spec| command_of(spec, how, self.rank()));
        let commands = commands.collect::<Result<Vec<EncodedCommand>, Cause>>()?;
        let lines: u64 = commands.iter().map(EncodedCommand::line_count).sum();
        let local = self.make_queue(lines as usize, Some(starts))?;
        local.queue().set_per_credit(per_start, self.count_of_own(starts));
        let posted = self.post_own(&local, commands.iter()).and_then(|_| self.repeat(&local));
        let steps = posted.and_then(|()| self.resolve_queue(steps, &commands, how, (starts, per_start)));
        let steps = steps.inspect_err(|_| self.drop_queue(&local))?;
        Ok(RepeatingQueue { local, steps })
    }

    /// Removes a repeating queue.
    pub fn drop_repeating_queue(&self, repeating: &RepeatingQueue) {
        self.drop_queue(&repeating.local);
    }

    /// Returns the count of a signal of this rank.
    pub fn count_of_own(&self, signal: u32) -> u64 {
        self.fabric().read_signal(GlobalAddress::new(self.rank(), signal_offset(signal)))
    }

    /// Starts repeating queues. `starts` is the signal of this rank that counts their starts; nobody else raises it.
    /// Runs the commands that can run now, unless a helper is to do it. `bytes` is the number of bytes that the start
    /// moves on this or another rank. Starts are made one after the other.
    #[inline]
    pub fn start_repeating_queues(
        &self,
        queues: &[RepeatingQueue],
        starts: GlobalAddress,
        bytes: u64,
    ) -> Result<()> {
        match queues.first().and_then(|repeating| repeating.steps.as_ref()) {
            Some(first) => {
                first.start();
                if self.is_left_to_helper(queues, bytes) {
                    return Ok(());
                }
                for repeating in queues {
                    repeating.steps.iter().for_each(|steps| self.begin(repeating, steps));
                }
                Ok(())
            }
            None => self.raise(starts, 1),
        }
    }

    /// Returns true if the start moves many bytes, here or elsewhere, and another thread will run the queues.
    #[inline]
    fn is_left_to_helper(&self, queues: &[RepeatingQueue], bytes: u64) -> bool {
        let moved = |repeating: &RepeatingQueue| repeating.steps.as_ref().map_or(0, QueueSteps::moved);
        let moved: u64 = queues.iter().map(moved).sum();
        bytes.max(moved) >= HELPER_BYTES_MIN && self.finds_poller(moved >= WOKEN_FROM)
    }

    /// Returns true if a thread polls this rank's queues. If none does and `wakes` is true, wakes a helper, and
    /// returns true if one was woken.
    #[inline(never)]
    fn finds_poller(&self, wakes: bool) -> bool {
        fence(Ordering::SeqCst); // SYNC serving
        self.commands().directory().poll_state.is_polled() || wakes && self.wakes_helper()
    }

    /// Runs the commands of repeating queues of this rank that can run now, if the queues are compiled. Returns true
    /// if any was run.
    #[inline]
    pub fn run_repeating_queues(&self, queues: &[RepeatingQueue]) -> bool {
        let run = |repeating: &RepeatingQueue| {
            repeating.steps.as_ref().is_some_and(|it| self.run_unless_leased(repeating, it))
        };
        queues.iter().fold(false, |moved, repeating| moved | run(repeating))
    }

    /// Runs those commands of a just started queue that need not wait. Then arms the signal for which the next
    /// command waits, so that a rank that raises it goes on. A lease holder may have read the count of starts too
    /// early; the mark on the lease makes it run the queue again.
    #[inline]
    fn begin(&self, repeating: &RepeatingQueue, steps: &QueueSteps) {
        self.run_or_mark_lease(repeating, steps);
        self.arm_and_run(repeating, steps);
    }

    /// Arms the signal for which the next command of a queue waits. Runs the queue if the threshold was reached
    /// meanwhile.
    #[inline]
    fn arm_and_run(&self, repeating: &RepeatingQueue, steps: &QueueSteps) {
        if self.arm_next_wait(repeating, steps) {
            self.run_or_mark_lease(repeating, steps);
        }
    }

    /// Calls `arm_and_run` for each queue that is compiled.
    #[inline]
    fn arm_all(&self, queues: &[RepeatingQueue]) {
        for repeating in queues {
            repeating.steps.iter().for_each(|steps| self.arm_and_run(repeating, steps));
        }
    }

    /// Waits until all targets are reached, and runs the queues meanwhile. A long wait calls the probe of number
    /// `wait_probe`.
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
        if queues.iter().all(|repeating| repeating.steps.is_some())
            && self.spins_until_reached(queues, &are_reached)
        {
            return Ok(());
        }
        let _named = scoped_wait_probe(wait_probe);
        targets.clone().try_for_each(|target| {
            let SignalTarget { cell, threshold } = target;
            self.wait(&Condition::Signal(cell, threshold, None), self.call_deadline(), call)
        })
    }

    /// Runs the queues and spins. Returns true if the targets were reached, and false when this rank must make
    /// progress on its other work.
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
                    self.arm_all(queues); // the rank that raises the signal has the processor, and can run the queue
                }
                self.platform().offer();
            }
            if are_reached() {
                return true;
            }
        }
        false
    }

    /// Arms the signal that the next command of a session queue waits for, unless that command is left to the queue's
    /// rank. Returns true if the threshold was reached meanwhile. Where this rank does not reach signals by loads and
    /// stores, all signals that commands may wait for are armed from the beginning, so this function does nothing.
    #[inline]
    pub(in crate::engine::command_queue) fn arm_head(&self, resolved: &ResolvedQueue<'_>) -> bool {
        resolved.queue.cycle().is_some() && self.reaches_words() && self.arm_next(resolved)
    }

    fn arm_next(&self, resolved: &ResolvedQueue<'_>) -> bool {
        let position = resolved.queue.reader().read();
        let Some(encoded) = resolved.encoded_at(position).filter(|encoded| !encoded.is_left_to_owner())
        else {
            return false;
        };
        let Some(trigger) = encoded.head(resolved.queue.place_of(position).1) else { return false };
        resolved.credit(self.shared_fabric()).is_some()
            && resolved.trigger_outcome(self.shared_fabric(), trigger).is_none()
            && arm(resolved.signal_control(trigger.signal), resolved.number)
            && resolved.trigger_outcome(self.shared_fabric(), trigger).is_some()
    }

    /// Returns true if all commands that starts have released are complete, and nobody holds the lease.
    pub fn has_run_all(&self, repeating: &RepeatingQueue) -> bool {
        let queue = repeating.local.queue();
        let started = queue.credit().map_or(0, |credit| self.count_of_own(credit));
        let is_run = queue.commands() == started.wrapping_mul(queue.per_credit());
        is_run && queue.in_flight().is_empty() && queue.lease().snapshot().is_free()
    }
}
