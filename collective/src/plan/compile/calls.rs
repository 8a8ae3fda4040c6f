//! Compiles a part to the steps of an execution, which uses the buffers that a call passes to it.
//!
//! The schedule must have one queue for each rank, and only one rank may raise each signal. No rank may read or write
//! the data of another, unless there are two ranks that expose their buffers to each other.

use crate::call_kind::CallSchedules;
use crate::plan::compile::inline_flag::{FLAG_OFFSET, FlaggedBuffer};
use crate::plan::compile::placement::PlacedParts;
use crate::plan::compile::steps::StepCompiler;
use crate::plan::setup::layout::DataPlacement;
use std::collections::BTreeMap;
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;
use tasuki_core::engine::executor::{Execution, FlagSpec, Operand, PerStart, StepAction, StepSpec};
use tasuki_core::segment::GlobalAddress;
use tasuki_schedule::shape::DATA;
use tasuki_schedule::{Location, RankPart, START, Schedule, SignalId, Step, StepKind, StepTrigger};

/// What the steps of calls need to know: where data lie, and what the other ranks do.
pub(crate) struct CallForm<'l> {
    data: DataPlacement,
    parts: &'l AllParts,
    /// The flagged buffers of this rank and of those that it refers to.
    flagged_buffers: BTreeMap<u32, FlaggedBuffer>,
}

/// Compiles the execution of a rank: a variant for each schedule, all in the same buffers and signals.
pub(crate) fn compile_execution(
    placed: &PlacedParts<'_>,
    schedules: &CallSchedules,
    worker: &Worker,
    (me, data): (usize, DataPlacement),
) -> Result<Execution, Cause> {
    let turns = placed.turns();
    let compiled = |schedule| variant_steps(placed, schedule, (&schedule.part(me), data), turns);
    let mut variants = schedules.all.iter().map(compiled).collect::<Result<Vec<_>, Cause>>()?;
    let most = variants.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let specs: Vec<Vec<StepSpec>> = variants.drain(..).map(|variant| pad_calls(variant, most)).collect();
    let exposes = match data {
        DataPlacement::ExposedBuffer => {
            Some((exposed_at(placed, me as u32)?, placed.placed(1 - me as u32)?.rank))
        }
        DataPlacement::OfPlan | DataPlacement::CallBuffers => None,
    };
    let made = worker.make_execution(&specs, turns as usize, schedules.pieces, exposes)?;
    made.ok_or_else(|| {
        Cause::Unsupported(
            "compiled steps need members that reach each other's memory by loads and stores".into(),
        )
    })
}

/// Returns the address at which a rank publishes where its exposed buffer lies.
fn exposed_at(placed: &PlacedParts<'_>, rank: u32) -> Result<GlobalAddress, Cause> {
    placed.byte(DATA.on(rank as usize, 0), 0)
}

/// Concatenates the calls of a variant, each padded to `most` steps.
fn pad_calls(calls: Vec<Vec<StepSpec>>, most: usize) -> Vec<StepSpec> {
    let padded = |mut call: Vec<StepSpec>| {
        call.resize(most, StepSpec::NOTHING);
        call
    };
    calls.into_iter().flat_map(padded).collect()
}

/// Compiles the steps of a variant, for each of `turns` calls.
fn variant_steps(
    placed: &PlacedParts<'_>,
    schedule: &Schedule,
    (part, data): (&RankPart, DataPlacement),
    turns: u64,
) -> Result<Vec<Vec<StepSpec>>, Cause> {
    let parts = &AllParts::new(schedule)?;
    let flagged = |&rank: &u32| Some((rank, FlaggedBuffer::of(parts, rank)?));
    let flagged_buffers = placed.others.keys().filter_map(flagged).collect();
    let calls = Some(CallForm { data, parts, flagged_buffers });
    let compiler = StepCompiler { placed, part, turns, calls };
    (0..turns).map(|start| compiler.call_steps(start)).collect()
}

impl StepCompiler<'_> {
    /// Compiles the steps of a call. A step that only raises signals is merged into the step before it.
    fn call_steps(&self, start: u64) -> Result<Vec<StepSpec>, Cause> {
        let steps = self.part.steps().iter().enumerate().map(|(number, step)| {
            let flag = self.flag_set_by(number, start)?;
            Ok(StepSpec { flag, ..self.step(step, start)? })
        });
        let at_end = self.part.finish_conditions().iter().map(|&trigger| {
            Ok(StepSpec { wait: self.wait(trigger, StepKind::Nothing, start)?, ..StepSpec::NOTHING })
        });
        let mut call: Vec<StepSpec> = Vec::new();
        for spec in steps.chain(at_end) {
            let spec = spec?;
            match call.last_mut() {
                Some(last) if spec.wait.is_none() && spec.action == StepAction::Nothing => {
                    last.raises.extend(spec.raises);
                }
                _ => call.push(spec),
            }
        }
        Ok(call)
    }

    /// Returns the inline flag that the step of that number sets.
    fn flag_set_by(&self, number: usize, start: u64) -> Result<Option<FlagSpec>, Cause> {
        let own = self.part.rank() as u32;
        let flagged = self.calls.as_ref().and_then(|calls| calls.flagged_buffers.get(&own));
        let flagged = flagged.filter(|flagged| flagged.step == number);
        flagged.map(|flagged| self.flag_spec(own, flagged, start)).transpose()
    }

    /// Returns the inline flag in a rank's buffer in a start.
    fn flag_spec(&self, rank: u32, flagged: &FlaggedBuffer, start: u64) -> Result<FlagSpec, Cause> {
        let place = Location { rank, buffer: flagged.buffer, offset: FLAG_OFFSET };
        let number = PerStart { first: start + 1, more: self.turns };
        Ok(FlagSpec { at: self.placed.byte(place, start)?, number })
    }
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

impl CallForm<'_> {
    /// Returns the other rank that raises a signal of the part; `None` if this rank raises it itself.
    pub(crate) fn raiser(&self, part: &RankPart, signal: SignalId) -> Option<u32> {
        let own = part.rank() as u32;
        self.parts.raiser(own, signal).filter(|&by| by != own && signal != START)
    }

    /// Returns the inline flag that a step may read instead of the signal of its trigger, which rank `by` raises.
    pub(crate) fn flag_read_by(
        &self,
        compiler: &StepCompiler<'_>,
        (by, trigger): (u32, StepTrigger),
        action: StepKind,
        start: u64,
    ) -> Result<Option<FlagSpec>, Cause> {
        let (StepKind::Copy { from, .. } | StepKind::Reduce { from, .. }) = action else { return Ok(None) };
        let own = compiler.part.rank() as u32;
        let flagged = self
            .flagged_buffers
            .get(&by)
            .filter(|flagged| from.rank == by && flagged.replaces_wait(own, trigger, from.buffer));
        flagged.map(|flagged| compiler.flag_spec(by, flagged, start)).transpose()
    }

    /// Returns where a call finds a byte of a buffer that the program passes.
    pub(crate) fn user_buffer(
        &self,
        placed: &PlacedParts<'_>,
        part: &RankPart,
        place: Location,
    ) -> Result<Operand, Cause> {
        if place.rank as usize == part.rank() {
            return Ok(Operand::CallBuffers(place.buffer.index(), place.offset));
        }
        match self.data {
            DataPlacement::ExposedBuffer => {
                Ok(Operand::ExposedBuffer(exposed_at(placed, place.rank)?, place.offset))
            }
            DataPlacement::OfPlan | DataPlacement::CallBuffers => Err(Cause::Bug(
                "a step of a schedule uses the data of another rank, which has not exposed them".into(),
            )),
        }
    }
}
