//! Commands that were read before their trigger was met, each in the list of its signal: by threshold, then in the
//! order of their posts. Only whoever holds the queue's lease touches any of it.

use super::command::Trigger;
use super::encoding::{self, EncodedCommand};
use super::ring::LINE_WORDS;
use crate::segment::GlobalAddress;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const NONE: u32 = u32::MAX;

/// A command that waits.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct TriggeredCommand {
    words: [[AtomicU64; LINE_WORDS]; 2],
    position: AtomicU64,
    /// The next in its list, or among those that are free.
    next: AtomicU32,
}

/// A signal that commands of the queue wait for.
#[repr(C)]
#[derive(Debug)]
pub struct SignalList {
    signal: AtomicU32,
    first: AtomicU32,
    last: AtomicU32,
    _pad: AtomicU32,
    /// Of the first command.
    threshold: AtomicU64,
}

/// How many there are.
#[repr(C)]
#[derive(Debug)]
pub struct TriggeredState {
    /// Signals that are waited for.
    awaited: AtomicU32,
    /// The first place that was used and is free.
    free: AtomicU32,
    /// Places that were never used begin here.
    fresh: AtomicU32,
    /// Commands that wait.
    waiting: AtomicU32,
}

/// The waiting commands of a queue.
#[derive(Clone, Copy, Debug)]
pub struct TriggeredLists<'q> {
    pub(super) books: &'q TriggeredState,
    pub(super) awaited: &'q [SignalList],
    pub(super) parked: &'q [TriggeredCommand],
}

fn behind(a: u64, b: u64) -> bool {
    a.wrapping_sub(b) as i64 > 0
}

impl TriggeredCommand {
    #[inline(always)]
    fn lines(&self) -> EncodedCommand {
        let line = |at: usize| std::array::from_fn(|word| self.words[at][word].load(Relaxed));
        EncodedCommand { words: [line(0), line(1)] }
    }

    fn write(&self, lines: &EncodedCommand, position: u64) {
        for (into, from) in self.words.iter().flatten().zip(lines.words.iter().flatten()) {
            into.store(*from, Relaxed);
        }
        self.position.store(position, Relaxed);
    }

    /// What it copies from, if it is a copy.
    #[inline(always)]
    fn source(&self) -> Option<GlobalAddress> {
        let words = [0, 2].map(|word| self.words[0][word].load(Relaxed));
        encoding::source(words[0], words[1])
    }

    fn threshold(&self) -> u64 {
        self.words[0][1].load(Relaxed)
    }
}

impl TriggeredState {
    /// Nothing waits yet. Once, by whoever makes the queue.
    pub(super) fn begin(&self) {
        self.free.store(NONE, Relaxed);
    }
}

impl<'q> TriggeredLists<'q> {
    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.books.free.load(Relaxed) != NONE || (self.books.fresh.load(Relaxed) as usize) < self.parked.len()
    }

    /// How many commands wait.
    pub fn len(&self) -> u32 {
        self.books.waiting.load(Relaxed)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The triggers of the first command of each list. Read without the lease it is a guess.
    #[inline]
    pub fn triggers(&self) -> impl Iterator<Item = Trigger> + use<'q> {
        let all = (self.books.awaited.load(Relaxed) as usize).min(self.awaited.len());
        let trigger = |one: &SignalList| Trigger {
            signal: one.signal.load(Relaxed),
            threshold: one.threshold.load(Relaxed),
        };
        self.awaited[..all].iter().map(trigger)
    }

    /// Lets a command wait, for which there is room. Whether it is the only one of the queue for that signal.
    pub fn park(&self, lines: &EncodedCommand, trigger: Trigger, position: u64) -> bool {
        let place = self.take_place();
        self.parked[place as usize].write(lines, position);
        self.books.waiting.store(self.len() + 1, Relaxed);
        let all = self.books.awaited.load(Relaxed) as usize;
        let is_it = |one: &&SignalList| one.signal.load(Relaxed) == trigger.signal;
        match self.awaited[..all].iter().find(is_it) {
            Some(list) => {
                self.insert(list, place, trigger.threshold);
                false
            }
            None => {
                let list = &self.awaited[all];
                list.signal.store(trigger.signal, Relaxed);
                list.first.store(place, Relaxed);
                list.last.store(place, Relaxed);
                list.threshold.store(trigger.threshold, Relaxed);
                self.parked[place as usize].next.store(NONE, Relaxed);
                self.books.awaited.store(all as u32 + 1, Relaxed);
                true
            }
        }
    }

    fn take_place(&self) -> u32 {
        let free = self.books.free.load(Relaxed);
        if free != NONE {
            self.books.free.store(self.parked[free as usize].next.load(Relaxed), Relaxed);
            return free;
        }
        let fresh = self.books.fresh.load(Relaxed);
        self.books.fresh.store(fresh + 1, Relaxed);
        fresh
    }

    /// Behind all whose threshold is not greater.
    fn insert(&self, list: &SignalList, place: u32, threshold: u64) {
        let next_of = |place: u32| &self.parked[place as usize].next;
        let threshold_of = |place: u32| self.parked[place as usize].threshold();
        let last = list.last.load(Relaxed);
        if !behind(threshold_of(last), threshold) {
            next_of(last).store(place, Relaxed);
            next_of(place).store(NONE, Relaxed);
            list.last.store(place, Relaxed);
            return;
        }
        let first = list.first.load(Relaxed);
        if behind(threshold_of(first), threshold) {
            next_of(place).store(first, Relaxed);
            list.first.store(place, Relaxed);
            list.threshold.store(threshold, Relaxed);
            return;
        }
        let mut before = first;
        loop {
            let next = next_of(before).load(Relaxed);
            if behind(threshold_of(next), threshold) {
                break next_of(place).store(next, Relaxed);
            }
            before = next;
        }
        next_of(before).store(place, Relaxed);
    }

    /// The first command of the list whose trigger came at that place of [`TriggeredLists::triggers`], and which post it was.
    #[inline(always)]
    pub fn first(&self, at: usize) -> Option<(EncodedCommand, u64)> {
        let parked = self.first_of(at)?;
        Some((parked.lines(), parked.position.load(Relaxed)))
    }

    /// What it copies from. Without the lease that is a guess.
    #[inline(always)]
    pub fn source(&self, at: usize) -> Option<GlobalAddress> {
        self.first_of(at)?.source()
    }

    #[inline(always)]
    fn first_of(&self, at: usize) -> Option<&'q TriggeredCommand> {
        self.parked.get(self.awaited.get(at)?.first.load(Relaxed) as usize)
    }

    /// Takes it out of that list. Whether no other command of the queue waits for that signal any more.
    #[inline(always)]
    pub fn release(&self, at: usize) -> bool {
        let all = self.books.awaited.load(Relaxed) as usize;
        let list = &self.awaited[at];
        let place = list.first.load(Relaxed);
        let next = self.parked[place as usize].next.load(Relaxed);
        if next == NONE {
            self.remove_list(at, all);
        } else {
            list.first.store(next, Relaxed);
            list.threshold.store(self.parked[next as usize].threshold(), Relaxed);
        }
        self.give_back(place);
        next == NONE
    }

    /// Takes that very command out, wherever it is: its signal, and whether no other command waits for that any more.
    pub fn withdraw(&self, position: u64) -> Option<(u32, bool)> {
        let all = self.books.awaited.load(Relaxed) as usize;
        for at in 0..all {
            let list = &self.awaited[at];
            let (mut before, mut place) = (NONE, list.first.load(Relaxed));
            while place != NONE && self.parked[place as usize].position.load(Relaxed) != position {
                (before, place) = (place, self.parked[place as usize].next.load(Relaxed));
            }
            if place == NONE {
                continue;
            }
            let signal = list.signal.load(Relaxed);
            if before == NONE {
                return Some((signal, self.release(at)));
            }
            let next = self.parked[place as usize].next.load(Relaxed);
            self.parked[before as usize].next.store(next, Relaxed);
            if next == NONE {
                list.last.store(before, Relaxed);
            }
            self.give_back(place);
            return Some((signal, false));
        }
        None
    }

    fn remove_list(&self, at: usize, all: usize) {
        let (gone, last) = (&self.awaited[at], &self.awaited[all - 1]);
        gone.signal.store(last.signal.load(Relaxed), Relaxed);
        gone.first.store(last.first.load(Relaxed), Relaxed);
        gone.last.store(last.last.load(Relaxed), Relaxed);
        gone.threshold.store(last.threshold.load(Relaxed), Relaxed);
        self.books.awaited.store(all as u32 - 1, Relaxed);
    }

    #[inline(always)]
    fn give_back(&self, place: u32) {
        let parked = &self.parked[place as usize];
        parked.next.store(self.books.free.load(Relaxed), Relaxed);
        self.books.free.store(place, Relaxed);
        self.books.waiting.store(self.len() - 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::{Action, Command};
    use super::*;

    struct Memory {
        books: TriggeredState,
        awaited: Vec<SignalList>,
        parked: Vec<TriggeredCommand>,
    }

    impl Memory {
        fn new(room: usize) -> Memory {
            let word = || AtomicU32::new(0);
            let books = TriggeredState {
                awaited: word(),
                free: AtomicU32::new(NONE),
                fresh: word(),
                waiting: word(),
            };
            let awaited = || SignalList {
                signal: word(),
                first: word(),
                last: word(),
                _pad: word(),
                threshold: AtomicU64::new(0),
            };
            let line = || std::array::from_fn(|_| AtomicU64::new(0));
            let parked = || TriggeredCommand {
                words: [line(), line()],
                position: AtomicU64::new(0),
                next: AtomicU32::new(0),
            };
            Memory {
                books,
                awaited: (0..room).map(|_| awaited()).collect(),
                parked: (0..room).map(|_| parked()).collect(),
            }
        }

        fn lists(&self) -> TriggeredLists<'_> {
            TriggeredLists { books: &self.books, awaited: &self.awaited, parked: &self.parked }
        }
    }

    fn park(lists: TriggeredLists<'_>, signal: u32, threshold: u64, position: u64) -> bool {
        let trigger = Trigger { signal, threshold };
        let command = Command { trigger: Some(trigger), ..Command::new(Action::Nothing) };
        lists.park(&command.lines(), trigger, position)
    }

    /// The position of the first command for that signal, which waits no more, and whether it was the last one.
    fn release(lists: TriggeredLists<'_>, signal: u32) -> Option<(u64, bool)> {
        let at = lists.triggers().position(|trigger| trigger.signal == signal)?;
        let (_, position) = lists.first(at)?;
        Some((position, lists.release(at)))
    }

    fn released(lists: TriggeredLists<'_>, signal: u32) -> Vec<u64> {
        std::iter::from_fn(|| release(lists, signal)).map(|(position, _)| position).collect()
    }

    #[test]
    fn lower_thresholds_come_first_and_equal_ones_in_the_order_of_their_posts() {
        let memory = Memory::new(8);
        let lists = memory.lists();
        for (position, threshold) in [5, 3, 5, u64::MAX, 4, 3].into_iter().enumerate() {
            assert_eq!(park(lists, 7, threshold, position as u64), position == 0);
        }
        assert_eq!(lists.triggers().collect::<Vec<_>>(), [Trigger { signal: 7, threshold: u64::MAX }]);
        assert_eq!(released(lists, 7), [3, 1, 5, 4, 0, 2]);
        assert!(lists.is_empty() && lists.triggers().next().is_none());
    }

    #[test]
    fn places_are_used_again_and_counted() {
        let memory = Memory::new(2);
        let lists = memory.lists();
        for round in 0..5 {
            assert!(park(lists, 1, round, round) && lists.has_room());
            assert!(park(lists, 2, round, round + 100) && !lists.has_room());
            assert_eq!(release(lists, 1), Some((round, true)));
            assert_eq!(released(lists, 2), [round + 100]);
        }
        assert!(release(lists, 1).is_none());
    }

    #[test]
    fn any_command_can_be_taken_out() {
        for gone in 0..4_u64 {
            let memory = Memory::new(5);
            let lists = memory.lists();
            (0..4).for_each(|position| assert_eq!(park(lists, 3, position / 2, position), position == 0));
            park(lists, 4, 0, 9);
            assert_eq!(lists.withdraw(gone), Some((3, false)));
            assert!(lists.withdraw(gone).is_none());
            park(lists, 3, 1, 7);
            let left: Vec<u64> = (0..4).filter(|&position| position != gone).chain([7]).collect();
            assert_eq!(released(lists, 3), left);
            assert_eq!(lists.withdraw(9), Some((4, true)));
        }
    }
}
