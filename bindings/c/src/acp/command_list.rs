//! Lists of copies that one rank executes: the collectives of the paper.
//!
//! A list is a tree of copies from member to member. The rank that executes it posts all of its copies to a queue of its
//! own; each starts when the copy that it depends on is done, and needs no call of the rank then. Members are known by
//! their *places*: where they stand in the tree, the origin of the bytes at place 0.

use super::signals::{CountedSignal, FreeSignals};
use crate::status::Failure;
use std::collections::BTreeMap;
use tasuki::onesided::{GlobalAddress, RemoteSignal, Trigger};
use tasuki::{Command, GlobalPtr, Job, Queue};

/// The most places of a queue.
pub(super) const QUEUE_PLACES_MAX: usize = 1 << 20;
/// Places of a queue that are free, but not reported: a rank that runs a queue reports after each 32 places.
pub(super) const UNREPORTED_PLACES: usize = 64;

/// A copy of a list: the places of the member that has the bytes, and of the one that gets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The tree of a broadcast (figure 5 of the paper): 0 -> 1, 2, and k -> 2k + 1, 2k + 2.
pub(super) fn broadcast_tree(members: usize) -> Vec<Edge> {
    (1..members).map(|to| Edge { from: (to - 1) / 2, to }).collect()
}

/// The tree of an allgather (figure 6 of the paper), which differs: 0 -> 1, and k -> 2k, 2k + 1.
pub(super) fn allgather_tree(members: usize) -> Vec<Edge> {
    (1..members).map(|to| Edge { from: to / 2, to }).collect()
}

/// Returns how many copies have their bytes from a place.
pub(super) fn copies_from(tree: &[Edge], place: usize) -> usize {
    tree.iter().filter(|edge| edge.from == place).count()
}

/// A member, as the rank that executes a list knows it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Where its bytes are.
    pub(super) memory: GlobalAddress,
    /// Counts the copies that the member gives bytes to or, if it gives none, the one that it gets.
    pub(super) done: RemoteSignal,
}

/// A list that this rank executes, once in each round.
pub(super) struct CommandList {
    tree: Vec<Edge>,
    queue: Queue,
    /// Counts the rounds in which the bytes have come to a place from which others copy them.
    arrived: BTreeMap<usize, CountedSignal>,
}

impl CommandList {
    /// Prepares a list. `extra`: how many commands of others its queue has room for, in each round.
    pub(super) fn new(
        job: &'static Job,
        signals: &FreeSignals,
        tree: Vec<Edge>,
        extra: usize,
    ) -> Result<CommandList, Failure> {
        let mut arrived = BTreeMap::new();
        for edge in tree.iter().filter(|edge| edge.from != 0) {
            if let std::collections::btree_map::Entry::Vacant(vacant) = arrived.entry(edge.from) {
                vacant.insert(signals.take(job)?);
            }
        }
        // A command has two effects, so it takes two places. The last copies of a round may be there when the next is posted.
        let places = 2 * 2 * (tree.len() + extra) + UNREPORTED_PLACES;
        if places > QUEUE_PLACES_MAX {
            let most = (QUEUE_PLACES_MAX - UNREPORTED_PLACES) / 4;
            return Err(Failure::full(format!(
                "a list has {} commands, and at most {most}",
                tree.len() + extra
            )));
        }
        Ok(CommandList { tree, queue: job.queue(places)?, arrived })
    }

    /// Posts the copies of a round, the first of which is number 1. `place` returns the member of a place; `bytes` bytes
    /// from `first` on are copied. The copies from place 0 start when `may_start` is met.
    pub(super) fn post(
        &self,
        round: u64,
        place: impl Fn(usize) -> Place,
        (first, bytes): (u64, usize),
        may_start: &Trigger<'static>,
        job: &Job,
    ) -> Result<(), Failure> {
        let mut commands = Vec::with_capacity(self.tree.len());
        for &Edge { from, to } in &self.tree {
            let (source, destination) = (place(from), place(to));
            let [source_bytes, destination_bytes] =
                [source, destination].map(|place| GlobalPtr::<u8>::new(place.memory.add(first)));
            let action = match bytes {
                0 => Command::nothing(),
                _ => Command::copy(source_bytes, destination_bytes, bytes),
            };
            let trigger =
                self.arrived.get(&from).map_or_else(|| may_start.clone(), |arrived| arrived.reaches(round));
            // A place from which others copy is done when they have done so, and no signal may be raised too often.
            let effect = self.arrived.get(&to).map_or(destination.done, |arrived| arrived.remote(job));
            commands.push(action.when(trigger).then(effect.add(1)).then(source.done.add(1)));
        }
        self.post_others(&commands)
    }

    /// Posts other commands.
    pub(super) fn post_others(&self, commands: &[Command]) -> Result<(), Failure> {
        if !commands.is_empty() {
            self.queue.post_many(commands)?;
        }
        Ok(())
    }

    /// Returns the signals of a list whose copies are all done.
    pub(super) fn end(self, signals: &FreeSignals) {
        drop(self.queue);
        self.arrived.into_values().for_each(|arrived| signals.put_back(arrived));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trees_are_those_of_the_paper() {
        let pairs = |tree: Vec<Edge>| tree.iter().map(|edge| (edge.to, edge.from)).collect::<Vec<_>>();
        assert_eq!(pairs(broadcast_tree(7)), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)]);
        assert_eq!(pairs(allgather_tree(7)), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)]);
    }

    #[test]
    fn each_member_but_the_first_gets_the_bytes_once_and_after_its_source() {
        for members in 1..100 {
            for tree in [broadcast_tree(members), allgather_tree(members)] {
                let to: Vec<usize> = tree.iter().map(|edge| edge.to).collect();
                assert_eq!(to, (1..members).collect::<Vec<_>>());
                assert!(tree.iter().all(|edge| edge.from < edge.to));
            }
        }
    }
}
