//! The ready list: queues that this thread has to run, because an effect that it has performed may release commands
//! there.

use crate::base::Rank;

/// Entries that are kept without an allocation.
const INLINE: usize = 4;

/// Leases that a thread keeps while queues make each other ready, and the number of times in a row that it does so.
const HELD_MAX: usize = 2;
const HOPS_MAX: u32 = 16;

/// A queue: its rank and its number there.
type Name = (u32, u32);

/// A list of queues without duplicates.
#[derive(Default)]
pub(in crate::engine::command_queue) struct ReadyList {
    inline: [Name; INLINE],
    count: usize,
    overflow: Vec<Name>,
    /// Queues whose lease this thread holds.
    held_leases: [Option<Name>; HELD_MAX],
    /// The one of them that is run next.
    next: Option<Name>,
    hops: u32,
}

/// A queue to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine::command_queue) struct ReadyQueue {
    pub(in crate::engine::command_queue) owner: Rank,
    pub(in crate::engine::command_queue) queue: u32,
    /// True if this thread holds its lease.
    pub(in crate::engine::command_queue) held: bool,
}

impl ReadyQueue {
    fn new((owner, queue): Name, held: bool) -> ReadyQueue {
        ReadyQueue { owner: Rank::from_word(owner), queue, held }
    }
}

impl ReadyList {
    /// Adds a queue.
    #[inline]
    pub(in crate::engine::command_queue) fn add(&mut self, owner: Rank, queue: u32) {
        let one = (owner.to_word(), queue);
        if self.inline[..self.count].contains(&one) || self.overflow.contains(&one) {
            return;
        }
        match self.inline.get_mut(self.count) {
            Some(place) => (*place, self.count) = (one, self.count + 1),
            None => self.overflow.push(one),
        }
    }

    /// Makes a queue the next to run, with its lease held: the thread holds it already, or `take` takes it. Returns
    /// false if the lease cannot be taken or the limits above are reached.
    #[inline]
    pub(in crate::engine::command_queue) fn hold_next(
        &mut self,
        owner: Rank,
        queue: u32,
        take: impl FnOnce() -> bool,
    ) -> bool {
        let one = (owner.to_word(), queue);
        if self.next.is_some() || self.hops == HOPS_MAX {
            return self.next == Some(one);
        }
        if !self.held_leases.contains(&Some(one)) {
            let Some(place) = self.held_leases.iter_mut().find(|place| place.is_none()) else { return false };
            if !take() {
                return false;
            }
            *place = Some(one);
        }
        self.hops += 1;
        self.next = Some(one);
        true
    }

    /// Records that the lease of a queue was released. If the queue is the next to run, its lease has to be taken
    /// again.
    pub(in crate::engine::command_queue) fn lease_released(&mut self, owner: Rank, queue: u32) {
        let one = Some((owner.to_word(), queue));
        if self.next == one {
            self.next = None;
            self.add(owner, queue);
        }
        self.held_leases.iter_mut().filter(|place| **place == one).for_each(|place| *place = None);
    }

    /// Removes a queue whose lease this thread holds, so that it can be released. The number of hops starts again at 0.
    pub(in crate::engine::command_queue) fn take_held(&mut self) -> Option<ReadyQueue> {
        self.hops = 0;
        let held = self.held_leases.iter_mut().find_map(Option::take)?;
        Some(ReadyQueue::new(held, true))
    }

    /// Removes the next queue to run.
    #[inline]
    pub(in crate::engine::command_queue) fn take(&mut self) -> Option<ReadyQueue> {
        if let Some(next) = self.next.take() {
            return Some(ReadyQueue::new(next, true));
        }
        let one = match self.count.checked_sub(1) {
            Some(last) => {
                self.count = last;
                self.inline[last]
            }
            None => self.overflow.pop()?,
        };
        Some(ReadyQueue::new(one, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_is_listed_once() {
        let mut ready = ReadyList::default();
        for round in 0..2 {
            for number in 0..40 {
                ready.add(Rank::from_word(number % 3), number);
            }
            let mut order: Vec<u32> = std::iter::from_fn(|| ready.take()).map(|entry| entry.queue).collect();
            order.sort_unstable();
            assert_eq!(order, (0..40).collect::<Vec<_>>(), "round {round}");
        }
    }

    #[test]
    fn a_queue_whose_lease_was_released_is_not_held() {
        let mut ready = ReadyList::default();
        assert!(ready.hold_next(Rank(1), 5, || true) && ready.take().is_some_and(|entry| entry.held));
        assert!(ready.hold_next(Rank(1), 5, || panic!("the lease is held already")));
        ready.lease_released(Rank(1), 5);
        assert_eq!(ready.take(), Some(ReadyQueue { owner: Rank(1), queue: 5, held: false }));
        assert!(ready.take_held().is_none() && ready.take().is_none());
    }

    #[test]
    fn leases_are_kept_for_a_limited_number_of_hops() {
        let mut ready = ReadyList::default();
        let mut taken = 0;
        let mut hold_next = |ready: &mut ReadyList, queue| {
            ready.hold_next(Rank(1), queue, || {
                taken += 1;
                true
            })
        };
        for hop in 0..HOPS_MAX {
            assert!(hold_next(&mut ready, hop % 2));
            assert_eq!(ready.take(), Some(ReadyQueue { owner: Rank(1), queue: hop % 2, held: true }));
        }
        assert!(!hold_next(&mut ready, 0));
        assert_eq!(taken, 2);
        let closed: Vec<u32> = std::iter::from_fn(|| ready.take_held()).map(|entry| entry.queue).collect();
        assert_eq!(closed, [0, 1]);
    }
}
