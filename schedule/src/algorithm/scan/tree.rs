//! Scans in the combining order, up and down its tree.
//!
//! A rank combines its own values with the totals of its children, the nearest first. Before it adds the total of a
//! child, it sends that child what it has so far: the child's *prefix* at its level, the combination of the ranks of
//! its group before it. The last one is its own total, which it sends to its parent, if any rank comes after its
//! subtree. A rank passes the prefixes that it gets on to its children, which combine all of them: first the one of the
//! lowest level with their own values, then that of the next level with the result, and so on.
//!
//! What a rank has so far lies in the receive buffer of the child whose total came last. Nothing overwrites it in the
//! same start, so no rank waits until it has been sent.
//!
//! A rank ends a start when its parent has sent the prefix of that start, and when it has combined what its children
//! sent. So receive buffers in two copies need no signal that they are free, except those of a child that sends no
//! total.

use crate::algorithm::layout::tree::Tree;
use crate::algorithm::{Algorithm, CollectiveKind, Make};
use crate::combining_order::GROUP;
use crate::shape::{DATA, Shape};
use crate::{BufferId, Location, RankPart, SignalId, StepEffect, StepTrigger, started};

/// Inclusive scan.
pub(in super::super) const INCLUSIVE: Algorithm = algorithm(CollectiveKind::Scan, inclusive);
/// Exclusive scan.
pub(in super::super) const EXCLUSIVE: Algorithm = algorithm(CollectiveKind::Exscan, exclusive);

const fn algorithm(collective: CollectiveKind, make: fn(&Shape, &mut RankPart)) -> Algorithm {
    Algorithm { name: "tree", collective, fits: |_| true, make: Make::Whole(make) }
}

/// Number of copies of a receive buffer, used by successive starts in turn.
const TURNS: u32 = 2;

/// The levels of the tree at which a rank has a prefix, the lowest first: those of its digits in the number system with
/// base [`GROUP`] that are not zero. The parent of the rank sends the first; it got the others itself.
pub(in super::super) fn prefix_levels(rank: usize) -> Vec<usize> {
    let digits = std::iter::successors(Some(rank), |rest| Some(rest / GROUP)).take_while(|&rest| rest > 0);
    digits.enumerate().filter(|(_, rest)| rest % GROUP != 0).map(|(level, _)| level).collect()
}

/// The number of levels at which ranks may have a prefix.
pub(in super::super) fn prefix_levels_max(ranks: usize) -> usize {
    std::iter::successors(Some(1_usize), |size| size.checked_mul(GROUP))
        .take_while(|&size| size < ranks)
        .count()
}

/// Returns true if a rank comes after the subtree of `rank`, and so needs its total.
fn has_rank_behind(rank: usize, ranks: usize) -> bool {
    let level = prefix_levels(rank).first().map_or(0, |&level| level as u32);
    rank > 0 && rank + GROUP.pow(level) < ranks
}

fn inclusive(shape: &Shape, part: &mut RankPart) {
    let tree = ScanTree::declare(shape, part);
    tree.send(part);
    if tree.own_sent_count > 0 {
        part.join(tree.own_sent.reaches(1)); // the result overwrites the own values
    }
    for &level in &tree.levels {
        tree.add_prefix(level, part);
    }
    tree.finish(part);
}

fn exclusive(shape: &Shape, part: &mut RankPart) {
    let tree = ScanTree::declare(shape, part);
    tree.send(part);
    if let [lowest, others @ ..] = &tree.levels[..] {
        if tree.own_sent_count > 0 {
            part.join(tree.own_sent.reaches(1)); // the result overwrites the own values
        }
        if tree.totals_count > 0 {
            part.join(tree.combined.reaches(1)); // and they have been combined
        }
        let (me, from) = (part.rank(), tree.prefix_on(part.rank(), *lowest));
        part.copy(tree.prefix[*lowest].reaches(1), from, DATA.on(me, 0), tree.bytes)
            .then(tree.done.on(me, 1));
        if !others.is_empty() {
            part.join(tree.done.reaches(1));
        }
        for &level in others {
            tree.add_prefix(level, part);
        }
    }
    tree.finish(part);
}

/// One rank's part of the scan.
struct ScanTree {
    bytes: u64,
    ranks: usize,
    /// The children, the nearest first.
    children: Vec<usize>,
    /// The levels at which this rank has a prefix.
    levels: Vec<usize>,
    /// How many children send a total, how often a rank sends its own values, and how often it sends something else.
    totals_count: u64,
    own_sent_count: u64,
    sent_count: u64,
    /// The totals of children, and the prefixes of this rank by level.
    totals: BufferId,
    prefixes: BufferId,
    /// For each child: its total has come.
    arrived: Vec<SignalId>,
    /// For each level: the prefix has come.
    prefix: Vec<SignalId>,
    /// Counts the totals that are combined.
    combined: SignalId,
    sent: SignalId,
    own_sent: SignalId,
    /// Counts the prefixes that are combined.
    done: SignalId,
    /// The child that sends no total is done with its prefixes.
    free: SignalId,
}

impl ScanTree {
    fn declare(shape: &Shape, part: &mut RankPart) -> ScanTree {
        let (ranks, me, bytes) = (shape.ranks, part.rank(), shape.bytes_of(0));
        let children: Vec<usize> = Tree::GROUPS.children(me, ranks).into_iter().rev().collect();
        let (levels, depth) = (prefix_levels(me), prefix_levels_max(ranks));
        let (below, above) = (children.len() as u64, levels.len() as u64);
        let totals_count = children.iter().filter(|&&child| has_rank_behind(child, ranks)).count() as u64;
        let sends = below * (above + 1) + u64::from(has_rank_behind(me, ranks));
        let own_sent_count = sends.min(1);
        part.buffer("data", bytes);
        let totals = part.scratch("totals", bytes * totals_count, TURNS);
        let prefixes = part.scratch("prefixes", if above > 0 { bytes * depth as u64 } else { 0 }, TURNS);
        let has_total = |index: usize| u64::from((index as u64) < totals_count);
        let arrived = 0..Tree::GROUPS.children_max(ranks);
        ScanTree {
            bytes,
            ranks,
            totals_count,
            own_sent_count,
            sent_count: sends - own_sent_count,
            totals,
            prefixes,
            arrived: arrived.map(|index| part.signal("arrived", has_total(index))).collect(),
            prefix: (0..depth).map(|at| part.signal("prefix", levels.contains(&at).into())).collect(),
            combined: part.signal("combined", totals_count),
            sent: part.signal("sent", sends - own_sent_count),
            own_sent: part.signal("own_sent", own_sent_count),
            done: part.signal("done", above),
            free: part.signal("free", below - totals_count),
            children,
            levels,
        }
    }

    /// The receive buffer of a rank for its prefix of a level.
    fn prefix_on(&self, rank: usize, level: usize) -> Location {
        self.prefixes.on(rank, level as u64 * self.bytes)
    }

    /// Combines the totals of the children, and sends the prefixes and the own total.
    fn send(&self, part: &mut RankPart) {
        let me = part.rank();
        let own = DATA.on(me, 0);
        let send =
            |from: Location, ready: StepTrigger, to: Location, effect: StepEffect, part: &mut RankPart| {
                let sent = if from == own { self.own_sent } else { self.sent };
                part.copy(ready, from, to, self.bytes).then(effect).then(sent.on(me, 1));
            };
        let (mut have, mut ready) = (own, started());
        for (index, &child) in self.children.iter().enumerate() {
            let level = prefix_levels(child)[0];
            let sends_total = has_rank_behind(child, self.ranks);
            if !sends_total {
                part.join(self.free.reaches(1).lagging(TURNS));
            }
            send(have, ready, self.prefix_on(child, level), self.prefix[level].on(child, 1), part);
            if sends_total {
                let total = self.totals.on(me, index as u64 * self.bytes);
                let arrived = self.arrived[index].reaches(1);
                part.reduce(arrived, have, total, self.bytes, true).then(self.combined.on(me, 1));
                (have, ready) = (total, self.combined.reaches(index as u64 + 1));
            }
        }
        if let Some(parent) = Tree::GROUPS.parent(me).filter(|_| has_rank_behind(me, self.ranks)) {
            let index = Tree::GROUPS.child_index(me);
            let place = self.totals.on(parent, index as u64 * self.bytes);
            send(have, ready, place, self.arrived[index].on(parent, 1), part);
        }
        for &level in &self.levels {
            for &child in &self.children {
                let (from, to) = (self.prefix_on(me, level), self.prefix_on(child, level));
                send(from, self.prefix[level].reaches(1), to, self.prefix[level].on(child, 1), part);
            }
        }
    }

    /// Combines the prefix of a level with the data.
    fn add_prefix(&self, level: usize, part: &mut RankPart) {
        let (me, arrived) = (part.rank(), self.prefix[level].reaches(1));
        let step = part.reduce(arrived, self.prefix_on(me, level), DATA.on(me, 0), self.bytes, true);
        step.then(self.done.on(me, 1));
    }

    /// Signals to the parent that the prefixes are free, if it learns of that in no other way, and completes the start
    /// of this rank.
    fn finish(&self, part: &mut RankPart) {
        let me = part.rank();
        let counts = [
            (self.combined, self.totals_count),
            (self.own_sent, self.own_sent_count),
            (self.sent, self.sent_count),
            (self.done, self.levels.len() as u64),
        ];
        for (signal, count) in counts.into_iter().filter(|&(_, count)| count > 0) {
            part.finish(signal.reaches(count));
        }
        if let Some(parent) = Tree::GROUPS.parent(me).filter(|_| !has_rank_behind(me, self.ranks)) {
            if self.sent_count > 0 {
                part.join(self.sent.reaches(self.sent_count));
            }
            part.join(self.done.reaches(self.levels.len() as u64)).then(self.free.on(parent, 1));
        }
    }
}
