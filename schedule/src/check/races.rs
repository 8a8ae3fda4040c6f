//! That whoever touches the same bytes does so in a known order, unless all of them read.

use super::dry_run::DryRun;
use super::fault::Fault;
use super::happens_before::HappensBefore;
use super::unrolled::{Event, Unrolled};
use crate::{BufferId, BufferKind, Location, StepKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// Somebody's use of some bytes.
#[derive(Clone, Debug)]
struct Access {
    bytes: Range<u64>,
    writes: bool,
    by: (usize, usize),
}

/// A buffer of a rank, in one of its turns.
pub(super) type Home = (u32, BufferId, usize);

pub(super) fn find(world: &Unrolled, run: &DryRun, order: &HappensBefore) -> Result<(), Box<Fault>> {
    let mut homes: BTreeMap<Home, Vec<Access>> = BTreeMap::new();
    for &by in &run.order {
        for (home, bytes, writes) in accesses(world, by) {
            let earlier = homes.entry(home).or_default();
            let access = Access { bytes, writes, by };
            if let Some(other) = earlier.iter().find(|other| collide(world, order, other, &access)) {
                let offset = other.bytes.start.max(access.bytes.start);
                let place = Location { rank: home.0, buffer: home.1, offset };
                let places = |by: (usize, usize)| world.place(by.1, by.0);
                return Err(Box::new(Fault::Race { one: places(other.by), other: places(by), place }));
            }
            if writes {
                // Who comes after this write comes after all that it covers.
                earlier.retain(|other| {
                    other.bytes.start < access.bytes.start || other.bytes.end > access.bytes.end
                });
            }
            earlier.push(access);
        }
    }
    Ok(())
}

/// What an event reads and writes.
fn accesses(world: &Unrolled, (start, event): (usize, usize)) -> Vec<(Home, Range<u64>, bool)> {
    let at = |place: &Location, bytes: u64, writes: bool| {
        (world.home(place, start), place.offset..place.offset + bytes, writes)
    };
    match world.event(event) {
        // The program may write anything of its own buffers before it starts.
        Event::Begin(rank) => {
            let rooms = world.parts[rank].rooms().iter().enumerate();
            let own = rooms.filter(|(_, room)| room.used == BufferKind::User && room.bytes > 0);
            own.map(|(buffer, room)| at(&BufferId(buffer as u32).on(rank, 0), room.bytes, true)).collect()
        }
        Event::End(rank) => {
            let gets = world.contracts[rank].gets.iter().filter(|(span, _)| span.bytes > 0);
            gets.map(|(span, _)| at(&span.buffer.on(rank, span.offset), span.bytes, false)).collect()
        }
        Event::Step(rank, step) => match world.parts[rank].steps()[step].action {
            StepKind::Nothing => Vec::new(),
            StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. } => {
                vec![at(&from, bytes, false), at(&to, bytes, true)]
            }
        },
    }
}

fn collide(world: &Unrolled, order: &HappensBefore, one: &Access, other: &Access) -> bool {
    let overlap = one.bytes.start < other.bytes.end && other.bytes.start < one.bytes.end;
    if !overlap || !(one.writes || other.writes) || one.by == other.by {
        return false;
    }
    let is_before = |one: (usize, usize), other: (usize, usize)| match world.event(one.1) {
        Event::Step(..) => order.is_before(one, other),
        Event::Begin(_) | Event::End(_) => order.has_begun(one, other),
    };
    !is_before(one.by, other.by) && !is_before(other.by, one.by)
}
