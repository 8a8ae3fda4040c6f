//! The state of a running rank: the rest of its part, and its progress.

use super::super::{RankPart, START, SignalId, Step, StepKind, StepTrigger};
use crate::network::Time;
use std::collections::BTreeMap;

/// A queue of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveQueue {
    /// The number of the queue.
    pub(crate) queue: u16,
    /// The range of its steps among those of the rank.
    first: u32,
    end: u32,
    /// The next step, and the start to which it belongs.
    next: u32,
    pub(crate) start: u32,
    /// True if the next step waits for its engine.
    pub(crate) waits: bool,
    /// When its last reduction ends: the next reduction begins then.
    combines: Time,
}

/// A running rank.
#[derive(Debug)]
pub(crate) struct LiveRank {
    /// The steps, in the order of their queues.
    steps: Box<[Step]>,
    pub(crate) lanes: Box<[LiveQueue]>,
    /// For each signal: its count, and its total in a start.
    counts: Box<[(u64, u64)]>,
    finish: Box<[StepTrigger]>,
    /// Starts that have begun, and starts that are over.
    pub(crate) begun: u32,
    pub(crate) ended: u32,
    /// The time until which its host computes.
    pub(crate) computes: Time,
    /// For each queue and signal, the arrival of the last effect.
    last: BTreeMap<(u16, u32, SignalId), Time>,
    /// Number of entries at which that table is cleaned up.
    last_many: usize,
}

/// An unmet trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockedTrigger {
    /// The queue, and the number of its steps before; `None` for the end of the start.
    pub(crate) step: Option<(u16, u32)>,
    pub(crate) start: u32,
    pub(crate) signal: SignalId,
    pub(crate) reached: u64,
    pub(crate) wanted: u64,
}

/// Number of last effects that are kept without a clean-up.
const LAST_FEW: usize = 16;

/// Bytes of a rank besides its part: itself, its engines and ports, and its end.
const RANK_BYTES: u64 = 500;
/// Bytes of an effect while it is in flight, and until later effects of its queue need not wait for it.
const EFFECT_BYTES: u64 = 64;

/// Estimates the bytes that a rank takes until it is done.
pub(super) fn bytes(part: &RankPart) -> u64 {
    let effects: usize = part.steps().iter().map(|step| step.effects().count()).sum();
    let mut queues: Vec<u16> = part.steps().iter().map(|step| step.queue.0).collect();
    queues.sort_unstable();
    queues.dedup();
    let kept = size_of_val(part.steps())
        + queues.len() * size_of::<LiveQueue>()
        + part.signal_decls().len() * size_of::<(u64, u64)>()
        + size_of_val(part.finish_conditions());
    RANK_BYTES + kept as u64 + effects as u64 * EFFECT_BYTES
}

impl LiveRank {
    pub(crate) fn new(part: &RankPart) -> LiveRank {
        let mut steps = part.steps().to_vec();
        steps.sort_by_key(|step| step.queue);
        let mut lanes: Vec<LiveQueue> = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let (queue, number) = (step.queue.0, number as u32);
            match lanes.last_mut().filter(|lane| lane.queue == queue) {
                Some(lane) => lane.end = number + 1,
                None => {
                    let (first, end) = (number, number + 1);
                    let (waits, combines) = (false, Time::ZERO);
                    lanes.push(LiveQueue { queue, first, end, next: first, start: 0, waits, combines });
                }
            }
        }
        LiveRank {
            steps: steps.into(),
            lanes: lanes.into(),
            counts: part.signal_decls().iter().map(|counter| (0, counter.per_start)).collect(),
            finish: part.finish_conditions().into(),
            begun: 0,
            ended: 0,
            computes: Time::ZERO,
            last: BTreeMap::new(),
            last_many: LAST_FEW,
        }
    }

    /// Starts the program of the rank.
    pub(crate) fn start(&mut self) {
        self.begun += 1;
        self.raise(START, 1);
    }

    /// Adds `amount` to a signal. Returns false if there is no such signal.
    pub(crate) fn raise(&mut self, signal: SignalId, amount: u64) -> bool {
        let count = self.counts.get_mut(signal.index());
        count.map(|(count, _)| *count = count.saturating_add(amount)).is_some()
    }

    /// Returns the count of a signal and the count that a trigger of that start needs. `None`: the
    /// trigger is met.
    fn missing(&self, trigger: &StepTrigger, start: u32) -> Option<(u64, u64)> {
        let start = start.checked_sub(trigger.lag)?;
        let (count, per_start) = self.counts[trigger.signal.index()];
        let wanted = per_start.saturating_mul(start.into()).saturating_add(trigger.count);
        (count < wanted).then_some((count, wanted))
    }

    /// The next step of a queue, if it may begin now: the rank has started, and the trigger is met.
    pub(crate) fn ready(&self, lane: u16, now: Time) -> Option<&Step> {
        let lane = &self.lanes[usize::from(lane)];
        if lane.waits || lane.start == self.begun {
            return None;
        }
        let step = &self.steps[lane.next as usize];
        if lane.combines > now && matches!(step.action, StepKind::Reduce { .. }) {
            return None;
        }
        self.missing(&step.trigger, lane.start).is_none().then_some(step)
    }

    /// Begins the next step of a queue, and returns it.
    pub(crate) fn begin(&mut self, lane: u16) -> Step {
        let lane = &mut self.lanes[usize::from(lane)];
        let step = self.steps[lane.next as usize];
        lane.waits = false;
        lane.next += 1;
        if lane.next == lane.end {
            (lane.next, lane.start) = (lane.first, lane.start + 1);
        }
        step
    }

    /// Records that the reduction of a queue ends at `until`.
    pub(crate) fn combine(&mut self, lane: u16, until: Time) {
        self.lanes[usize::from(lane)].combines = until;
    }

    /// Returns true if the start that began last may be over.
    pub(crate) fn may_end(&self, now: Time) -> bool {
        let is_met = |trigger: &StepTrigger| self.missing(trigger, self.ended).is_none();
        self.ended < self.begun && self.computes <= now && self.finish.iter().all(is_met)
    }

    /// Returns true if the rank has done all `starts` starts.
    pub(crate) fn is_done(&self, starts: u32) -> bool {
        self.ended == starts && self.lanes.iter().all(|lane| lane.start == starts)
    }

    /// Returns when an effect of a queue arrives at a signal: at `at`, but not before the queue's
    /// earlier effects on this signal.
    pub(crate) fn in_order(&mut self, queue: u16, rank: u32, signal: SignalId, at: Time, now: Time) -> Time {
        let last = self.last.entry((queue, rank, signal)).or_default();
        *last = at.max(*last);
        let at = *last;
        if self.last.len() > self.last_many {
            self.last.retain(|_, last| *last > now);
            self.last_many = LAST_FEW.max(2 * self.last.len());
        }
        at
    }

    /// The unmet triggers of its queues and its program.
    pub(crate) fn unmet(&self, starts: u32) -> Vec<BlockedTrigger> {
        let mut found = Vec::new();
        for lane in self.lanes.iter().filter(|lane| lane.start < starts) {
            let trigger = self.steps[lane.next as usize].trigger;
            if let Some((reached, wanted)) = self.missing(&trigger, lane.start) {
                let (step, signal) = (Some((lane.queue, lane.next - lane.first)), trigger.signal);
                found.push(BlockedTrigger { step, start: lane.start, signal, reached, wanted });
            }
        }
        if self.ended < self.begun {
            let missing = |trigger: &StepTrigger| {
                let (reached, wanted) = self.missing(trigger, self.ended)?;
                Some(BlockedTrigger {
                    step: None,
                    start: self.ended,
                    signal: trigger.signal,
                    reached,
                    wanted,
                })
            };
            found.extend(self.finish.iter().find_map(missing));
        }
        found
    }
}
