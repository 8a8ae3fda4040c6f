//! What is known to have happened when an event happens, in whatever order the others come.
//!
//! A trigger tells no more than a sum. An addition *is implied* by it if all the others that may have come by then make
//! less than what it waits for. Of those, the ones do not count that are known to come after the addition, or after the
//! event itself; so what is known about one event helps with others, and this is done until nothing new is found.
//!
//! The starts that are laid out are followed by more. What is found about the second start, of which the last one that
//! is laid out is known to be too late to matter, holds for any; it must be no less than what is found about later
//! ones, where the starts behind were left out. Then, if ever something found were not so in a real execution, the
//! first time it was not would contradict how it was found.

use super::bit_matrix::BitMatrix;
use super::dry_run::DryRun;
use super::fault::Fault;
use super::unrolled::{Addition, Event, Unrolled};
use crate::{EFFECTS_MAX, StepTrigger};

/// What each event knows.
#[derive(Debug)]
pub(super) struct HappensBefore {
    known: BitMatrix,
    reach: Vec<Reach>,
    events: usize,
    /// The longest chain of moves of a start, each of which waits for the one before it.
    pub(super) depth: usize,
}

/// Facts about an event: that it has begun, that each of its effects has come, and that it has ended.
const FACTS: usize = 1 + EFFECTS_MAX + 1;
const ENDED: usize = FACTS - 1;

/// How far into a stream an event's trigger reaches: one more than the place of the last addition that is implied,
/// counted through all starts.
type Reach = std::collections::BTreeMap<(usize, usize), usize>;

struct Search<'w> {
    world: &'w Unrolled,
    known: BitMatrix,
    /// By event (through all starts), for each of its triggers and each stream.
    reach: Vec<Reach>,
}

/// Bytes that are taken to find out about so many starts of so many events.
pub(super) fn bytes(starts: u64, events: u64) -> u64 {
    let nodes = starts.saturating_mul(events);
    nodes.saturating_mul(nodes).saturating_mul(FACTS as u64) / 8
}

pub(super) fn find(world: &Unrolled, run: &DryRun) -> Result<HappensBefore, Box<Fault>> {
    let nodes = world.starts * world.events();
    let known = BitMatrix::new(nodes, nodes * FACTS);
    let mut search = Search { world, known, reach: vec![Reach::new(); nodes] };
    while search.look_at_all(run) {}
    search.compare_starts()?;
    let depth = search.depth(run);
    Ok(HappensBefore { known: search.known, reach: search.reach, events: world.events(), depth })
}

impl HappensBefore {
    /// Whether the bytes of one event are there when the other begins, for sure.
    pub(super) fn is_before(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        let (one, other) = (one.0 * self.events + one.1, other.0 * self.events + other.1);
        (1..FACTS).any(|fact| self.known.has(other, one * FACTS + fact))
    }

    /// The effects of its own start that an event waits for by its triggers, without those for which what is before it
    /// in its queue has waited: event and effect. And whether they are all that its triggers wait for.
    pub(super) fn causes(&self, world: &Unrolled, event: usize) -> (Vec<(usize, usize)>, bool) {
        let node = self.events + event;
        let before = world.before(event).filter(|&(_, in_last_start)| !in_last_start);
        let fact = |source: usize, slot: usize| (self.events + source) * FACTS + 1 + slot;
        let mut causes = Vec::new();
        for (&(_, stream), &reach) in &self.reach[node] {
            let stream = &world.streams[stream];
            let of_start = reach.min(2 * stream.len()).saturating_sub(stream.len());
            causes.extend(stream[..of_start].iter().filter(|&&(source, slot)| {
                before.is_none_or(|(before, _)| !self.known.has(self.events + before, fact(source, slot)))
            }));
        }
        if before.is_none()
            && let Event::Step(rank, _) = world.event(event)
        {
            causes.push((world.number(Event::Begin(rank)), 0)); // no step begins before its rank has started
        }
        causes.sort_unstable();
        causes.dedup();
        let (rank, triggers) = world.triggers(event);
        let is_whole = triggers.iter().filter(|trigger| trigger.lag == 0).all(|trigger| {
            let additions = world.additions(rank, trigger.signal).iter();
            let known = additions.filter(|one| self.known.has(node, fact(one.event, one.slot)));
            known.map(|one| one.amount).sum::<u64>() >= trigger.count
        });
        (causes, is_whole)
    }

    /// Ranks that are to meet do.
    pub(super) fn meets(&self, world: &Unrolled) -> Result<(), Box<Fault>> {
        for rank in (0..world.ranks()).filter(|&rank| world.contracts[rank].meets) {
            let end = world.number(Event::End(rank));
            for begin in (0..world.ranks()).map(|other| world.number(Event::Begin(other))) {
                if !self.has_begun((1, begin), (1, end)) {
                    return Err(Box::new(Fault::NotMet {
                        end: world.place(end, 1),
                        begin: world.place(begin, 1),
                    }));
                }
            }
        }
        Ok(())
    }

    /// Whether one event has begun when the other does, for sure.
    pub(super) fn has_begun(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        let (one, other) = (one.0 * self.events + one.1, other.0 * self.events + other.1);
        self.known.has(other, one * FACTS)
    }
}

impl Search<'_> {
    fn node(&self, start: usize, event: usize) -> usize {
        start * self.world.events() + event
    }

    /// Looks at every event, in an order in which they can happen. Whether anything new was found.
    fn look_at_all(&mut self, run: &DryRun) -> bool {
        let mut news = false;
        for &(start, event) in &run.order {
            news |= self.look_at(start, event);
        }
        news
    }

    fn look_at(&mut self, start: usize, event: usize) -> bool {
        let node = self.node(start, event);
        let mut news = self.known.add(node, node * FACTS);
        if let Some(before) = self.before(start, event) {
            news |= self.known.add_all(node, before);
        }
        // Reductions of a queue come one after the other.
        if let Some((before, in_last_start)) = self.world.reduction_before(event)
            && let Some(start) = start.checked_sub(in_last_start.into())
        {
            let before = self.node(start, before);
            news |= self.known.add_all(node, before) | self.known.add(node, before * FACTS + ENDED);
        }
        let (rank, triggers) = self.world.triggers(event);
        if self.world.step(event).is_some() {
            let begin = self.node(start, self.world.number(Event::Begin(rank)));
            news |= self.known.add_all(node, begin) | self.known.add(node, begin * FACTS + 1);
        }
        for (number, trigger) in triggers.iter().enumerate() {
            if let Some(wanted) = self.world.threshold(rank, trigger, start) {
                news |= self.look_at_trigger((start, event), (number, trigger), rank, wanted);
            }
        }
        news
    }

    /// What came before this in its line.
    fn before(&self, start: usize, event: usize) -> Option<usize> {
        let (before, in_last_start) = match self.world.event(event) {
            Event::Begin(rank) => (self.world.number(Event::End(rank)), true),
            Event::End(rank) => (self.world.number(Event::Begin(rank)), false),
            _ => self.world.before(event)?,
        };
        if in_last_start {
            Some(self.node(start.checked_sub(1)?, before))
        } else {
            Some(self.node(start, before))
        }
    }

    fn look_at_trigger(
        &mut self,
        (start, event): (usize, usize),
        (number, trigger): (usize, &StepTrigger),
        rank: usize,
        wanted: u64,
    ) -> bool {
        let node = self.node(start, event);
        let additions = self.world.additions(rank, trigger.signal).to_vec();
        let mut streams: Vec<usize> = additions.iter().map(|addition| addition.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        let mut news = false;
        for stream in streams {
            let len = self.world.streams[stream].len();
            let before = self.reach[node].get(&(number, stream)).copied().unwrap_or(0);
            let end = len * self.world.starts;
            let reach = implied_until(before, end, |place| {
                self.is_implied((start, event), &additions, (stream, place), wanted)
            });
            if reach > before {
                self.reach[node].insert((number, stream), reach);
            }
            for place in (0..reach).rev() {
                let (event, slot) = self.world.streams[stream][place % len];
                let source = self.node(place / len, event);
                if !self.known.add(node, source * FACTS + 1 + slot) {
                    break; // what came before it in the stream is known, too
                }
                news = true;
            }
            if reach > 0 {
                let (event, _) = self.world.streams[stream][(reach - 1) % len];
                let source = self.node((reach - 1) / len, event);
                news |= self.known.add_all(node, source);
            }
        }
        news
    }

    /// Whether the trigger cannot be met without that addition.
    fn is_implied(
        &self,
        (start, event): (usize, usize),
        additions: &[Addition],
        (stream, place): (usize, usize),
        wanted: u64,
    ) -> bool {
        let (world, node) = (self.world, self.node(start, event));
        let len = world.streams[stream].len();
        let (source, slot) = world.streams[stream][place % len];
        let source = self.node(place / len, source) * FACTS + 1 + slot;
        // The last start stands for all that follow it: if that can come in between, then so can they.
        let is_far = start + 1 + (world.starts - 3) < world.starts - 1;
        let mut others = 0;
        for then in 0..world.starts {
            for addition in additions {
                let other = self.node(then, addition.event);
                let is_later = addition.stream == stream && then * len + addition.place >= place;
                let comes_after = is_later
                    || other == node
                    || self.known.has(other, source)
                    || self.known.has(other, node * FACTS);
                if comes_after {
                    continue;
                }
                if is_far && then == world.starts - 1 {
                    return false;
                }
                others += addition.amount;
                if others >= wanted {
                    return false;
                }
            }
        }
        others < wanted
    }

    /// What the second start's events know from their triggers is no less than what those of later ones do.
    fn compare_starts(&self) -> Result<(), Box<Fault>> {
        let world = self.world;
        for event in 0..world.events() {
            let found = &self.reach[self.node(1, event)];
            for start in 2..world.starts {
                for (&(number, stream), &reach) in &self.reach[self.node(start, event)] {
                    let len = world.streams[stream].len();
                    let here = found.get(&(number, stream)).copied().unwrap_or(0);
                    let there = reach.saturating_sub((start - 1) * len);
                    if here < there {
                        return Err(Box::new(self.overtaken(event, number, (stream, here))));
                    }
                }
            }
        }
        Ok(())
    }

    /// Some addition lets the event go on in place of the one that it is to wait for.
    fn overtaken(&self, event: usize, number: usize, (stream, place): (usize, usize)) -> Fault {
        let world = self.world;
        let (rank, triggers) = world.triggers(event);
        let signal = triggers[number].signal;
        let len = world.streams[stream].len();
        let missing = world.streams[stream][place % len].0;
        let additions = world.additions(rank, signal);
        let node = self.node(1, event);
        let may_come = |&&(then, addition): &&(usize, &Addition)| {
            let other = self.node(then, addition.event);
            let is_later = addition.stream == stream && then * len + addition.place >= place;
            !is_later && !self.known.has(other, node * FACTS)
        };
        let all: Vec<(usize, &Addition)> = (0..world.starts)
            .flat_map(|then| additions.iter().map(move |addition| (then, addition)))
            .collect();
        let by =
            all.iter().rev().find(may_come).map_or((1, event), |&(then, addition)| (then, addition.event));
        Fault::Overtaken {
            at: world.place(event, 1),
            signal: world.parts[rank].counters()[signal.index()].name.clone(),
            missing: world.place(missing, place / len),
            by: world.place(by.1, by.0),
        }
    }

    /// The longest chain of steps that move something, each waiting for the one before it, in the second start. What a
    /// step's queue has waited for before it has waited for, too.
    fn depth(&self, run: &DryRun) -> usize {
        let world = self.world;
        let (mut waited, mut depths) = (vec![0; world.events()], vec![0; world.events()]);
        for &(start, event) in run.order.iter().filter(|&&(start, _)| start == 1) {
            let before = world.before(event).filter(|&(_, in_last_start)| !in_last_start);
            let mut depth = before.map_or(0, |(before, _)| waited[before]);
            for (&(_, stream), &reach) in &self.reach[self.node(start, event)] {
                let stream = &world.streams[stream];
                let of_start = reach.min(2 * stream.len()).saturating_sub(stream.len());
                depth = stream[..of_start].iter().map(|&(source, _)| depths[source]).fold(depth, usize::max);
            }
            let moves = world.step(event).is_some_and(|step| step.action != crate::StepKind::Nothing);
            waited[event] = depth;
            depths[event] = depth + usize::from(moves);
        }
        depths.into_iter().max().unwrap_or(0)
    }
}

/// The first place from `from` on, up to `end`, that is not implied. Whatever comes after an addition comes after those
/// before it in its stream, too, so none behind that place is: it is looked for in strides that double, then halve.
fn implied_until(from: usize, end: usize, is_implied: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut stride) = (from, 1);
    while low + stride <= end && is_implied(low + stride - 1) {
        low += stride;
        stride *= 2;
    }
    let mut high = end.min(low + stride - 1); // all below `low` are implied, and from `high` on none is
    while low < high {
        let middle = low.midpoint(high);
        if is_implied(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::implied_until;

    #[test]
    fn the_first_place_that_is_not_implied_is_found_from_wherever_one_looks() {
        for end in 0..40 {
            for (from, first) in (0..=end).flat_map(|first| (0..=first).map(move |from| (from, first))) {
                let asked = |place: usize| {
                    assert!((from..end).contains(&place), "place {place} of {from}..{end}");
                    place < first
                };
                assert_eq!(implied_until(from, end, asked), first, "from {from} of {end}");
            }
        }
    }
}
