//! Compiles a part to the steps of an execution, which uses the buffers that a call passes to it.
//!
//! The schedule must have one queue for each rank, and only one rank may raise each signal. No rank may read or write
//! the data of another, unless there are two ranks that expose their buffers to each other. No step waits for a signal
//! that this rank itself raises: the step that raises it is complete before the next step begins.

use crate::plan::compile::commands::PlanCompiler;
use crate::plan::compile::inline_flag::{FLAG_OFFSET, FlaggedBuffer};
use crate::plan::setup::layout::{DataPlacement, common_multiple};
use std::collections::BTreeMap;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Worker;
use tasuki_core::engine::executor::{Execution, FlagSpec, Operand, PerStart, StepAction, StepSpec, WaitSpec};
use tasuki_core::segment::GlobalAddress;
use tasuki_schedule::shape::DATA;
use tasuki_schedule::{
    BufferKind, Location, RankPart, START, Schedule, SignalId, Step, StepKind, StepTrigger,
};

/// Compiles the execution of a rank: one variant for each schedule, all in the same buffers and signals.
pub(crate) fn compile_steps(
    compiler: &PlanCompiler<'_>,
    schedules: &[Schedule],
    worker: &Worker,
    (me, data): (usize, DataPlacement),
) -> Result<Execution, Cause> {
    let turns = compiler.others.values().map(|placed| placed.layout.turns).fold(1, common_multiple);
    let compiled = |schedule| variant_steps(compiler, schedule, (&schedule.part(me), data), turns);
    let mut variants = schedules.iter().map(compiled).collect::<Result<Vec<_>, Cause>>()?;
    let most = variants.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let specs: Vec<Vec<StepSpec>> = variants.drain(..).map(|variant| pad_calls(variant, most)).collect();
    let exposes = match data {
        DataPlacement::ExposedBuffer => {
            Some((exposed_at(compiler, me as u32)?, compiler.placed(1 - me as u32)?.rank))
        }
        DataPlacement::OfPlan | DataPlacement::CallBuffers => None,
    };
    let made = worker.make_execution(&specs, turns as usize, exposes)?;
    made.ok_or_else(|| {
        Cause::Unsupported(
            "compiled steps need members that reach each other's memory by loads and stores".into(),
        )
    })
}

/// Returns the address at which a rank publishes where its exposed buffer lies.
fn exposed_at(compiler: &PlanCompiler<'_>, rank: u32) -> Result<GlobalAddress, Cause> {
    compiler.byte(DATA.on(rank as usize, 0), 0)
}

/// Concatenates the calls of a variant, each padded to `most` steps.
fn pad_calls(calls: Vec<Vec<StepSpec>>, most: usize) -> Vec<StepSpec> {
    let nothing = StepSpec { wait: None, action: StepAction::Nothing, flag: None, raises: Vec::new() };
    let padded = |mut call: Vec<StepSpec>| {
        call.resize(most, nothing.clone());
        call
    };
    calls.into_iter().flat_map(padded).collect()
}

/// Compiles the steps of a variant, for each of `turns` calls.
fn variant_steps(
    compiler: &PlanCompiler<'_>,
    schedule: &Schedule,
    (part, data): (&RankPart, DataPlacement),
    turns: u64,
) -> Result<Vec<Vec<StepSpec>>, Cause> {
    let parts = AllParts::new(schedule)?;
    let flagged_buffers =
        compiler.others.keys().filter_map(|&rank| Some((rank, FlaggedBuffer::of(&parts, rank)?))).collect();
    let (raised, specs) = (BTreeMap::new(), Vec::new());
    let mut step_compiler =
        StepCompiler { compiler, data, part, parts: &parts, flagged_buffers, turns, raised, specs };
    let calls =
        (0..turns).map(|start| step_compiler.start(start).map(|()| std::mem::take(&mut step_compiler.specs)));
    let mut calls = calls.collect::<Result<Vec<_>, Cause>>()?;
    let raised = step_compiler.raised;
    for (signal, count) in calls.iter_mut().flatten().flat_map(|spec| &mut spec.raises) {
        count.more = raised.get(signal).copied().unwrap_or(0);
    }
    Ok(calls)
}

/// All parts of a schedule, and the rank that raises each of their signals.
pub(crate) struct AllParts {
    parts: Vec<RankPart>,
    raisers: Vec<Vec<Option<u32>>>,
}

impl AllParts {
    pub(crate) fn new(schedule: &Schedule) -> Result<AllParts, Cause> {
        let parts: Vec<RankPart> = (0..schedule.ranks()).map(|rank| schedule.part(rank)).collect();
        let mut raisers: Vec<_> = parts.iter().map(|part| vec![None; part.signal_decls().len()]).collect();
        for (by, part) in (0..).zip(&parts) {
            for effect in part.steps().iter().flat_map(Step::effects) {
                let raiser = &mut raisers[effect.rank as usize][effect.signal.index()];
                if raiser.replace(by).is_some_and(|other| other != by) {
                    return Err(Cause::Bug(
                        "two ranks raise one signal of a schedule that is compiled to steps".into(),
                    ));
                }
            }
        }
        Ok(AllParts { parts, raisers })
    }

    pub(crate) fn of(&self, rank: u32) -> &RankPart {
        &self.parts[rank as usize]
    }

    /// Returns the rank that raises a signal of `rank`, if one does.
    pub(crate) fn raiser(&self, rank: u32, signal: SignalId) -> Option<u32> {
        self.raisers[rank as usize][signal.index()]
    }
}

struct StepCompiler<'l> {
    compiler: &'l PlanCompiler<'l>,
    data: DataPlacement,
    part: &'l RankPart,
    parts: &'l AllParts,
    /// The flagged buffers of this rank and of those that it refers to.
    flagged_buffers: BTreeMap<u32, FlaggedBuffer>,
    turns: u64,
    /// The sum of the raises of each signal so far.
    raised: BTreeMap<GlobalAddress, u64>,
    /// The steps of the start that is being compiled.
    specs: Vec<StepSpec>,
}

impl StepCompiler<'_> {
    /// Compiles one start.
    fn start(&mut self, start: u64) -> Result<(), Cause> {
        let own = self.part.rank() as u32;
        for (number, step) in self.part.steps().iter().enumerate() {
            let flagged = self.flagged_buffers.get(&own).filter(|flagged| flagged.step == number);
            let spec = StepSpec {
                wait: self.wait_spec(step.trigger, step.action, start)?,
                action: self.step_action(step.action, start)?,
                flag: flagged.map(|flagged| self.flag_spec(own, flagged, start)).transpose()?,
                raises: self.raises(step)?,
            };
            self.add(spec);
        }
        for &trigger in self.part.finish_conditions() {
            let wait = self.wait_spec(trigger, StepKind::Nothing, start)?;
            self.add(StepSpec { wait, action: StepAction::Nothing, flag: None, raises: Vec::new() });
        }
        Ok(())
    }

    /// Adds a step. A step that only raises signals is merged into the step before it.
    fn add(&mut self, spec: StepSpec) {
        match self.specs.last_mut() {
            Some(last) if spec.wait.is_none() && spec.action == StepAction::Nothing => {
                last.raises.extend(spec.raises);
            }
            _ => self.specs.push(spec),
        }
    }

    fn wait_spec(
        &self,
        trigger: StepTrigger,
        action: StepKind,
        start: u64,
    ) -> Result<Option<WaitSpec>, Cause> {
        let StepTrigger { signal, count, lag } = trigger;
        let own = self.part.rank() as u32;
        let by = self.parts.raiser(own, signal);
        let Some(by) = by.filter(|&by| by != own && signal != START) else { return Ok(None) };
        let per_start = self.part.signal_decls()[signal.index()].per_start;
        let starts = start.wrapping_sub(lag.into()).wrapping_mul(per_start);
        let first = self.compiler.initial[signal.index()].wrapping_add(starts).wrapping_add(count);
        let count = PerStart { first, more: self.turns * per_start };
        let flag = match action {
            StepKind::Copy { from, .. } | StepKind::Reduce { from, .. } if from.rank == by => {
                let flagged = self
                    .flagged_buffers
                    .get(&by)
                    .filter(|flagged| flagged.replaces_wait(own, trigger, from.buffer));
                flagged.map(|flagged| self.flag_spec(by, flagged, start)).transpose()?
            }
            _ => None,
        };
        let signal = self.compiler.own.number(signal);
        Ok(Some(WaitSpec { signal, count, by: self.rank(by)?, flag }))
    }

    /// Returns the inline flag of a start.
    fn flag_spec(&self, rank: u32, flagged: &FlaggedBuffer, start: u64) -> Result<FlagSpec, Cause> {
        let at = self.compiler.byte(Location { rank, buffer: flagged.buffer, offset: FLAG_OFFSET }, start)?;
        Ok(FlagSpec { at, number: PerStart { first: start + 1, more: self.turns } })
    }

    fn raises(&mut self, step: &Step) -> Result<Vec<(GlobalAddress, PerStart)>, Cause> {
        let others = step.effects().filter(|effect| effect.rank as usize != self.part.rank());
        let mut raises = Vec::new();
        for effect in others {
            let signal = self.compiler.placed(effect.rank)?.signal(effect.signal);
            let raised = self.raised.entry(signal).or_default();
            *raised += effect.amount;
            raises.push((signal, PerStart { first: *raised, more: 0 }));
        }
        Ok(raises)
    }

    fn step_action(&self, action: StepKind, start: u64) -> Result<StepAction, Cause> {
        Ok(match action {
            StepKind::Nothing => StepAction::Nothing,
            StepKind::Copy { from, to, bytes } => {
                StepAction::Copy(self.operand(from, start)?, self.operand(to, start)?, bytes)
            }
            StepKind::Reduce { from, to, bytes, in_front } => {
                StepAction::Combine(self.operand(from, start)?, self.operand(to, start)?, bytes, in_front)
            }
        })
    }

    fn operand(&self, place: Location, start: u64) -> Result<Operand, Cause> {
        let room = self.part.buffer_decls().get(place.buffer.index());
        if room.is_none_or(|room| room.kind != BufferKind::User) {
            return Ok(Operand::At(self.compiler.byte(place, start)?));
        }
        if place.rank as usize != self.part.rank() {
            return match self.data {
                DataPlacement::ExposedBuffer => {
                    Ok(Operand::ExposedBuffer(exposed_at(self.compiler, place.rank)?, place.offset))
                }
                DataPlacement::OfPlan | DataPlacement::CallBuffers => Err(Cause::Bug(
                    "a step of a schedule uses the data of another rank, which has not exposed them".into(),
                )),
            };
        }
        Ok(Operand::CallBuffers(place.buffer.index(), place.offset))
    }

    fn rank(&self, member: u32) -> Result<Rank, Cause> {
        self.compiler.placed(member).map(|placed| placed.rank)
    }
}
