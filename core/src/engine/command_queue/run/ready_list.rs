//! Queues that somebody has to look at, because what this thread just did may let them go on.

use crate::base::Rank;

/// As many as are kept without an allocation.
const AT_HAND: usize = 4;

/// Leases that are kept while queues let each other go on, and how many commands' worth of that is enough at a time.
const OPEN: usize = 2;
const HOPS_MAX: u32 = 16;

/// A queue by its rank and its number there.
type Name = (u32, u32);

/// A list of queues without one twice.
#[derive(Default)]
pub(in crate::engine::command_queue) struct ReadyList {
    at_hand: [Name; AT_HAND],
    count: usize,
    more: Vec<Name>,
    /// Those of which this thread has the lease.
    open: [Option<Name>; OPEN],
    /// The one of them that is to be looked at next.
    next: Option<Name>,
    hops: u32,
}

/// A queue to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine::command_queue) struct ReadyQueue {
    pub(in crate::engine::command_queue) owner: Rank,
    pub(in crate::engine::command_queue) queue: u32,
    /// This thread has its lease.
    pub(in crate::engine::command_queue) held: bool,
}

impl ReadyQueue {
    fn new((owner, queue): Name, held: bool) -> ReadyQueue {
        ReadyQueue { owner: Rank(owner), queue, held }
    }
}

impl ReadyList {
    /// That queue of that rank.
    #[inline]
    pub(in crate::engine::command_queue) fn add(&mut self, owner: Rank, queue: u32) {
        let one = (owner.0, queue);
        if self.at_hand[..self.count].contains(&one) || self.more.contains(&one) {
            return;
        }
        match self.at_hand.get_mut(self.count) {
            Some(place) => (*place, self.count) = (one, self.count + 1),
            None => self.more.push(one),
        }
    }

    /// That queue is to be looked at next, with its lease in hand: it is there already, or `take` takes it. False: not
    /// so, or there has been enough of that.
    #[inline]
    pub(in crate::engine::command_queue) fn hold(
        &mut self,
        owner: Rank,
        queue: u32,
        take: impl FnOnce() -> bool,
    ) -> bool {
        let one = (owner.0, queue);
        if self.next.is_some() || self.hops == HOPS_MAX {
            return self.next == Some(one);
        }
        if !self.open.contains(&Some(one)) {
            let Some(place) = self.open.iter_mut().find(|place| place.is_none()) else { return false };
            if !take() {
                return false;
            }
            *place = Some(one);
        }
        self.hops += 1;
        self.next = Some(one);
        true
    }

    /// The lease of that queue was given back. If it was to be looked at next, its lease has to be taken for that.
    pub(in crate::engine::command_queue) fn let_go(&mut self, owner: Rank, queue: u32) {
        let one = Some((owner.0, queue));
        if self.next == one {
            self.next = None;
            self.add(owner, queue);
        }
        self.open.iter_mut().filter(|place| **place == one).for_each(|place| *place = None);
    }

    /// One of which this thread has the lease, to be given back. Hops may begin anew after that.
    pub(in crate::engine::command_queue) fn close(&mut self) -> Option<ReadyQueue> {
        self.hops = 0;
        let open = self.open.iter_mut().find_map(Option::take)?;
        Some(ReadyQueue::new(open, true))
    }

    /// One to look at.
    #[inline]
    pub(in crate::engine::command_queue) fn take(&mut self) -> Option<ReadyQueue> {
        if let Some(next) = self.next.take() {
            return Some(ReadyQueue::new(next, true));
        }
        let one = match self.count.checked_sub(1) {
            Some(last) => {
                self.count = last;
                self.at_hand[last]
            }
            None => self.more.pop()?,
        };
        Some(ReadyQueue::new(one, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_is_there_once_however_many() {
        let mut todo = ReadyList::default();
        for round in 0..2 {
            for number in 0..40 {
                todo.add(Rank(number % 3), number);
            }
            let mut taken: Vec<u32> = std::iter::from_fn(|| todo.take()).map(|errand| errand.queue).collect();
            taken.sort_unstable();
            assert_eq!(taken, (0..40).collect::<Vec<_>>(), "round {round}");
        }
    }

    #[test]
    fn a_queue_that_was_let_go_is_not_held() {
        let mut todo = ReadyList::default();
        assert!(todo.hold(Rank(1), 5, || true) && todo.take().is_some_and(|errand| errand.held));
        assert!(todo.hold(Rank(1), 5, || panic!("it is there already")));
        todo.let_go(Rank(1), 5);
        assert_eq!(todo.take(), Some(ReadyQueue { owner: Rank(1), queue: 5, held: false }));
        assert!(todo.close().is_none() && todo.take().is_none());
    }

    #[test]
    fn leases_are_kept_until_there_has_been_enough() {
        let mut todo = ReadyList::default();
        let mut taken = 0;
        let mut hold = |todo: &mut ReadyList, queue| {
            todo.hold(Rank(1), queue, || {
                taken += 1;
                true
            })
        };
        for hop in 0..HOPS_MAX {
            assert!(hold(&mut todo, hop % 2));
            assert_eq!(todo.take(), Some(ReadyQueue { owner: Rank(1), queue: hop % 2, held: true }));
        }
        assert!(!hold(&mut todo, 0));
        assert_eq!(taken, 2);
        let closed: Vec<u32> = std::iter::from_fn(|| todo.close()).map(|errand| errand.queue).collect();
        assert_eq!(closed, [0, 1]);
    }
}
