//! Queues that somebody has to look at, because what this thread just did may let them go on.

use crate::base::Rank;

/// As many as are kept without an allocation.
const AT_HAND: usize = 16;

/// A list of queues without one twice.
#[derive(Default)]
pub(super) struct Todo {
    at_hand: [(u32, u32); AT_HAND],
    count: usize,
    more: Vec<(u32, u32)>,
    /// One whose lease this thread has taken already.
    held: Option<(u32, u32)>,
}

/// A queue to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Errand {
    pub(super) owner: Rank,
    pub(super) queue: u32,
    /// Its lease has been taken.
    pub(super) held: bool,
}

impl Todo {
    /// That queue of that rank.
    #[inline]
    pub(super) fn add(&mut self, owner: Rank, queue: u32) {
        let one = (owner.0, queue);
        if self.at_hand[..self.count].contains(&one) || self.more.contains(&one) {
            return;
        }
        match self.at_hand.get_mut(self.count) {
            Some(place) => (*place, self.count) = (one, self.count + 1),
            None => self.more.push(one),
        }
    }

    /// Whether one more lease may be taken ahead.
    #[inline]
    pub(super) fn may_hold(&self) -> bool {
        self.held.is_none()
    }

    /// That queue of that rank, whose lease has been taken.
    #[inline]
    pub(super) fn hold(&mut self, owner: Rank, queue: u32) {
        self.held = Some((owner.0, queue));
    }

    /// One of them.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Errand> {
        if let Some((owner, queue)) = self.held.take() {
            return Some(Errand { owner: Rank(owner), queue, held: true });
        }
        let (owner, queue) = match self.count.checked_sub(1) {
            Some(last) => {
                self.count = last;
                self.at_hand[last]
            }
            None => self.more.pop()?,
        };
        Some(Errand { owner: Rank(owner), queue, held: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_is_there_once_however_many() {
        let mut todo = Todo::default();
        for round in 0..2 {
            for number in 0..40 {
                todo.add(Rank(number % 3), number);
            }
            let mut taken: Vec<u32> = std::iter::from_fn(|| todo.take()).map(|errand| errand.queue).collect();
            taken.sort_unstable();
            assert_eq!(taken, (0..40).collect::<Vec<_>>(), "round {round}");
        }
    }
}
