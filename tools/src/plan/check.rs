//! Proves plans, and shows the steps that the first fault involves.

use super::arguments::{Ask, Plan};
use super::names::{self, Everybody};
use super::show::wrap;
use crate::arguments::proof::{self, Outcome, prove, too_large};
use crate::arguments::{collective_names, text};
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use tasuki_command::{misuse, print};
use tasuki_schedule::goal::{self, GoalStats};
use tasuki_schedule::{CheckReport, Fault, FaultSite, Location, RankPart, Schedule, Step, StepKind};

/// Number of steps shown for a fault.
const STEPS_MAX: usize = 12;
/// The exit code for a wrong plan.
const WRONG: u8 = 1;

#[derive(Serialize)]
struct JsonReport {
    plans: Vec<CheckRow>,
}

#[derive(Serialize)]
struct CheckRow {
    name: String,
    title: String,
    proven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    too_large: Option<String>,
    #[serde(flatten)]
    numbers: Option<Numbers>,
}

#[derive(Serialize)]
struct GoalRow<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(flatten)]
    numbers: Option<&'a GoalStats>,
}

#[derive(Serialize)]
struct Numbers {
    ranks: usize,
    steps: usize,
    depth: usize,
    busiest_bytes: u64,
    queue_steps_max: usize,
}

/// The subcommand; its exit code.
pub(super) fn command(ask: &Ask, json: bool) -> anyhow::Result<u8> {
    if let Some(path) = ask.goal() {
        return goal_text(path, json);
    }
    let plans = ask.plans()?;
    let limit = proof::limit();
    let outcomes: Vec<Outcome> = plans.iter().map(|plan| prove(&plan.schedule, limit)).collect();
    if json {
        let rows: Vec<CheckRow> =
            plans.iter().zip(&outcomes).map(|(plan, outcome)| row(plan, outcome)).collect();
        print(&format!("{}\n", serde_json::to_string_pretty(&JsonReport { plans: rows })?))?;
    } else if let [(plan, outcome)] = &plans.iter().zip(&outcomes).collect::<Vec<_>>()[..] {
        print(&one(plan, outcome)?)?;
    } else {
        print(&table(&plans, &outcomes))?;
    }
    if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Wrong(_))) {
        return Ok(WRONG);
    }
    match outcomes
        .iter()
        .find_map(|outcome| if let Outcome::TooLarge(bytes) = outcome { Some(*bytes) } else { None })
    {
        Some(bytes) => Err(misuse(too_large(bytes))),
        None => Ok(0),
    }
}

/// Checks that the messages of a GOAL text match and that nothing waits for itself. GOAL text
/// allows no further check.
fn goal_text(path: &str, json: bool) -> anyhow::Result<u8> {
    let text = text(path)?;
    let goal = goal::parse(&text).map_err(|why| misuse(format!("{path}: {why}")))?;
    let measured = goal.measure();
    if json {
        let (numbers, fault) = (measured.as_ref().ok(), measured.as_ref().err().map(ToString::to_string));
        print(&format!("{}\n", serde_json::to_string_pretty(&GoalRow { path, fault, numbers })?))?;
    } else {
        print(&match &measured {
            Ok(one) => format!(
                "{path}: messages are sent and received once, and nothing waits for itself\n  \
                 {:>12}  ranks\n  {:>12}  operations\n  {:>12}  messages\n  {:>12}  bytes of all messages\n  \
                 {:>12}  messages, each of which waits for the one before it\n",
                one.ranks, one.operations, one.messages, one.bytes, one.depth
            ),
            Err(why) => format!("{path}: wrong\n  {why}\n"),
        })?;
    }
    Ok(if measured.is_ok() { 0 } else { WRONG })
}

fn row(plan: &Plan, outcome: &Outcome) -> CheckRow {
    let (mut fault, mut large, mut numbers) = (None, None, None);
    match outcome {
        Outcome::Right(CheckReport { ranks, steps, depth, busiest_bytes, queue_steps_max }) => {
            let (ranks, steps, depth) = (*ranks, *steps, *depth);
            let (busiest_bytes, queue_steps_max) = (*busiest_bytes, *queue_steps_max);
            numbers = Some(Numbers { ranks, steps, depth, busiest_bytes, queue_steps_max });
        }
        Outcome::Wrong(wrong) => fault = Some(wrong.to_string()),
        Outcome::TooLarge(bytes) => large = Some(too_large(*bytes)),
    }
    let proven = matches!(outcome, Outcome::Right(_));
    let (name, title) = (plan.schedule.name().to_string(), plan.title.clone());
    CheckRow { name, title, proven, fault, too_large: large, numbers }
}

/// The text about one plan.
fn one(plan: &Plan, outcome: &Outcome) -> anyhow::Result<String> {
    let mut text = String::new();
    match outcome {
        Outcome::Right(checked) => {
            let _ = writeln!(text, "{}: proven", plan.title);
            let mut line = |number: String, name: &str| {
                let _ = writeln!(text, "  {number:>12}  {name}");
            };
            line(checked.ranks.to_string(), "ranks");
            line(checked.steps.to_string(), "steps of all ranks");
            line(checked.depth.to_string(), "moves, each of which waits for the one before it");
            line(
                checked.busiest_bytes.to_string(),
                "bytes that the busiest rank sends, or receives if that is more",
            );
            line(checked.queue_steps_max.to_string(), "steps in the longest queue");
        }
        Outcome::Wrong(fault) => {
            let fault_text = wrap("  ", &fault.to_string(), " ", 2);
            let _ = writeln!(text, "{}: wrong\n{fault_text}", plan.title);
            text += &steps_of(&plan.schedule, fault);
        }
        Outcome::TooLarge(bytes) => return Err(misuse(too_large(*bytes))),
    }
    Ok(text)
}

/// The steps that a fault involves.
fn steps_of(schedule: &Schedule, fault: &Fault) -> String {
    let steps = involved(schedule, fault);
    let everybody = Everybody::of(schedule);
    let mut text = String::new();
    let mut shown = 0;
    let ranks: BTreeSet<usize> = steps.iter().map(|&(rank, _)| rank).collect();
    for rank in ranks {
        let part = schedule.part(rank);
        let names = everybody.names(&part);
        let own = steps.iter().filter(|&&(whose, _)| whose == rank).take(STEPS_MAX - shown);
        let pieces: Vec<_> = own.map(|&(_, number)| names.step(number, &part.steps()[number])).collect();
        shown += pieces.len();
        if !pieces.is_empty() {
            let _ = writeln!(text, "\nrank {rank}\n{}", names::lines(&pieces).trim_end());
        }
    }
    if steps.len() > shown {
        let _ = writeln!(text, "\nand {} more", steps.len() - shown);
    }
    text
}

/// The rank and number of each step that a fault involves.
fn involved(schedule: &Schedule, fault: &Fault) -> BTreeSet<(usize, usize)> {
    let of = |places: &[&FaultSite]| places.iter().filter_map(|at| Some((at.rank, at.step?))).collect();
    match fault {
        Fault::NoSignal { at } | Fault::OutOfBuffer { at, .. } => of(&[at]),
        Fault::Cycle { through } => of(&through.iter().collect::<Vec<_>>()),
        Fault::Overtaken { at, missing, by, .. } => of(&[at, missing, by]),
        Fault::Race { one, other, .. } => of(&[one, other]),
        Fault::NotMet { end, begin } => of(&[end, begin]),
        Fault::NeverMet { at, signal, .. } => {
            let mut steps: BTreeSet<_> = of(&[at]);
            steps.extend(raising(schedule, at.rank, signal));
            steps
        }
        Fault::WrongSum { rank, signal, .. } => {
            let steps = raising(schedule, *rank, signal);
            if steps.is_empty() { waiting(schedule, *rank, signal) } else { steps }
        }
        Fault::WrongBytes { place, .. } => {
            let steps = writing(schedule, place);
            // If no step writes the place, show the steps that let the rank's start end anyway.
            if steps.is_empty() { ending(schedule, place.rank as usize) } else { steps }
        }
    }
}

/// Steps that raise the signals on which a rank's start ends.
fn ending(schedule: &Schedule, rank: usize) -> BTreeSet<(usize, usize)> {
    let part = schedule.part(rank);
    let waited: BTreeSet<_> = part.finish_conditions().iter().map(|trigger| trigger.signal).collect();
    let raises = |step: &Step| {
        step.effects().any(|effect| effect.rank as usize == rank && waited.contains(&effect.signal))
    };
    select(schedule, raises)
}

/// Steps that raise the signal `name` of rank `whose`.
fn raising(schedule: &Schedule, whose: usize, name: &str) -> BTreeSet<(usize, usize)> {
    let owner = schedule.part(whose);
    let is_it = |signal: usize| owner.signal_decls().get(signal).is_some_and(|counter| counter.name == name);
    let raises = move |step: &Step| {
        step.effects().any(|effect| effect.rank as usize == whose && is_it(effect.signal.index()))
    };
    select(schedule, raises)
}

/// Steps of a rank that wait for its signal `name`.
fn waiting(schedule: &Schedule, rank: usize, name: &str) -> BTreeSet<(usize, usize)> {
    let part = schedule.part(rank);
    let is_it = |step: &Step| {
        part.signal_decls().get(step.trigger.signal.index()).is_some_and(|counter| counter.name == name)
    };
    let steps = part.steps().iter().enumerate().filter(|(_, step)| is_it(step));
    steps.map(|(number, _)| (rank, number)).collect()
}

/// Steps that write the byte at `place`.
fn writing(schedule: &Schedule, place: &Location) -> BTreeSet<(usize, usize)> {
    select(schedule, |step| match step.action {
        StepKind::Nothing => false,
        StepKind::Copy { to, bytes, .. } | StepKind::Reduce { to, bytes, .. } => {
            (to.rank, to.buffer) == (place.rank, place.buffer)
                && (to.offset..to.offset + bytes).contains(&place.offset)
        }
    })
}

fn select(schedule: &Schedule, is_it: impl Fn(&Step) -> bool) -> BTreeSet<(usize, usize)> {
    let parts = (0..schedule.ranks()).map(|rank| schedule.part(rank));
    let of_part = |part: RankPart| {
        let found = part.steps().iter().enumerate().filter(|(_, step)| is_it(step));
        found.map(|(number, _)| (part.rank(), number)).collect::<Vec<_>>()
    };
    parts.flat_map(of_part).collect()
}

/// The text about several plans.
fn table(plans: &[Plan], outcomes: &[Outcome]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_style(TableComponent::HeaderLines, '-');
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["algorithm", "steps", "depth", "busiest rank", "longest queue", ""]);
    for (plan, outcome) in plans.iter().zip(outcomes) {
        let name = collective_names::typed(plan.schedule.name());
        table.add_row(match outcome {
            Outcome::Right(checked) => vec![
                name,
                checked.steps.to_string(),
                checked.depth.to_string(),
                format!("{} B", checked.busiest_bytes),
                format!("{} steps", checked.queue_steps_max),
                "proven".into(),
            ],
            Outcome::Wrong(_) => vec![name, "".into(), "".into(), "".into(), "".into(), "wrong".into()],
            Outcome::TooLarge(_) => {
                vec![name, "".into(), "".into(), "".into(), "".into(), "too large".into()]
            }
        });
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if (1..5).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    let mut text = format!("{}: {} algorithms that fit\n\n", plans[0].asked, plans.len());
    table.lines().for_each(|line| text.extend([line.trim_end(), "\n"]));
    for (plan, outcome) in plans.iter().zip(outcomes) {
        if let Outcome::Wrong(fault) = outcome {
            let word = format!("\n{}: ", collective_names::typed(plan.schedule.name()));
            text += &wrap(&word, &fault.to_string(), " ", 2);
            text += "\n";
            text += &steps_of(&plan.schedule, fault);
        }
    }
    text
}
