//! Writes a trace in the Trace Event Format, which Perfetto and chrome://tracing show. Each rank is
//! a process, times are microseconds from the first event, and arrows are flows.
//!
//! The process number is the rank plus one, and threads count from 1. Some viewers take the number
//! 0 for "no process", or show all threads 0 in one row. The names contain the rank itself.

use super::lanes::{Kind, MEMORY, Mark, Sheet, Span, UNDER_WAY};
use super::rank_files::Found;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Writes the trace, one event a line, ordered by time.
pub(super) fn write(out: &mut impl Write, found: &Found, sheet: &Sheet) -> io::Result<()> {
    let begins = sheet.spans.iter().map(|span| span.begin);
    let start = begins.chain(sheet.marks.iter().map(|mark| mark.at)).min().unwrap_or(0);
    let mut timed: Vec<(u64, u8, u64, Value)> = Vec::new();
    for span in &sheet.spans {
        // Of two spans that begin together, the longer comes first: it encloses the other.
        timed.push((span.begin, 0, u64::MAX - span.end, complete(span, start)));
    }
    for (number, arrow) in sheet.arrows.iter().enumerate() {
        let (from, to) = (&sheet.spans[arrow.from], &sheet.spans[arrow.to]);
        let (leaves, reached) = (from.leaves(arrow), to.reached());
        // The clocks of two processors may differ by a few nanoseconds.
        let leaves = leaves.min(reached).max(from.begin);
        let id = number as u64 + 1;
        timed.push((leaves, 1, id, flow("s", from, leaves - start, arrow.kind, id)));
        timed.push((reached, 2, id, flow("f", to, reached - start, arrow.kind, id)));
    }
    for mark in &sheet.marks {
        timed.push((mark.at, 3, 0, marked(mark, start)));
    }
    timed.sort_by_key(|(time, order, tie, _)| (*time, *order, *tie));
    let mut events = metadata(found, sheet);
    events.extend(timed.into_iter().map(|(.., event)| event));
    events.extend(losses(found, sheet, start));
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[",
        other_data(found, start)
    )?;
    for (number, event) in events.iter().enumerate() {
        let comma = if number + 1 < events.len() { "," } else { "" };
        writeln!(out, "{event}{comma}")?;
    }
    writeln!(out, "]}}")
}

/// Converts nanoseconds to microseconds and keeps the fraction.
fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// The process number of a rank.
fn pid(rank: u32) -> u64 {
    u64::from(rank) + 1
}

/// The thread number of a lane.
fn tid(lane: u32) -> u64 {
    u64::from(lane) + 1
}

fn complete(span: &Span, start: u64) -> Value {
    let mut facts: Map<String, Value> =
        span.facts.iter().map(|(name, fact)| ((*name).to_string(), fact.clone())).collect();
    if span.failed {
        facts.insert("failed".into(), true.into());
    }
    json!({
        "ph": "X", "pid": pid(span.rank), "tid": tid(span.lane), "ts": us(span.begin - start), "dur": us(span.end - span.begin),
        "name": span.name, "cat": span.kind.word(), "args": facts,
    })
}

/// One end of an arrow. `bp` binds it to the span that encloses it, not to the next span.
fn flow(phase: &str, span: &Span, ns: u64, kind: &str, id: u64) -> Value {
    json!({
        "ph": phase, "pid": pid(span.rank), "tid": tid(span.lane), "ts": us(ns), "name": kind, "cat": "arrow", "id": id,
        "bp": "e",
    })
}

fn marked(mark: &Mark, start: u64) -> Value {
    json!({
        "ph": "i", "s": "t", "pid": pid(mark.rank), "tid": tid(mark.lane), "ts": us(mark.at - start),
        "name": mark.name, "cat": "mark",
    })
}

fn metadata(found: &Found, sheet: &Sheet) -> Vec<Value> {
    let mut events = Vec::new();
    let mut say = |rank: u32, lane: u32, name: &str, key: &str, value: Value| {
        events.push(
            json!({ "ph": "M", "pid": pid(rank), "tid": tid(lane), "name": name, "args": { key: value } }),
        );
    };
    let mut lanes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for span in &sheet.spans {
        lanes.entry(span.rank).or_default().insert(span.lane);
    }
    let threads: BTreeMap<u32, &[String]> =
        found.parts.iter().map(|part| (part.rank.to_word(), &part.threads[..])).collect();
    // A rank that left no part may still have spans: other ranks accessed its memory.
    for rank in threads.keys().chain(lanes.keys()).copied().collect::<BTreeSet<u32>>() {
        say(rank, 0, "process_name", "name", format!("rank {rank}").into());
        say(rank, 0, "process_sort_index", "sort_index", rank.into());
        for (lane, name) in threads.get(&rank).into_iter().copied().flatten().enumerate() {
            say(rank, lane as u32, "thread_name", "name", name.as_str().into());
        }
        for &lane in lanes.get(&rank).into_iter().flatten().filter(|lane| **lane >= UNDER_WAY) {
            let name = match lane {
                MEMORY.. => format!("memory {}", lane - MEMORY + 1),
                _ => format!("under way {}", lane - UNDER_WAY + 1),
            };
            say(rank, lane, "thread_name", "name", name.into());
            say(rank, lane, "thread_sort_index", "sort_index", lane.into());
        }
    }
    events
}

/// Marks the beginning of a rank's record where earlier events were lost.
fn losses(found: &Found, sheet: &Sheet, start: u64) -> Vec<Value> {
    let full = found.parts.iter().filter(|part| part.lost > 0);
    let mark = |part: &tasuki_core::engine::trace::RankTrace| {
        let rank = part.rank.to_word();
        let own = |span: &&Span| span.rank == rank && span.lane < MEMORY;
        let first = sheet.spans.iter().filter(own).map(|span| span.begin).min().unwrap_or(start);
        json!({
            "ph": "i", "s": "p", "pid": pid(rank), "tid": tid(0), "ts": us(first - start), "name": "events lost",
            "cat": "lost", "args": { "before": part.lost },
        })
    };
    full.map(mark).collect()
}

fn other_data(found: &Found, start: u64) -> Value {
    let is_virtual = found.parts.iter().any(|part| part.is_virtual);
    let clock = if is_virtual { "virtual time" } else { "CLOCK_MONOTONIC, which the ranks of a node share" };
    let lost: Map<String, Value> =
        found.parts.iter().map(|part| (part.rank.to_string(), part.lost.into())).collect();
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
    json!({
        "by": format!("tasuki {}", env!("CARGO_PKG_VERSION")), "clock": clock, "start_ns": start, "lost": lost,
        "missing": found.missing, "kinds": kinds,
    })
}
