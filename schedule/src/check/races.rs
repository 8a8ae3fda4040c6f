//! Checks that accesses to the same bytes have a known order unless all of them read, in any two starts.
//!
//! The knowledge of one event about another is a lag ([`super::happens_before_table`]): for accesses in starts k and j,
//! only k - j matters. So two accesses have no order for an interval of differences. Of these, only the differences
//! count at which both accesses use the same copy of the buffer.

use super::dry_run::DryRun;
use super::fault::Fault;
use super::happens_before::HappensBefore;
use super::unrolled::{Event, Unrolled};
use crate::{BufferId, BufferKind, Location, StepKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// An access to some bytes.
#[derive(Clone, Debug)]
struct Access {
    bytes: Range<u64>,
    writes: bool,
    by: usize,
    /// The rank that the location names.
    rank: u32,
}

/// Two accesses to the same bytes without an order.
#[derive(Clone, Copy, Debug)]
struct Race<'a> {
    one: &'a Access,
    other: &'a Access,
    /// The start of one access minus the start of the other.
    apart: i64,
}

/// A difference of starts that never occurs.
const FAR: i64 = i64::MAX / 4;

pub(super) fn find(world: &Unrolled, run: &DryRun, order: &HappensBefore) -> Result<(), Box<Fault>> {
    let mut buffers: BTreeMap<(u32, BufferId), Vec<Access>> = BTreeMap::new();
    for &event in &run.order {
        for (place, bytes, writes) in accesses(world, event).into_iter().filter(|&(_, bytes, _)| bytes > 0) {
            let owner = match world.kind(&place) {
                BufferKind::Swapped([lower, _]) => lower,
                _ => place.rank,
            };
            let access =
                Access { bytes: place.offset..place.offset + bytes, writes, by: event, rank: place.rank };
            buffers.entry((owner, place.buffer)).or_default().push(access);
        }
    }
    let mut nearest: Option<(Race<'_>, BufferId)> = None;
    for (&(owner, buffer), accesses) in &mut buffers {
        accesses.sort_by_key(|access| access.bytes.start); // stable: otherwise in the order of events
        let kind = world.kind(&buffer.on(owner as usize, 0));
        for race in races(order, world, kind, accesses) {
            if nearest.is_none_or(|(found, _)| race.rank(world) < found.rank(world)) {
                nearest = Some((race, buffer));
            }
        }
    }
    match nearest {
        None => Ok(()),
        Some((race, buffer)) => Err(Box::new(race.fault(world, buffer))),
    }
}

/// The accesses of an event: range of bytes, and true for a write.
fn accesses(world: &Unrolled, event: usize) -> Vec<(Location, u64, bool)> {
    match world.event(event) {
        // The program may write to any of its own buffers before it starts.
        Event::Begin(rank) => {
            let decls = world.parts[rank].buffers();
            let own = decls.filter(|(_, decl)| decl.kind == BufferKind::User);
            own.map(|(buffer, decl)| (buffer.on(rank, 0), decl.bytes, true)).collect()
        }
        Event::End(rank) => {
            let outputs = world.contracts[rank].outputs.iter();
            outputs.map(|(span, _)| (span.buffer.on(rank, span.offset), span.bytes, false)).collect()
        }
        Event::Step(rank, step) => match world.parts[rank].steps()[step].action {
            StepKind::Nothing => Vec::new(),
            StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. } => {
                vec![(from, bytes, false), (to, bytes, true)]
            }
        },
    }
}

/// The races of each access with one that begins no earlier in the buffer.
fn races<'a>(
    order: &'a HappensBefore,
    world: &'a Unrolled,
    kind: BufferKind,
    accesses: &'a [Access],
) -> impl Iterator<Item = Race<'a>> {
    accesses.iter().enumerate().flat_map(move |(number, one)| {
        let overlapping = accesses[number..].iter().take_while(|other| other.bytes.start < one.bytes.end);
        overlapping.filter_map(move |other| {
            let apart = in_no_order(order, world, kind, one, other)?;
            Some(Race { one, other, apart })
        })
    })
}

/// The smallest difference of starts in which two accesses to the same bytes have no order.
fn in_no_order(
    order: &HappensBefore,
    world: &Unrolled,
    kind: BufferKind,
    one: &Access,
    other: &Access,
) -> Option<i64> {
    if !(one.writes || other.writes) {
        return None;
    }
    // One access is over when the other begins, if its start is that much earlier; and the reverse.
    let lag = |one: &Access, other: &Access| {
        let lag = match world.event(one.by) {
            Event::Step(..) => order.is_over(one.by, other.by),
            Event::Begin(_) | Event::End(_) => order.has_begun(one.by, other.by),
        };
        lag.map_or(FAR, i64::from)
    };
    let apart = 1 - lag(one, other)..=lag(other, one) - 1;
    let distance = if kind.is_swapped() && one.rank != other.rank { 1 } else { 0 };
    let is_one_event = one.by == other.by;
    // A step may name one location as source and destination.
    let is_one_place = one.bytes == other.bytes && one.rank == other.rank;
    nearest(apart, distance, kind.period() as i64, is_one_event && is_one_place)
}

/// The number nearest to zero in a range that exceeds a multiple of `period` by `rest`, and perhaps must not be zero.
fn nearest(range: std::ops::RangeInclusive<i64>, rest: i64, period: i64, but_zero: bool) -> Option<i64> {
    let (low, high) = (*range.start(), *range.end());
    let up = |from: i64| from + (rest - from).rem_euclid(period);
    let down = |from: i64| from - (from - rest).rem_euclid(period);
    let least = if but_zero { 1 } else { 0 };
    let candidates = [up(low.max(least)), down(high.min(-least))];
    candidates.into_iter().filter(|at| range.contains(at)).min_by_key(|at| at.abs())
}

impl Race<'_> {
    /// The race to report, if there are several: one of two steps before one with a program, one in the same start
    /// before one in different starts.
    fn rank(&self, world: &Unrolled) -> (bool, i64) {
        let is_step = |access: &Access| world.step(access.by).is_some();
        (!(is_step(self.one) && is_step(self.other)), self.apart.abs())
    }

    fn fault(&self, world: &Unrolled, buffer: BufferId) -> Fault {
        let Race { one, other, apart } = *self;
        let (one_start, other_start) = (apart.max(0), (-apart).max(0));
        let offset = one.bytes.start.max(other.bytes.start);
        let named = buffer.on(one.rank as usize, offset);
        let place = Location { rank: world.kind(&named).home(one.rank, one_start as u64).0, ..named };
        let one = world.place(one.by, one_start as usize);
        let other = world.place(other.by, other_start as usize);
        // The event that comes first in the schedule's order is named first.
        let (one, other) = if one.start <= other.start { (one, other) } else { (other, one) };
        Fault::Race { one, other, place }
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_number_matches_a_full_search() {
        for (low, high) in (-9..9).flat_map(|low| (low - 2..9).map(move |high| (low, high))) {
            for (period, but_zero) in (1..6).flat_map(|period| [(period, false), (period, true)]) {
                for rest in 0..period.min(2) {
                    let all = (low..=high).filter(|at: &i64| (at - rest).rem_euclid(period) == 0);
                    let best = all.filter(|&at| !but_zero || at != 0).map(i64::abs).min();
                    let found = nearest(low..=high, rest, period, but_zero);
                    assert_eq!(found.map(i64::abs), best, "{low}..={high}, {rest} of {period}, {but_zero}");
                }
            }
        }
    }
}
