//! Prints a plan: the steps of each rank, what they wait for and what they raise.

use super::arguments::Ask;
use super::names::{self, Everybody, Names};
use crate::arguments::collective_names;
use std::fmt::Write;
use tasuki_command::{misuse, print};
use tasuki_schedule::{BufferKind, Contract, RankPart, Schedule};

/// Number of spans of a contract that are shown.
const SPANS_MAX: usize = 4;
/// Number of signals and buffers that are shown.
const NAMES_MAX: usize = 40;
/// Longest line, in letters.
const WIDTH: usize = 100;
/// Width of the first column, in letters.
const NAME: usize = 11;

pub(super) fn command(ask: &Ask, rank: Option<usize>, is_engine: bool) -> anyhow::Result<()> {
    let plan = ask.plan_of_job(is_engine)?;
    let ranks = plan.schedule.ranks();
    if let Some(rank) = rank.filter(|&rank| rank >= ranks) {
        return Err(misuse(format!(
            "--rank {rank}: the last of {} is {}",
            collective_names::ranks(ranks),
            ranks - 1
        )));
    }
    let remark = plan.remark.map_or_else(String::new, |remark| wrap("  (", &remark, ", ", 3) + ")\n");
    print(&format!("{}\n{remark}", plan.title))?;
    let shown = rank.map_or(0..ranks, |rank| rank..rank + 1);
    let everybody = Everybody::of(&plan.schedule);
    for rank in shown {
        print(&format!("\n{}", part(&plan.schedule, &everybody, rank)))?;
    }
    Ok(())
}

/// The part of one rank as text.
fn part(schedule: &Schedule, everybody: &Everybody<'_>, rank: usize) -> String {
    let part = schedule.part(rank);
    let names = everybody.names(&part);
    let mut text = format!("rank {rank}\n");
    let mut line = |name: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            let entries = few(entries, NAMES_MAX).join(", ");
            let _ = writeln!(text, "{}", wrap(&format!("  {name:<9}"), &entries, ", ", NAME));
        }
    };
    line("buffers", buffers(&part, &names));
    line("signals", signals(&part, &names));
    let (gives, gets) = contract(&schedule.contract(rank), &names);
    line("gives", gives);
    line("gets", gets);
    let mut queues: Vec<u16> = part.steps().iter().map(|step| step.queue.0).collect();
    queues.sort_unstable();
    queues.dedup();
    for queue in queues {
        let _ = writeln!(text, "  queue {queue}");
        let steps = part.steps().iter().enumerate().filter(|(_, step)| step.queue.0 == queue);
        let pieces: Vec<_> = steps.map(|(number, step)| names.step(number, step)).collect();
        text += &names::lines(&pieces);
    }
    let ends: Vec<String> = part.finish_conditions().iter().map(|trigger| names.trigger(trigger)).collect();
    let ends = if ends.is_empty() { "at once".into() } else { format!("when {}", ends.join(" and ")) };
    let _ = writeln!(text, "{}", wrap("  is over  ", &ends, " and ", NAME));
    text
}

fn buffers(part: &RankPart, names: &Names<'_>) -> Vec<String> {
    let buffers = part.buffer_decls().iter().enumerate();
    let one = |(number, buffer): (usize, &tasuki_schedule::BufferDecl)| {
        let name =
            tasuki_schedule::BufferId::numbered(number).map_or_else(String::new, |it| names.buffer(it));
        match buffer.kind {
            BufferKind::User => format!("{name} {} B", buffer.bytes),
            BufferKind::Turns(turns) => format!("{name} {turns} x {} B of its own", buffer.bytes),
            BufferKind::Swapped(both) => {
                let with = BufferKind::partner(both, part.rank() as u32);
                format!("{name} {} B of its own, swapped with rank {with} at each start", buffer.bytes)
            }
        }
    };
    buffers.map(one).collect()
}

/// The signals, with the amount that each grows in a start.
fn signals(part: &RankPart, names: &Names<'_>) -> Vec<String> {
    let counters = part.signal_decls().iter().enumerate().skip(1);
    let one = |(number, counter): (usize, &tasuki_schedule::SignalDecl)| {
        let signal = tasuki_schedule::SignalId::numbered(number);
        format!("{} {}", signal.map_or_else(String::new, |it| names.signal(it)), counter.per_start)
    };
    counters.map(one).collect()
}

fn contract(contract: &Contract, names: &Names<'_>) -> (Vec<String>, Vec<String>) {
    let gives = contract.inputs.iter().map(|span| names.span(span)).collect();
    let gets = contract.outputs.iter().map(|(span, origin)| {
        let end = origin.offset + span.bytes;
        let whose: Vec<String> = origin.ranks.iter().map(ToString::to_string).collect();
        let (count, whose) = (whose.len(), few(whose, SPANS_MAX).join(" + "));
        let rank = if count == 1 { "rank" } else { "ranks" };
        format!(
            "{} = {}[{}..{end}] of {rank} {whose}",
            names.span(span),
            names.buffer(origin.buffer),
            origin.offset
        )
    });
    (gives, few(gets.collect(), SPANS_MAX))
}

/// The first `max` entries, and the number of the others.
fn few(mut all: Vec<String>, max: usize) -> Vec<String> {
    let more = all.len().saturating_sub(max);
    if more > 0 {
        all.truncate(max);
        all.push(format!("{more} more"));
    }
    all
}

/// A word and a text. Long texts are broken between entries, and the later lines are indented.
pub(super) fn wrap(word: &str, text: &str, between: &str, indent: usize) -> String {
    let mut wrapped = word.to_string();
    let mut used = word.chars().count();
    for (number, entry) in text.split(between).enumerate() {
        let length = entry.chars().count();
        if number > 0 {
            wrapped += between.trim_end();
            used += between.chars().count();
            if used + length >= WIDTH {
                wrapped += &format!("\n{:indent$}", "");
                used = indent;
            } else {
                wrapped.push(' ');
            }
        }
        wrapped += entry;
        used += length;
    }
    wrapped
}
