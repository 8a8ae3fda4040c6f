//! Transforms a schedule so that one rank, the driver, runs the steps of all ranks.
//!
//! The steps that move data are put into one list, in the order of one run of a start, round by round. A step of the
//! list waits until all earlier steps are done that read or wrote its destination, or wrote its source. So the list
//! leaves the same bytes as that run. The steps of a queue apply their effects in queue order, so one signal that
//! counts finished steps tells for each of them whether it is done. Each rank signals the driver when it has
//! started; the driver signals each rank when no step touches its memory any more.

use super::last_writes::Writes;
use super::{Draft, Region};
use crate::Schedule;
use crate::network::Time;
use crate::rank_part::{BufferDecl, BufferKind, RankPart, started};
use crate::simulate::rank::LiveRank;
use crate::step::{Location, SignalId, StepEffect, StepKind, StepTrigger};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

/// The queue of signals that the steps of the list cannot raise themselves.
const SIGNAL_QUEUE: u16 = 1;

/// A step of the list.
struct ListEntry {
    action: StepKind,
    /// Number of steps, from the first one on, that must be done before this one begins.
    after: u64,
    /// The rank whose start is over when this step is done.
    ends_start_of: Option<u32>,
}

/// Ranks that are signalled once `after` steps are done.
struct SignalTo {
    after: u64,
    ranks: [Option<u32>; 2],
}

/// The list of the driver.
struct StepList {
    entries: Vec<ListEntry>,
    signals: Vec<SignalTo>,
    /// For each rank: true if the list waits for its start, and its start waits for the list.
    takes_part: Vec<bool>,
    /// Number of ranks that take part.
    others: usize,
}

/// The last two steps that touch a rank's memory, each by its number counted from 1; 0: none.
#[derive(Clone, Copy, Default)]
struct Touched {
    before: u64,
    last: u64,
}

impl Schedule {
    /// Returns a schedule in which rank `by` runs the steps of all ranks in one list; the other ranks only start. Bytes
    /// still move directly between ranks; only signals travel to rank `by` and back. That rank need not have inputs or
    /// outputs.
    ///
    /// ```
    /// use tasuki_schedule::{CollectiveKind, Shape};
    /// use tasuki_schedule::Builder;
    ///
    /// fn chain(b: &mut Builder) {
    ///     let data = b.buffer("data", b.bytes());
    ///     for pair in b.ranks().windows(2) {
    ///         let written = b.last_write(data.on(pair[0]));
    ///         b.copy(data.on(pair[0]), data.on(pair[1])).after(written);
    ///     }
    /// }
    /// let original = Shape::new(CollectiveKind::Bcast, 5, 0, 8192).build("my chain", chain);
    /// let rooted = original.driven_by(2);
    /// assert_eq!(rooted.check()?.depth, 4);
    /// assert!(rooted.part(2).steps().len() >= 4 && rooted.part(3).steps().len() == 1);
    /// # Ok::<(), Box<tasuki_schedule::Fault>>(())
    /// ```
    ///
    /// The list is made from one run of a start, when the first part is asked for. It takes time and memory for all
    /// ranks. Steps that do not happen in that run are left out, and all steps if there is no rank `by`;
    /// [`Schedule::check`] reports that.
    ///
    /// Source: the collective interface of the ACP library, where one rank runs a list of copies.
    pub fn driven_by(&self, by: usize) -> Schedule {
        let (original, for_contract) = (self.clone(), self.clone());
        let list: Arc<OnceLock<StepList>> = Arc::default();
        let part = move |part: &mut RankPart| {
            list.get_or_init(|| StepList::new(&original, by)).fill(&original, by, part)
        };
        let name = format!("{} by rank {by}", self.name());
        Schedule::new(name, self.ranks(), part, move |rank| for_contract.contract(rank))
    }
}

impl StepList {
    fn new(original: &Schedule, by: usize) -> StepList {
        let ranks = original.ranks();
        let (mut list, touched) = StepList::in_order(moves(original), ranks);
        if by < ranks {
            let is_touched = |rank: usize| touched[rank].last > 0;
            // A contract may be as long as the number of ranks, so only a few are read.
            let mut asked = (0..ranks).filter(|&rank| rank == by || !is_touched(rank));
            let all_meet = asked.any(|rank| original.contract(rank).synchronizes);
            list.takes_part = (0..ranks).map(|rank| rank != by && (all_meet || is_touched(rank))).collect();
            list.others = list.takes_part.iter().filter(|takes| **takes).count();
            list.assign_signals(&touched);
        }
        list
    }

    /// Orders the moves into a list, and finds for each the steps that it must come after.
    fn in_order(moves: impl Iterator<Item = StepKind>, ranks: usize) -> (StepList, Vec<Touched>) {
        let mut list =
            StepList { entries: Vec::new(), signals: Vec::new(), takes_part: vec![false; ranks], others: 0 };
        let (mut reads, mut writes) = (Writes::default(), Writes::default());
        let mut touched = vec![Touched::default(); ranks];
        for action in moves {
            let (StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. }) = action
            else {
                continue;
            };
            let (from, to) = (Region { place: from, bytes }, Region { place: to, bytes });
            let before = [writes.last(&from), writes.last(&to), reads.last(&to)];
            let after = before.into_iter().flatten().max().map_or(0, |step| step as u64 + 1);
            let number = list.entries.len();
            reads.add(from, number);
            writes.add(to, number);
            let draft = Draft { by: 0, action, after: BTreeSet::new() };
            for rank in draft.touches() {
                let before = touched[rank].last;
                touched[rank] = Touched { before, last: number as u64 + 1 };
            }
            list.entries.push(ListEntry { action, after, ends_start_of: None });
        }
        (list, touched)
    }

    /// Signals each rank that takes part once. The last step that touches its memory does so, if all others that
    /// touch it are done when that step begins, and the step signals no other rank. Otherwise a step without
    /// data signals two such ranks.
    fn assign_signals(&mut self, touched: &[Touched]) {
        let mut others = Vec::new();
        for (rank, touched) in touched.iter().enumerate().filter(|(rank, _)| self.takes_part[*rank]) {
            let last = touched.last.checked_sub(1).and_then(|last| self.entries.get_mut(last as usize));
            match last.filter(|last| last.ends_start_of.is_none() && touched.before <= last.after) {
                Some(last) if last.may_signal(rank as u32) => last.ends_start_of = Some(rank as u32),
                _ => others.push((touched.last, rank as u32)),
            }
        }
        others.sort_unstable();
        for pair in others.chunks(2) {
            let ranks = [pair.first(), pair.get(1)].map(|entry| entry.map(|&(_, rank)| rank));
            let after = pair.iter().map(|&(after, _)| after).max().unwrap_or(0);
            self.signals.push(SignalTo { after, ranks });
        }
    }

    /// Fills in the part of one rank.
    fn fill(&self, original: &Schedule, by: usize, part: &mut RankPart) {
        let me = part.rank();
        for decl in original.part(me).buffer_decls() {
            // No rank starts before all steps on its memory are done, so one copy of each buffer is enough.
            let kind = if decl.kind == BufferKind::User { BufferKind::User } else { BufferKind::Turns(1) };
            part.declare_buffer(BufferDecl { kind, ..decl.clone() });
        }
        let (others, all) = (self.others, self.entries.len());
        let of_list = |count: usize| if me == by { count as u64 } else { 0 };
        let has_started = part.signal("ranks have started", of_list(others));
        let done = part.signal("steps are done", of_list(all));
        let end = part.signal("the list is done here", self.takes_part[me].into());
        if me == by {
            let first = if others > 0 { has_started.reaches(others as u64) } else { started() };
            self.run(part, first, done, end);
        } else if self.takes_part[me] {
            part.join(started()).then(has_started.on(by, 1));
            part.finish(end.reaches(1));
        }
    }

    /// Adds the steps of the list.
    fn run(&self, part: &mut RankPart, first: StepTrigger, done: SignalId, end: SignalId) {
        let me = part.rank();
        let when = |after: u64| if after > 0 { done.reaches(after) } else { first };
        for entry in &self.entries {
            let step = part.step(when(entry.after), entry.action);
            step.then(done.on(me, 1));
            if let Some(rank) = entry.ends_start_of {
                step.then(end.on(rank as usize, 1));
            }
        }
        part.in_queue(SIGNAL_QUEUE);
        for signal_to in &self.signals {
            let step = part.join(when(signal_to.after));
            for rank in signal_to.ranks.into_iter().flatten() {
                step.then(end.on(rank as usize, 1));
            }
        }
        part.finish(when(self.entries.len() as u64));
    }
}

impl ListEntry {
    /// Returns true if the step may signal the end to `rank`: it writes there.
    fn may_signal(&self, rank: u32) -> bool {
        match self.action {
            StepKind::Copy { to, .. } | StepKind::Reduce { to, .. } => to.rank == rank,
            StepKind::Nothing => false,
        }
    }
}

/// The run of a start: the ranks still running, and those of their queues that are ready.
struct ListRun {
    live: Vec<Option<Box<LiveRank>>>,
    ready_queues: VecDeque<(usize, u16)>,
    /// Effects of this round.
    effects: Vec<StepEffect>,
}

/// The copies and reductions of a schedule in the order of one run of a start. Ranks observe the effects of a round in
/// the next round. So steps that depend on many others come late in the list, and few steps wait for the one just
/// before them.
fn moves(original: &Schedule) -> impl Iterator<Item = StepKind> {
    let ranks = original.ranks();
    let live = (0..ranks).map(|rank| Some(Box::new(LiveRank::new(&original.part(rank))))).collect();
    let mut running = ListRun { live, ready_queues: VecDeque::new(), effects: Vec::new() };
    for rank in 0..ranks {
        running.live[rank].iter_mut().for_each(|live| live.start());
        running.enqueue_ready(rank);
    }
    let is_known = move |place: Location| (place.rank as usize) < ranks;
    std::iter::from_fn(move || {
        loop {
            match running.step()? {
                action @ (StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. })
                    if is_known(from) && is_known(to) =>
                {
                    return Some(action);
                }
                _ => {}
            }
        }
    })
}

impl ListRun {
    /// Runs the next step; `None` if no step can run any more.
    fn step(&mut self) -> Option<StepKind> {
        if self.ready_queues.is_empty() {
            self.apply_effects();
        }
        let (rank, lane) = self.ready_queues.pop_front()?;
        let live = self.live.get_mut(rank)?.as_mut()?;
        let step = live.begin(lane);
        self.effects.extend(step.effects());
        if live.ready(lane, Time::ZERO).is_some() {
            live.lanes[usize::from(lane)].waits = true;
            self.ready_queues.push_front((rank, lane)); // a queue runs all that it can in this round
        } else if live.lanes.iter().all(|lane| lane.start == 1) {
            self.live[rank] = None;
        }
        Some(step.action)
    }

    /// Applies the effects of the round that has ended.
    fn apply_effects(&mut self) {
        let effects = std::mem::take(&mut self.effects);
        let mut ranks = Vec::with_capacity(effects.len());
        for effect in effects {
            if let Some(Some(live)) = self.live.get_mut(effect.rank as usize) {
                live.raise(effect.signal, effect.amount);
                ranks.push(effect.rank as usize);
            }
        }
        ranks.into_iter().for_each(|rank| self.enqueue_ready(rank));
    }

    /// Puts the queues of a rank that are ready into `ready_queues`.
    fn enqueue_ready(&mut self, rank: usize) {
        let Some(live) = &mut self.live[rank] else { return };
        for lane in 0..live.lanes.len() as u16 {
            if live.ready(lane, Time::ZERO).is_some() {
                live.lanes[usize::from(lane)].waits = true;
                self.ready_queues.push_back((rank, lane));
            }
        }
    }
}
