//! Derives what must have happened before each event, in every possible order.
//!
//! A trigger gives only a sum. It *implies* an addition if all other additions that may have arrived by then make less
//! than the trigger needs. Additions known to come after the addition in question, or after the event itself, do not
//! count. So a fact about one event helps to find others, and the rules are applied until nothing new is found.
//!
//! Starts are not unrolled: their number is unlimited. A fact says of an event in start k that another has happened in
//! start k - lag, for every k of at least lag ([`super::happens_before_table`]).
//!
//! The rules:
//!
//! 1. An event has begun when it begins. All facts known when the previous step in its queue began, or its rank's
//!    start, or (for a start) the end of the start before, hold.
//!
//! 2. A reduction begins when the previous one in its queue has ended.
//!
//! 3. If an effect has arrived, so have those before it in its stream, and the facts known when its step began hold.
//!
//! 4. *Triggers.* Suppose event e of start k waits until a signal has counted w, and addition a of start k - lag has
//!    not arrived by then. Then additions known to come after a, or after the beginning of e, have not arrived; nor has
//!    what is behind a in its stream. So the number of starts in which addition m has arrived is at most k + x, or 0 if
//!    that is less, where x follows from lags alone. If all of them together make less than w, this is a contradiction,
//!    and a has arrived. If some m has no known bound, nothing follows: it may be any number of starts ahead.
//!
//! Two ranks often keep each other from getting ahead, and neither fact can be found before the other. So rule 4 is
//! first applied as if there were no additions of starts after k. When nothing new is found, each of its results is
//! verified with all starts and all facts. If one does not follow then, later starts may overtake an earlier one, which
//! is a fault.
//!
//! *Why the facts hold in every run of any number of starts.* Suppose that one does not, and take the first event of
//! the run, in the order of time, with a false fact. Rules 1 - 3 derived it from facts about earlier events, which are
//! true. Rule 4 derived it from facts about additions that arrived earlier, of whichever starts, which are true; so the
//! fact is true, too.
//!
//! In rule 4, w grows with each start by the total of the signal in a start, and the sum grows by no more, since all
//! amounts together make up that total. So the least k for which there is a start k - lag is the worst case, and the
//! only one that is examined: k = lag. No lag is negative: starts can run one after the other ([`super::dry_run`]), so
//! nothing waits for a later start. For the same reason, a trigger that looks back n starts implies nothing about later
//! ones. (It may, if it waits for more than a signal counts in n starts; then less is found than could be.)

use super::dry_run::DryRun;
use super::fault::Fault;
use super::happens_before_table::{self, HappensBeforeTable};
use super::unrolled::{Addition, Event, Unrolled};
use crate::{EFFECTS_MAX, StepTrigger};

/// The facts that hold before each event.
#[derive(Debug)]
pub(super) struct HappensBefore {
    facts: HappensBeforeTable,
    reach: Vec<Reach>,
    /// The longest chain of moves of a start, each of which waits for the one before it.
    pub(super) depth: usize,
}

/// The facts about an event: it has begun, each of its effects has arrived, and it has ended.
const FACTS: usize = 1 + EFFECTS_MAX + 1;
const ENDED: usize = FACTS - 1;

/// How far a trigger reaches into a stream: one more than the position of the last addition implied. Positions count
/// from the beginning of the event's own start; those of earlier starts are negative.
type Reach = std::collections::BTreeMap<(usize, usize), i64>;

struct Search<'w> {
    world: &'w Unrolled,
    facts: HappensBeforeTable,
    /// For each event, for each of its triggers and each stream; `None` if nothing is implied.
    reach: Vec<Reach>,
    /// The pass in which an event was examined last, and the pass in which it gained a fact.
    looks: usize,
    looked: Vec<usize>,
    changed: Vec<usize>,
}

/// A trigger of an event, with the additions to its signal.
#[derive(Clone, Copy)]
struct Waits<'w> {
    event: usize,
    trigger: StepTrigger,
    per_start: u64,
    additions: &'w [Addition],
    /// True if additions of later starts are ignored.
    is_last_start: bool,
}

/// Memory in bytes that the analysis of `events` events takes.
pub(super) fn bytes(events: u64) -> u64 {
    events.saturating_mul(events).saturating_mul(FACTS as u64)
}

pub(super) fn find(world: &Unrolled, run: &DryRun) -> Result<HappensBefore, Box<Fault>> {
    let events = world.events();
    let facts = HappensBeforeTable::new(events, events * FACTS);
    let (reach, [looked, changed]) = (vec![Reach::new(); events], [(); 2].map(|()| vec![0; events]));
    let mut search = Search { world, facts, reach, looks: 0, looked, changed };
    while search.look_at_all(run) {}
    search.look_at_later_starts(run)?;
    let depth = search.depth(run);
    Ok(HappensBefore { facts: search.facts, reach: search.reach, depth })
}

impl HappensBefore {
    /// Number of starts after which the bytes of one event must be there when the other begins.
    pub(super) fn is_over(&self, one: usize, other: usize) -> Option<u32> {
        (1..FACTS).filter_map(|fact| self.facts.lag(other, one * FACTS + fact)).min()
    }

    /// Number of starts after which one event must have begun when the other does.
    pub(super) fn has_begun(&self, one: usize, other: usize) -> Option<u32> {
        self.facts.lag(other, one * FACTS)
    }

    /// The effects of its own start that an event waits for by its triggers, as (event, effect), without those that its
    /// predecessor in the queue has waited for; and true if its triggers wait for nothing else.
    pub(super) fn causes(&self, world: &Unrolled, event: usize) -> (Vec<(usize, usize)>, bool) {
        let before = world.before(event).filter(|&(_, in_last_start)| !in_last_start);
        let fact = |source: usize, slot: usize| source * FACTS + 1 + slot;
        let is_known = |event: usize, fact: usize| self.facts.lag(event, fact) == Some(0);
        let mut causes = Vec::new();
        for (&(_, stream), &reach) in &self.reach[event] {
            let stream = &world.streams[stream];
            causes.extend(of_start(stream, reach).iter().filter(|&&(source, slot)| {
                before.is_none_or(|(before, _)| !is_known(before, fact(source, slot)))
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
            let known = additions.filter(|one| is_known(event, fact(one.event, one.slot)));
            known.map(|one| one.amount).sum::<u64>() >= trigger.count
        });
        (causes, is_whole)
    }

    /// Checks that starts end only after all ranks have started, where the contract demands it.
    pub(super) fn check_synchronization(&self, world: &Unrolled) -> Result<(), Box<Fault>> {
        for rank in (0..world.ranks()).filter(|&rank| world.contracts[rank].synchronizes) {
            let end = world.number(Event::End(rank));
            for begin in (0..world.ranks()).map(|other| world.number(Event::Begin(other))) {
                if self.has_begun(begin, end) != Some(0) {
                    return Err(Box::new(Fault::NotMet {
                        end: world.place(end, 1),
                        begin: world.place(begin, 1),
                    }));
                }
            }
        }
        Ok(())
    }
}

/// The additions of a stream that belong to the event's own start, as far as the trigger reaches.
fn of_start(stream: &[(usize, usize)], reach: i64) -> &[(usize, usize)] {
    &stream[..reach.clamp(0, stream.len() as i64) as usize]
}

impl<'w> Search<'w> {
    /// Examines every event, in an order in which they can happen. Returns true if a fact was found.
    fn look_at_all(&mut self, run: &DryRun) -> bool {
        let mut news = false;
        for &event in &run.order {
            news |= self.look_at(event);
        }
        news
    }

    fn look_at(&mut self, event: usize) -> bool {
        self.looks += 1;
        let now = self.looks;
        let mut news = self.facts.add(event, event * FACTS, 0);
        let (before, in_last_start) = self.before(event);
        news |= self.add_all(event, before, in_last_start.into(), false);
        // Reductions of a queue run one after the other.
        if let Some((before, in_last_start)) = self.world.reduction_before(event) {
            let lag = in_last_start.into();
            news |=
                self.facts.add(event, before * FACTS + ENDED, lag) | self.add_all(event, before, lag, false);
        }
        if let Event::Step(rank, _) = self.world.event(event) {
            let begin = self.world.number(Event::Begin(rank));
            news |= self.facts.add(event, begin * FACTS + 1, 0) | self.add_all(event, begin, 0, false);
        }
        for number in 0..self.world.triggers(event).1.len() {
            news |= self.look_at_trigger(event, number);
        }
        self.looked[event] = now;
        if news {
            self.changed[event] = now;
        }
        news
    }

    /// Adds the facts of another event to an event: all of them if `is_first`, otherwise those found since the last
    /// pass.
    fn add_all(&mut self, event: usize, from: usize, lag: u32, is_first: bool) -> bool {
        let is_over = !is_first && self.looked[event] > self.changed[from];
        !is_over && self.facts.add_all(event, from, lag)
    }

    /// The predecessor of an event in its line, and true if it belongs to the start before.
    fn before(&self, event: usize) -> (usize, bool) {
        match self.world.event(event) {
            Event::Begin(rank) => (self.world.number(Event::End(rank)), true),
            Event::End(rank) => (self.world.number(Event::Begin(rank)), false),
            Event::Step(..) => self.world.before(event).unwrap_or((event, true)),
        }
    }

    fn waits(&self, event: usize, number: usize) -> Waits<'w> {
        let (rank, triggers) = self.world.triggers(event);
        let trigger = triggers[number];
        let additions = self.world.additions(rank, trigger.signal);
        let per_start = self.world.per_start(rank, trigger.signal);
        Waits { event, trigger, per_start, additions, is_last_start: true }
    }

    fn look_at_trigger(&mut self, event: usize, number: usize) -> bool {
        let waits = self.waits(event, number);
        let mut news = false;
        for stream in waits.streams() {
            let before = self.reach[event].get(&(number, stream)).copied();
            let Some(reach) = self.reaches(waits, stream, before) else { continue };
            if before != Some(reach) {
                self.reach[event].insert((number, stream), reach);
            }
            let len = self.world.streams[stream].len() as i64;
            for place in (reach - len..reach).rev() {
                let (fact, lag) = self.fact(stream, place);
                if !self.facts.add(event, fact, lag) {
                    break; // what came before it in the stream is known, too
                }
                news = true;
            }
            let (fact, lag) = self.fact(stream, reach - 1);
            news |= self.add_all(event, fact / FACTS, lag, before != Some(reach));
        }
        news
    }

    /// How far a trigger reaches into a stream, which is no less than found before.
    fn reaches(&self, waits: Waits<'_>, stream: usize, before: Option<i64>) -> Option<i64> {
        let len = self.world.streams[stream].len() as i64;
        // A trigger implies nothing about starts later than the one to which it looks back.
        let end = len * (1 - i64::from(waits.trigger.lag));
        let first = -len * i64::from(happens_before_table::LAG_MAX);
        let is_implied = |place: i64| self.is_implied(waits, (stream, place));
        let from = match before {
            Some(reach) => reach,
            None if waits.trigger.lag <= happens_before_table::LAG_MAX && is_implied(first) => first + 1,
            None => return None,
        };
        if from < end && is_implied(end - 1) {
            return Some(end);
        }
        let below = end
            - implied_until(0, (end - from).max(0) as usize, |back| !is_implied(end - 1 - back as i64))
                as i64;
        Some(below.max(from))
    }

    /// The addition at a position of a stream, and how many starts ago it was.
    fn fact(&self, stream: usize, place: i64) -> (usize, u32) {
        let len = self.world.streams[stream].len() as i64;
        let (event, slot) = self.world.streams[stream][place.rem_euclid(len) as usize];
        (event * FACTS + 1 + slot, -place.div_euclid(len) as u32)
    }

    /// Returns true if the trigger cannot be met without that addition.
    fn is_implied(&self, waits: Waits<'_>, (stream, place): (usize, i64)) -> bool {
        let index = place.rem_euclid(self.world.streams[stream].len() as i64) as usize;
        let lag = self.fact(stream, place).1;
        let wanted = u64::from(lag - waits.trigger.lag) * waits.per_start + waits.trigger.count;
        let mut others = 0_u64;
        for addition in waits.additions {
            // So many starts may have been added, counted from the event's own: in start `lag` there are as many more.
            let Some(ahead) = self.ahead(waits, addition, (stream, place, index)) else { return false };
            let starts = (i64::from(lag) + ahead).max(0) as u64;
            others = others.saturating_add(addition.amount.saturating_mul(starts));
            if others >= wanted {
                return false;
            }
        }
        others < wanted
    }

    /// The number of starts, before the event's own and from it on, in which an addition may have arrived when the
    /// event begins, if the one at that position of a stream has not. `None` if there is no bound.
    fn ahead(
        &self,
        waits: Waits<'_>,
        addition: &Addition,
        (stream, place, index): (usize, i64, usize),
    ) -> Option<i64> {
        let (fact, lag) = self.fact(stream, place);
        let lag = i64::from(lag);
        let known = |fact: usize| self.facts.lag(addition.event, fact).map(i64::from);
        let behind = (addition.stream == stream).then(|| i64::from(addition.place < index) - lag);
        let after_it = known(fact).map(|known| known - lag);
        let after_event = known(waits.event * FACTS);
        let last_start = waits.is_last_start.then_some(1);
        [behind, after_it, after_event, last_start].into_iter().flatten().min()
    }

    /// Checks that what triggers imply also holds if later starts are counted.
    fn look_at_later_starts(&self, run: &DryRun) -> Result<(), Box<Fault>> {
        for &event in &run.order {
            for (&(number, stream), &reach) in &self.reach[event] {
                let waits = Waits { is_last_start: false, ..self.waits(event, number) };
                if !self.is_implied(waits, (stream, reach - 1)) {
                    let reach = self.reaches(waits, stream, None);
                    return Err(Box::new(self.overtaken(waits, stream, reach)));
                }
            }
        }
        Ok(())
    }

    /// The fault that an addition meets the trigger in place of the one that the event must wait for.
    fn overtaken(&self, waits: Waits<'_>, stream: usize, reach: Option<i64>) -> Fault {
        let world = self.world;
        let Waits { event, trigger, .. } = waits;
        let len = world.streams[stream].len() as i64;
        // Where nothing is known at all: the last start about which the event must know.
        let place = reach.unwrap_or(-len * i64::from(trigger.lag));
        let (fact, lag) = self.fact(stream, place);
        let start = lag.max(1) as usize;
        let index = place.rem_euclid(len) as usize;
        let ahead =
            |addition: &&Addition| self.ahead(waits, addition, (stream, place, index)).unwrap_or(i64::MAX);
        let by = waits.additions.iter().rev().max_by_key(ahead);
        let by = by.map_or(event, |addition| addition.event);
        Fault::Overtaken {
            at: world.place(event, start),
            signal: world.parts[world.triggers(event).0].signal_decls()[trigger.signal.index()].name.clone(),
            missing: world.place(fact / FACTS, start - lag as usize),
            by: world.place(by, start + 1),
        }
    }

    /// The longest chain of steps that move data, each waiting for the one before it, in a start. A step also waits for
    /// what its queue has waited for before.
    fn depth(&self, run: &DryRun) -> usize {
        let world = self.world;
        let (mut waited, mut depths) = (vec![0; world.events()], vec![0; world.events()]);
        for &event in &run.order {
            let before = world.before(event).filter(|&(_, in_last_start)| !in_last_start);
            let mut depth = before.map_or(0, |(before, _)| waited[before]);
            for (&(_, stream), &reach) in &self.reach[event] {
                let stream = of_start(&world.streams[stream], reach);
                depth = stream.iter().map(|&(source, _)| depths[source]).fold(depth, usize::max);
            }
            let moves = world.step(event).is_some_and(|step| step.action != crate::StepKind::Nothing);
            waited[event] = depth;
            depths[event] = depth + usize::from(moves);
        }
        depths.into_iter().max().unwrap_or(0)
    }
}

impl Waits<'_> {
    /// The streams that add to the signal.
    fn streams(&self) -> std::collections::BTreeSet<usize> {
        self.additions.iter().map(|addition| addition.stream).collect()
    }
}

/// The first position from `from` on, up to `end`, that is not implied. What comes after an addition also comes after
/// those before it in its stream, so no later position is implied: the search doubles its stride, then halves it.
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
    fn the_first_position_not_implied_is_found_from_any_start() {
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
