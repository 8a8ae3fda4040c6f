//! Triggered commands: commands that were read before their trigger was met. Each is in the list of its signal, which
//! is ordered by threshold, then by the order of the posts. Only the holder of the queue's lease may write any of it.

use super::command::Trigger;
use super::encoding::{self, EncodedCommand};
use super::ring::LINE_WORDS;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::segment::GlobalAddress;

const NONE: u32 = u32::MAX;

/// A command that waits for its trigger.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct TriggeredCommand {
    words: [[AtomicU64; LINE_WORDS]; 2],
    position: AtomicU64,
    /// Index of the next entry in its list, or in the list of free entries.
    next: AtomicU32,
}

/// The list of commands that wait for one signal.
#[repr(C)]
#[derive(Debug)]
pub struct SignalList {
    signal: AtomicU32,
    first: AtomicU32,
    last: AtomicU32,
    _pad: AtomicU32,
    /// Threshold of the first command.
    threshold: AtomicU64,
}

/// Counters of the triggered commands.
#[repr(C)]
#[derive(Debug)]
pub struct TriggeredState {
    /// Number of signals that commands wait for.
    signals: AtomicU32,
    /// Index of the first free entry among those that were used before.
    free: AtomicU32,
    /// Entries from this index on were never used.
    fresh: AtomicU32,
    /// Number of commands that wait.
    waiting: AtomicU32,
}

/// The triggered commands of a queue.
#[derive(Clone, Copy, Debug)]
pub struct TriggeredLists<'q> {
    pub(super) state: &'q TriggeredState,
    pub(super) signals: &'q [SignalList],
    pub(super) triggered: &'q [TriggeredCommand],
}

fn is_greater(a: u64, b: u64) -> bool {
    a.wrapping_sub(b) as i64 > 0
}

impl TriggeredCommand {
    #[inline(always)]
    fn encoded(&self) -> EncodedCommand {
        let line = |at: usize| std::array::from_fn(|word| self.words[at][word].load(Relaxed));
        EncodedCommand { words: [line(0), line(1)] }
    }

    fn write(&self, encoded: &EncodedCommand, position: u64) {
        for (into, from) in self.words.iter().flatten().zip(encoded.words.iter().flatten()) {
            into.store(*from, Relaxed);
        }
        self.position.store(position, Relaxed);
    }

    /// The source, if it is a copy.
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
    /// Makes the lists empty. Called once, by the rank that makes the queue.
    pub(super) fn begin(&self) {
        self.free.store(NONE, Relaxed);
    }
}

impl<'q> TriggeredLists<'q> {
    /// Returns true if there is room for one more command.
    pub fn has_room(&self) -> bool {
        self.state.free.load(Relaxed) != NONE
            || (self.state.fresh.load(Relaxed) as usize) < self.triggered.len()
    }

    /// Number of commands that wait.
    pub fn len(&self) -> u32 {
        self.state.waiting.load(Relaxed)
    }

    /// Returns true if no command waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The trigger of the first command of each list. Without the lease the values are a guess.
    #[inline]
    pub fn triggers(&self) -> impl Iterator<Item = Trigger> + use<'q> {
        let all = (self.state.signals.load(Relaxed) as usize).min(self.signals.len());
        let trigger = |one: &SignalList| Trigger {
            signal: one.signal.load(Relaxed),
            threshold: one.threshold.load(Relaxed),
        };
        self.signals[..all].iter().map(trigger)
    }

    /// Adds a command. There must be room for it. Returns true if no other command of the queue waits for the signal.
    pub fn add(&self, encoded: &EncodedCommand, trigger: Trigger, position: u64) -> bool {
        let place = self.take_entry();
        self.triggered[place as usize].write(encoded, position);
        self.state.waiting.store(self.len() + 1, Relaxed);
        let all = self.state.signals.load(Relaxed) as usize;
        let is_it = |one: &&SignalList| one.signal.load(Relaxed) == trigger.signal;
        match self.signals[..all].iter().find(is_it) {
            Some(list) => {
                self.insert(list, place, trigger.threshold);
                false
            }
            None => {
                let list = &self.signals[all];
                list.signal.store(trigger.signal, Relaxed);
                list.first.store(place, Relaxed);
                list.last.store(place, Relaxed);
                list.threshold.store(trigger.threshold, Relaxed);
                self.triggered[place as usize].next.store(NONE, Relaxed);
                self.state.signals.store(all as u32 + 1, Relaxed);
                true
            }
        }
    }

    fn take_entry(&self) -> u32 {
        let free = self.state.free.load(Relaxed);
        if free != NONE {
            self.state.free.store(self.triggered[free as usize].next.load(Relaxed), Relaxed);
            return free;
        }
        let fresh = self.state.fresh.load(Relaxed);
        self.state.fresh.store(fresh + 1, Relaxed);
        fresh
    }

    /// Inserts an entry behind all entries whose threshold is not greater.
    fn insert(&self, list: &SignalList, place: u32, threshold: u64) {
        let next_of = |place: u32| &self.triggered[place as usize].next;
        let threshold_of = |place: u32| self.triggered[place as usize].threshold();
        let last = list.last.load(Relaxed);
        if !is_greater(threshold_of(last), threshold) {
            next_of(last).store(place, Relaxed);
            next_of(place).store(NONE, Relaxed);
            list.last.store(place, Relaxed);
            return;
        }
        let first = list.first.load(Relaxed);
        if is_greater(threshold_of(first), threshold) {
            next_of(place).store(first, Relaxed);
            list.first.store(place, Relaxed);
            list.threshold.store(threshold, Relaxed);
            return;
        }
        let mut before = first;
        loop {
            let next = next_of(before).load(Relaxed);
            if is_greater(threshold_of(next), threshold) {
                break next_of(place).store(next, Relaxed);
            }
            before = next;
        }
        next_of(before).store(place, Relaxed);
    }

    /// The first command of list number `at` of [`TriggeredLists::triggers`], and the position of its post.
    #[inline(always)]
    pub fn first(&self, at: usize) -> Option<(EncodedCommand, u64)> {
        let triggered = self.first_of(at)?;
        Some((triggered.encoded(), triggered.position.load(Relaxed)))
    }

    /// The source of the first command of list number `at`, if it is a copy. Without the lease this is a guess.
    #[inline(always)]
    pub fn source(&self, at: usize) -> Option<GlobalAddress> {
        self.first_of(at)?.source()
    }

    #[inline(always)]
    fn first_of(&self, at: usize) -> Option<&'q TriggeredCommand> {
        self.triggered.get(self.signals.get(at)?.first.load(Relaxed) as usize)
    }

    /// Removes the first command of list number `at`. Returns true if no other command of the queue waits for the
    /// signal.
    #[inline(always)]
    pub fn remove_first(&self, at: usize) -> bool {
        let all = self.state.signals.load(Relaxed) as usize;
        let list = &self.signals[at];
        let place = list.first.load(Relaxed);
        let next = self.triggered[place as usize].next.load(Relaxed);
        if next == NONE {
            self.remove_list(at, all);
        } else {
            list.first.store(next, Relaxed);
            list.threshold.store(self.triggered[next as usize].threshold(), Relaxed);
        }
        self.free_entry(place);
        next == NONE
    }

    /// Removes the command that was posted at `position`. Returns its signal, and true if no other command of the queue
    /// waits for that signal.
    pub fn remove(&self, position: u64) -> Option<(u32, bool)> {
        let all = self.state.signals.load(Relaxed) as usize;
        for at in 0..all {
            let list = &self.signals[at];
            let (mut before, mut place) = (NONE, list.first.load(Relaxed));
            while place != NONE && self.triggered[place as usize].position.load(Relaxed) != position {
                (before, place) = (place, self.triggered[place as usize].next.load(Relaxed));
            }
            if place == NONE {
                continue;
            }
            let signal = list.signal.load(Relaxed);
            if before == NONE {
                return Some((signal, self.remove_first(at)));
            }
            let next = self.triggered[place as usize].next.load(Relaxed);
            self.triggered[before as usize].next.store(next, Relaxed);
            if next == NONE {
                list.last.store(before, Relaxed);
            }
            self.free_entry(place);
            return Some((signal, false));
        }
        None
    }

    fn remove_list(&self, at: usize, all: usize) {
        let (gone, last) = (&self.signals[at], &self.signals[all - 1]);
        gone.signal.store(last.signal.load(Relaxed), Relaxed);
        gone.first.store(last.first.load(Relaxed), Relaxed);
        gone.last.store(last.last.load(Relaxed), Relaxed);
        gone.threshold.store(last.threshold.load(Relaxed), Relaxed);
        self.state.signals.store(all as u32 - 1, Relaxed);
    }

    #[inline(always)]
    fn free_entry(&self, place: u32) {
        let triggered = &self.triggered[place as usize];
        triggered.next.store(self.state.free.load(Relaxed), Relaxed);
        self.state.free.store(place, Relaxed);
        self.state.waiting.store(self.len() - 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::{Action, Command};
    use super::*;

    struct Memory {
        state: TriggeredState,
        signals: Vec<SignalList>,
        triggered: Vec<TriggeredCommand>,
    }

    impl Memory {
        fn new(room: usize) -> Memory {
            let word = || AtomicU32::new(0);
            let state = TriggeredState {
                signals: word(),
                free: AtomicU32::new(NONE),
                fresh: word(),
                waiting: word(),
            };
            let signals = || SignalList {
                signal: word(),
                first: word(),
                last: word(),
                _pad: word(),
                threshold: AtomicU64::new(0),
            };
            let line = || std::array::from_fn(|_| AtomicU64::new(0));
            let triggered = || TriggeredCommand {
                words: [line(), line()],
                position: AtomicU64::new(0),
                next: AtomicU32::new(0),
            };
            Memory {
                state,
                signals: (0..room).map(|_| signals()).collect(),
                triggered: (0..room).map(|_| triggered()).collect(),
            }
        }

        fn lists(&self) -> TriggeredLists<'_> {
            TriggeredLists { state: &self.state, signals: &self.signals, triggered: &self.triggered }
        }
    }

    fn add(lists: TriggeredLists<'_>, signal: u32, threshold: u64, position: u64) -> bool {
        let trigger = Trigger { signal, threshold };
        let command = Command { trigger: Some(trigger), ..Command::new(Action::Nothing) };
        lists.add(&command.encode(), trigger, position)
    }

    /// Removes the first command for a signal. Returns its position, and true if it was the last command for the
    /// signal.
    fn remove_first(lists: TriggeredLists<'_>, signal: u32) -> Option<(u64, bool)> {
        let at = lists.triggers().position(|trigger| trigger.signal == signal)?;
        let (_, position) = lists.first(at)?;
        Some((position, lists.remove_first(at)))
    }

    fn released(lists: TriggeredLists<'_>, signal: u32) -> Vec<u64> {
        std::iter::from_fn(|| remove_first(lists, signal)).map(|(position, _)| position).collect()
    }

    #[test]
    fn lists_are_ordered_by_threshold_then_by_post() {
        let memory = Memory::new(8);
        let lists = memory.lists();
        for (position, threshold) in [5, 3, 5, u64::MAX, 4, 3].into_iter().enumerate() {
            assert_eq!(add(lists, 7, threshold, position as u64), position == 0);
        }
        assert_eq!(lists.triggers().collect::<Vec<_>>(), [Trigger { signal: 7, threshold: u64::MAX }]);
        assert_eq!(released(lists, 7), [3, 1, 5, 4, 0, 2]);
        assert!(lists.is_empty() && lists.triggers().next().is_none());
    }

    #[test]
    fn entries_are_reused_and_counted() {
        let memory = Memory::new(2);
        let lists = memory.lists();
        for round in 0..5 {
            assert!(add(lists, 1, round, round) && lists.has_room());
            assert!(add(lists, 2, round, round + 100) && !lists.has_room());
            assert_eq!(remove_first(lists, 1), Some((round, true)));
            assert_eq!(released(lists, 2), [round + 100]);
        }
        assert!(remove_first(lists, 1).is_none());
    }

    #[test]
    fn any_command_can_be_removed() {
        for gone in 0..4_u64 {
            let memory = Memory::new(5);
            let lists = memory.lists();
            (0..4).for_each(|position| assert_eq!(add(lists, 3, position / 2, position), position == 0));
            add(lists, 4, 0, 9);
            assert_eq!(lists.remove(gone), Some((3, false)));
            assert!(lists.remove(gone).is_none());
            add(lists, 3, 1, 7);
            let left: Vec<u64> = (0..4).filter(|&position| position != gone).chain([7]).collect();
            assert_eq!(released(lists, 3), left);
            assert_eq!(lists.remove(9), Some((4, true)));
        }
    }
}
