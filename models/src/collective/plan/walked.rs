//! A part as a walk: the steps of a call, in memory that it lends.
//!
//! That is for schedules in which nobody reads or writes the data of another rank, each rank has one queue, and each
//! signal has one rank that raises it. What only this rank itself raises is over when the step that raises it is, so
//! nothing waits for it.

use super::layout::common_multiple;
use super::lower::Lowering;
use crate::schedule::{Deed, Part, Place, START, Schedule, Step, Trigger, Use};
use std::collections::BTreeMap;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Machine;
use tasuki_core::engine::walk::{Act, Growing, Pace, Spot, Until, Walk};

/// The walk of a part.
pub(super) fn lower(
    lowering: &Lowering<'_>,
    schedule: &Schedule,
    part: &Part,
    machine: &Machine,
) -> Result<Walk, Cause> {
    let raisers = raisers(schedule, part.rank())?;
    let turns = lowering.others.values().map(|placed| placed.layout.turns).fold(1, common_multiple);
    let mut walk = Lowered { lowering, part, raisers, turns, raised: BTreeMap::new(), paces: Vec::new() };
    (0..turns).try_for_each(|start| walk.start(start))?;
    let Lowered { mut paces, raised, .. } = walk;
    for (signal, count) in paces.iter_mut().flat_map(|pace| &mut pace.raises) {
        count.more = raised.get(signal).copied().unwrap_or(0);
    }
    let made = machine.make_walk(&paces, paces.len() / turns as usize)?;
    made.ok_or_else(|| Cause::Unsupported("members that do not reach each other's memory".into()))
}

/// Who raises each signal of a rank.
fn raisers(schedule: &Schedule, rank: usize) -> Result<Vec<Option<u32>>, Cause> {
    let mut raisers = vec![None; schedule.part(rank).counters().len()];
    for by in 0..schedule.ranks() {
        let part = schedule.part(by);
        for effect in part.steps().iter().flat_map(Step::effects).filter(|it| it.rank as usize == rank) {
            let raiser = &mut raisers[effect.signal.index()];
            if raiser.replace(by as u32).is_some_and(|other| other != by as u32) {
                return Err(Cause::Bug("a signal that two ranks raise, in a call".into()));
            }
        }
    }
    Ok(raisers)
}

struct Lowered<'l> {
    lowering: &'l Lowering<'l>,
    part: &'l Part,
    raisers: Vec<Option<u32>>,
    turns: u64,
    /// How often each signal has been raised so far.
    raised: BTreeMap<tasuki_core::segment::GlobalAddress, u64>,
    paces: Vec<Pace>,
}

impl Lowered<'_> {
    /// One of the starts that are written out.
    fn start(&mut self, start: u64) -> Result<(), Cause> {
        let first = self.paces.len();
        for step in self.part.steps() {
            let pace = Pace {
                until: self.until(step.trigger, start)?,
                act: self.act(step.deed, start)?,
                raises: self.raises(step)?,
            };
            self.add(first, pace);
        }
        for &trigger in self.part.finished() {
            let until = self.until(trigger, start)?;
            self.add(first, Pace { until, act: Act::Nothing, raises: Vec::new() });
        }
        Ok(())
    }

    /// A step that only raises something is done with the one before it.
    fn add(&mut self, first: usize, pace: Pace) {
        let is_new = self.paces.len() == first;
        match self.paces.last_mut() {
            Some(last) if !is_new && pace.until.is_none() && pace.act == Act::Nothing => {
                last.raises.extend(pace.raises);
            }
            _ => self.paces.push(pace),
        }
    }

    fn until(&self, trigger: Trigger, start: u64) -> Result<Option<Until>, Cause> {
        let Trigger { signal, count, lag } = trigger;
        let by = self.raisers[signal.index()];
        let own = self.part.rank() as u32;
        let Some(by) = by.filter(|&by| by != own && signal != START) else { return Ok(None) };
        let per_start = self.part.counters()[signal.index()].per_start;
        let starts = start.wrapping_sub(lag.into()).wrapping_mul(per_start);
        let first = self.lowering.stood[signal.index()].wrapping_add(starts).wrapping_add(count);
        let count = Growing { first, more: self.turns * per_start };
        Ok(Some(Until { signal: self.lowering.own.number(signal), count, by: self.rank(by)? }))
    }

    fn raises(&mut self, step: &Step) -> Result<Vec<(tasuki_core::segment::GlobalAddress, Growing)>, Cause> {
        let others = step.effects().filter(|effect| effect.rank as usize != self.part.rank());
        let mut raises = Vec::new();
        for effect in others {
            let signal = self.lowering.placed(effect.rank)?.signal(effect.signal);
            let raised = self.raised.entry(signal).or_default();
            *raised += effect.amount;
            raises.push((signal, Growing { first: *raised, more: 0 }));
        }
        Ok(raises)
    }

    fn act(&self, deed: Deed, start: u64) -> Result<Act, Cause> {
        Ok(match deed {
            Deed::Nothing => Act::Nothing,
            Deed::Copy { from, to, bytes } => {
                Act::Copy(self.spot(from, start)?, self.spot(to, start)?, bytes)
            }
            Deed::Reduce { from, to, bytes, in_front } => {
                Act::Combine(self.spot(from, start)?, self.spot(to, start)?, bytes, in_front)
            }
        })
    }

    fn spot(&self, place: Place, start: u64) -> Result<Spot, Cause> {
        let room = self.part.rooms().get(place.buffer.index());
        if room.is_none_or(|room| room.used != Use::Program) {
            return Ok(Spot::At(self.lowering.byte(place, start)?));
        }
        if place.rank as usize != self.part.rank() {
            return Err(Cause::Bug("the data of another rank, in a call".into()));
        }
        Ok(Spot::Lent(place.buffer.index(), place.offset))
    }

    fn rank(&self, member: u32) -> Result<Rank, Cause> {
        match self.lowering.others.get(&member) {
            Some(placed) => Ok(placed.rank),
            None => Err(Cause::Bug(format!("nobody has asked where the part of rank {member} lies"))),
        }
    }
}
