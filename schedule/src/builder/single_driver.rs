//! The same schedule by one list: one rank runs everybody's steps, by copies between others.
//!
//! The steps that move something are put in a row, as one run of a start has them, round by round. A command of
//! the list waits until all before it are done that read or wrote where it writes, or wrote where it reads; so what is
//! there in the end is what that run leaves. Commands of a queue raise one signal in their order: a single signal,
//! which counts what is done, says of all of them whether they are. A rank tells the one that runs the list when it has
//! started, and is told when nothing is done in its memory any more.

use super::last_writes::Writes;
use super::{Draft, Region};
use crate::Schedule;
use crate::network::Time;
use crate::rank_part::{BufferDecl, BufferKind, RankPart, started};
use crate::simulate::rank::LiveRank;
use crate::step::{Location, SignalId, StepEffect, StepKind, StepTrigger};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

/// The queue of what the list cannot tell itself.
const TOLD: u16 = 1;

/// A command of the list.
struct ListEntry {
    action: StepKind,
    /// So many, from the first one on, are done before it begins.
    after: u64,
    /// Who has nothing to wait for when it is done.
    over: Option<u32>,
}

/// Ranks that are told when so many commands are done.
struct SignalTo {
    after: u64,
    ranks: [Option<u32>; 2],
}

/// What one rank runs.
struct CommandList {
    entries: Vec<ListEntry>,
    tells: Vec<SignalTo>,
    /// Of each rank: whether the list waits for its start, and it for the list.
    takes_part: Vec<bool>,
    /// How many do.
    others: usize,
}

/// The last two commands that touch a rank's memory, by how many there are up to each; 0: none.
#[derive(Clone, Copy, Default)]
struct Touched {
    before: u64,
    last: u64,
}

impl Schedule {
    /// The same, run by one rank: it has the commands of all, in one list, and the others only start. Bytes go straight
    /// from rank to rank, as before; what travels besides is the news, to that rank and back. It may be one that
    /// neither gives nor gets anything.
    ///
    /// ```
    /// use crate::{Operation, Shape};
    /// use crate::Builder;
    ///
    /// fn chain(b: &mut Builder) {
    ///     let data = b.buffer("data", b.bytes());
    ///     for pair in b.ranks().windows(2) {
    ///         let heard = b.last_write(data.on(pair[0]));
    ///         b.copy(data.on(pair[0]), data.on(pair[1])).after(heard);
    ///     }
    /// }
    /// let spread = Shape::new(Operation::Bcast, 5, 0, 8192).build("my chain", chain);
    /// let rooted = spread.driven_by(2);
    /// assert_eq!(rooted.check()?.depth, 4);
    /// assert!(rooted.part(2).steps().len() >= 4 && rooted.part(3).steps().len() == 1);
    /// # Ok::<(), Box<tasuki_schedule::Fault>>(())
    /// ```
    ///
    /// Made of one run of a start when it is first asked for: takes time and memory for all ranks. What never happens
    /// in that run is left out, and all of it where there is no rank `by`; the proof finds that.
    ///
    /// Source: the collective interface of the ACP library, where one rank runs a list of copies.
    pub fn driven_by(&self, by: usize) -> Schedule {
        let (spread, for_contract) = (self.clone(), self.clone());
        let list: Arc<OnceLock<CommandList>> = Arc::default();
        let part = move |part: &mut RankPart| {
            list.get_or_init(|| CommandList::new(&spread, by)).fill(&spread, by, part)
        };
        let name = format!("{} by rank {by}", self.name());
        Schedule::new(name, self.ranks(), part, move |rank| for_contract.contract(rank))
    }
}

impl CommandList {
    fn new(spread: &Schedule, by: usize) -> CommandList {
        let ranks = spread.ranks();
        let (mut list, touched) = CommandList::in_a_row(moves(spread), ranks);
        if by < ranks {
            let is_touched = |rank: usize| touched[rank].last > 0;
            // What a contract says may be as long as all ranks: few are asked.
            let mut asked = (0..ranks).filter(|&rank| rank == by || !is_touched(rank));
            let all_meet = asked.any(|rank| spread.contract(rank).meets);
            list.takes_part = (0..ranks).map(|rank| rank != by && (all_meet || is_touched(rank))).collect();
            list.others = list.takes_part.iter().filter(|takes| **takes).count();
            list.tell_all(&touched);
        }
        list
    }

    /// Each after those that it must come after.
    fn in_a_row(moves: impl Iterator<Item = StepKind>, ranks: usize) -> (CommandList, Vec<Touched>) {
        let mut list =
            CommandList { entries: Vec::new(), tells: Vec::new(), takes_part: vec![false; ranks], others: 0 };
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
            list.entries.push(ListEntry { action, after, over: None });
        }
        (list, touched)
    }

    /// Each rank that takes part is told once: by the last command that touches it, if all others that do are done when
    /// that begins, and if it tells nobody else. Else by one that does nothing, which tells two.
    fn tell_all(&mut self, touched: &[Touched]) {
        let mut others = Vec::new();
        for (rank, touched) in touched.iter().enumerate().filter(|(rank, _)| self.takes_part[*rank]) {
            let last = touched.last.checked_sub(1).and_then(|last| self.entries.get_mut(last as usize));
            match last.filter(|last| last.over.is_none() && touched.before <= last.after) {
                Some(last) if last.ends_at(rank as u32) => last.over = Some(rank as u32),
                _ => others.push((touched.last, rank as u32)),
            }
        }
        others.sort_unstable();
        for pair in others.chunks(2) {
            let ranks = [pair.first(), pair.get(1)].map(|told| told.map(|&(_, rank)| rank));
            let after = pair.iter().map(|&(after, _)| after).max().unwrap_or(0);
            self.tells.push(SignalTo { after, ranks });
        }
    }

    /// The part of one rank.
    fn fill(&self, spread: &Schedule, by: usize, part: &mut RankPart) {
        let me = part.rank();
        for room in spread.part(me).rooms() {
            // Nobody starts before all that the list does in its memory is done: one of each is enough.
            let used = if room.used == BufferKind::User { BufferKind::User } else { BufferKind::Turns(1) };
            part.room(BufferDecl { used, ..room.clone() });
        }
        let (others, all) = (self.others, self.entries.len());
        let of_list = |count: usize| if me == by { count as u64 } else { 0 };
        let has_started = part.signal("ranks have started", of_list(others));
        let done = part.signal("commands are done", of_list(all));
        let over = part.signal("the list is done here", self.takes_part[me].into());
        if me == by {
            let first = if others > 0 { has_started.reaches(others as u64) } else { started() };
            self.run(part, first, done, over);
        } else if self.takes_part[me] {
            part.join(started()).then(has_started.on(by, 1));
            part.finish(over.reaches(1));
        }
    }

    /// The list.
    fn run(&self, part: &mut RankPart, first: StepTrigger, done: SignalId, over: SignalId) {
        let me = part.rank();
        let when = |after: u64| if after > 0 { done.reaches(after) } else { first };
        for entry in &self.entries {
            let step = part.step(when(entry.after), entry.action);
            step.then(done.on(me, 1));
            if let Some(rank) = entry.over {
                step.then(over.on(rank as usize, 1));
            }
        }
        part.in_queue(TOLD);
        for tell in &self.tells {
            let step = part.join(when(tell.after));
            for rank in tell.ranks.into_iter().flatten() {
                step.then(over.on(rank as usize, 1));
            }
        }
        part.finish(when(self.entries.len() as u64));
    }
}

impl ListEntry {
    /// Whether bytes come to that rank, or none come to another one that is to be told.
    fn ends_at(&self, rank: u32) -> bool {
        match self.action {
            StepKind::Copy { to, .. } | StepKind::Reduce { to, .. } => to.rank == rank,
            StepKind::Nothing => false,
        }
    }
}

/// Ranks that are under way, and those of their queues that can go on.
struct ListRun {
    live: Vec<Option<Box<LiveRank>>>,
    turns: VecDeque<(usize, u16)>,
    /// What was raised in this round.
    news: Vec<StepEffect>,
}

/// What moves or combines something, as one run of a start has it, round by round: what is raised in a round is heard
/// of in the next one. So what waits for much comes late, and little in the list waits for what comes just before it.
fn moves(spread: &Schedule) -> impl Iterator<Item = StepKind> {
    let ranks = spread.ranks();
    let live = (0..ranks).map(|rank| Some(Box::new(LiveRank::new(&spread.part(rank))))).collect();
    let mut running = ListRun { live, turns: VecDeque::new(), news: Vec::new() };
    for rank in 0..ranks {
        running.live[rank].iter_mut().for_each(|live| live.start());
        running.look(rank);
    }
    let is_there = move |place: Location| (place.rank as usize) < ranks;
    std::iter::from_fn(move || {
        loop {
            match running.step()? {
                action @ (StepKind::Copy { from, to, .. } | StepKind::Reduce { from, to, .. })
                    if is_there(from) && is_there(to) =>
                {
                    return Some(action);
                }
                _ => {}
            }
        }
    })
}

impl ListRun {
    /// The next step; `None`: nothing can go on any more.
    fn step(&mut self) -> Option<StepKind> {
        if self.turns.is_empty() {
            self.hear();
        }
        let (rank, lane) = self.turns.pop_front()?;
        let live = self.live.get_mut(rank)?.as_mut()?;
        let step = live.begin(lane);
        self.news.extend(step.effects());
        if live.ready(lane, Time::ZERO).is_some() {
            live.lanes[usize::from(lane)].waits = true;
            self.turns.push_front((rank, lane)); // all that it can do in this round
        } else if live.lanes.iter().all(|lane| lane.start == 1) {
            self.live[rank] = None;
        }
        Some(step.action)
    }

    /// What was raised is heard of.
    fn hear(&mut self) {
        let news = std::mem::take(&mut self.news);
        let mut ranks = Vec::with_capacity(news.len());
        for effect in news {
            if let Some(Some(live)) = self.live.get_mut(effect.rank as usize) {
                live.raise(effect.signal, effect.amount);
                ranks.push(effect.rank as usize);
            }
        }
        ranks.into_iter().for_each(|rank| self.look(rank));
    }

    /// Those queues of a rank that can go on get their turn.
    fn look(&mut self, rank: usize) {
        let Some(live) = &mut self.live[rank] else { return };
        for lane in 0..live.lanes.len() as u16 {
            if live.ready(lane, Time::ZERO).is_some() {
                live.lanes[usize::from(lane)].waits = true;
                self.turns.push_back((rank, lane));
            }
        }
    }
}
