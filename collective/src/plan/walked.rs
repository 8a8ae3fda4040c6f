//! A part as a walk: the steps of a call, in memory that it lends.
//!
//! That is for schedules in which each rank has one queue, and each signal has one rank that raises it; and nobody
//! reads or writes the data of another rank, unless there are two, who show them to each other. What only this rank
//! itself raises is over when the step that raises it is, so nothing waits for it.

use super::layout::{Data, common_multiple};
use super::lower::Lowering;
use super::sealed::{SEAL_AT, Sealed};
use std::collections::BTreeMap;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Machine;
use tasuki_core::engine::walk::{Act, Growing, Pace, Sealing, Spot, Until, Walk};
use tasuki_core::segment::GlobalAddress;
use tasuki_schedule::shape::DATA;
use tasuki_schedule::{Deed, Part, Place, START, Schedule, Signal, Step, Trigger, Use};

/// The walk of a rank's parts in those schedules: one way for each, in the same buffers and signals.
pub(super) fn lower(
    lowering: &Lowering<'_>,
    schedules: &[Schedule],
    machine: &Machine,
    (me, data): (usize, Data),
) -> Result<Walk, Cause> {
    let turns = lowering.others.values().map(|placed| placed.layout.turns).fold(1, common_multiple);
    let lowered = |schedule| way(lowering, schedule, (&schedule.part(me), data), turns);
    let mut ways = schedules.iter().map(lowered).collect::<Result<Vec<_>, Cause>>()?;
    let most = ways.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let paces: Vec<Vec<Pace>> = ways.drain(..).map(|way| in_step(way, most)).collect();
    let shows = match data {
        Data::Shown => Some((shown(lowering, me as u32)?, lowering.placed(1 - me as u32)?.rank)),
        Data::OfPlan | Data::Lent => None,
    };
    let made = machine.make_walk(&paces, turns as usize, shows)?;
    made.ok_or_else(|| Cause::Unsupported("members that do not reach each other's memory".into()))
}

/// Where a rank shows its data.
fn shown(lowering: &Lowering<'_>, rank: u32) -> Result<GlobalAddress, Cause> {
    lowering.byte(DATA.on(rank as usize, 0), 0)
}

/// The calls of a way, one behind the other, of as many steps each.
fn in_step(calls: Vec<Vec<Pace>>, most: usize) -> Vec<Pace> {
    let nothing = Pace { until: None, act: Act::Nothing, seal: None, raises: Vec::new() };
    let padded = |mut call: Vec<Pace>| {
        call.resize(most, nothing.clone());
        call
    };
    calls.into_iter().flat_map(padded).collect()
}

/// The steps of each of so many calls.
fn way(
    lowering: &Lowering<'_>,
    schedule: &Schedule,
    (part, data): (&Part, Data),
    turns: u64,
) -> Result<Vec<Vec<Pace>>, Cause> {
    let parts = Parts::new(schedule)?;
    let seals = lowering.others.keys().filter_map(|&rank| Some((rank, Sealed::of(&parts, rank)?))).collect();
    let (raised, paces) = (BTreeMap::new(), Vec::new());
    let mut walk = Lowered { lowering, data, part, parts: &parts, seals, turns, raised, paces };
    let calls = (0..turns).map(|start| walk.start(start).map(|()| std::mem::take(&mut walk.paces)));
    let mut calls = calls.collect::<Result<Vec<_>, Cause>>()?;
    let raised = walk.raised;
    for (signal, count) in calls.iter_mut().flatten().flat_map(|pace| &mut pace.raises) {
        count.more = raised.get(signal).copied().unwrap_or(0);
    }
    Ok(calls)
}

/// All parts of a schedule, and who raises their signals.
pub(super) struct Parts {
    parts: Vec<Part>,
    raisers: Vec<Vec<Option<u32>>>,
}

impl Parts {
    pub(super) fn new(schedule: &Schedule) -> Result<Parts, Cause> {
        let parts: Vec<Part> = (0..schedule.ranks()).map(|rank| schedule.part(rank)).collect();
        let mut raisers: Vec<_> = parts.iter().map(|part| vec![None; part.counters().len()]).collect();
        for (by, part) in (0..).zip(&parts) {
            for effect in part.steps().iter().flat_map(Step::effects) {
                let raiser = &mut raisers[effect.rank as usize][effect.signal.index()];
                if raiser.replace(by).is_some_and(|other| other != by) {
                    return Err(Cause::Bug("a signal that two ranks raise, in a call".into()));
                }
            }
        }
        Ok(Parts { parts, raisers })
    }

    pub(super) fn of(&self, rank: u32) -> &Part {
        &self.parts[rank as usize]
    }

    /// Who raises that signal of a rank, if anybody does.
    pub(super) fn raiser(&self, rank: u32, signal: Signal) -> Option<u32> {
        self.raisers[rank as usize][signal.index()]
    }
}

struct Lowered<'l> {
    lowering: &'l Lowering<'l>,
    data: Data,
    part: &'l Part,
    parts: &'l Parts,
    /// What ranks seal that this one has to do with, and this one itself.
    seals: BTreeMap<u32, Sealed>,
    turns: u64,
    /// How often each signal has been raised so far.
    raised: BTreeMap<GlobalAddress, u64>,
    /// Those of the start under way.
    paces: Vec<Pace>,
}

impl Lowered<'_> {
    /// One of the starts that are written out.
    fn start(&mut self, start: u64) -> Result<(), Cause> {
        let own = self.part.rank() as u32;
        for (number, step) in self.part.steps().iter().enumerate() {
            let sealed = self.seals.get(&own).filter(|sealed| sealed.step == number);
            let pace = Pace {
                until: self.until(step.trigger, step.deed, start)?,
                act: self.act(step.deed, start)?,
                seal: sealed.map(|sealed| self.seal(own, sealed, start)).transpose()?,
                raises: self.raises(step)?,
            };
            self.add(pace);
        }
        for &trigger in self.part.finished() {
            let until = self.until(trigger, Deed::Nothing, start)?;
            self.add(Pace { until, act: Act::Nothing, seal: None, raises: Vec::new() });
        }
        Ok(())
    }

    /// A step that only raises something is done with the one before it.
    fn add(&mut self, pace: Pace) {
        match self.paces.last_mut() {
            Some(last) if pace.until.is_none() && pace.act == Act::Nothing => {
                last.raises.extend(pace.raises);
            }
            _ => self.paces.push(pace),
        }
    }

    fn until(&self, trigger: Trigger, deed: Deed, start: u64) -> Result<Option<Until>, Cause> {
        let Trigger { signal, count, lag } = trigger;
        let own = self.part.rank() as u32;
        let by = self.parts.raiser(own, signal);
        let Some(by) = by.filter(|&by| by != own && signal != START) else { return Ok(None) };
        let per_start = self.part.counters()[signal.index()].per_start;
        let starts = start.wrapping_sub(lag.into()).wrapping_mul(per_start);
        let first = self.lowering.stood[signal.index()].wrapping_add(starts).wrapping_add(count);
        let count = Growing { first, more: self.turns * per_start };
        let seal = match deed {
            Deed::Copy { from, .. } | Deed::Reduce { from, .. } if from.rank == by => {
                let sealed = self.seals.get(&by).filter(|sealed| sealed.says(own, trigger, from.buffer));
                sealed.map(|sealed| self.seal(by, sealed, start)).transpose()?
            }
            _ => None,
        };
        let signal = self.lowering.own.number(signal);
        Ok(Some(Until { signal, count, by: self.rank(by)?, seal }))
    }

    /// The seal of a start.
    fn seal(&self, rank: u32, sealed: &Sealed, start: u64) -> Result<Sealing, Cause> {
        let at = self.lowering.byte(Place { rank, buffer: sealed.buffer, offset: SEAL_AT }, start)?;
        Ok(Sealing { at, number: Growing { first: start + 1, more: self.turns } })
    }

    fn raises(&mut self, step: &Step) -> Result<Vec<(GlobalAddress, Growing)>, Cause> {
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
            return match self.data {
                Data::Shown => Ok(Spot::Shown(shown(self.lowering, place.rank)?, place.offset)),
                Data::OfPlan | Data::Lent => Err(Cause::Bug("the data of another rank, in a call".into())),
            };
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
