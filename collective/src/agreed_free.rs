//! Keeps what members have made together, and then dropped, until no member can reach it any more: the memory of plans,
//! and of communicators. What one rank can free when it sees that peers are done is kept in
//! `message/src/deferred_free.rs`; here only all members together know it.
//!
//! All members make such things in the same order, so a thing has the same number on all members. Each member sends one
//! word to all others when they make the next one, or in [quiesce](crate::Communicator::quiesce). The word has a bit
//! for each of 64 things, its *window*. The bit is set if the member no longer needs the thing. The things whose bits
//! all members have set are freed, and the window moves on to the next 64 that are not freed; after the last one comes
//! the first. All members free the same things at the same call, so they have the same window. A thing that lives on
//! costs a bit in each round of windows, and keeps no other.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What members make together and drop one by one.
pub(crate) trait MadeTogether {
    /// Returns true if this member no longer needs it, after the member has dropped it.
    fn is_over(&self) -> bool;
}

/// The plans of a communicator, or the communicators that were split from it, that are not freed.
#[derive(Debug)]
pub(crate) struct AgreedFree<T> {
    /// The number of the next one.
    next: u64,
    /// The smallest number that the window may begin with.
    window: u64,
    all: BTreeMap<u64, Entry<T>>,
    /// Those that are in no window any more, because a member needs them for good. They are freed with what made them.
    lost: Vec<Arc<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    made: Arc<T>,
    /// True if this member has dropped it.
    is_dropped: bool,
}

/// Number of bits in a word.
const WINDOW: usize = u64::BITS as usize;

impl<T> Default for AgreedFree<T> {
    fn default() -> AgreedFree<T> {
        AgreedFree { next: 0, window: 0, all: BTreeMap::new(), lost: Vec::new() }
    }
}

impl<T: MadeTogether> AgreedFree<T> {
    /// Adds one that was made. Returns its number.
    pub(crate) fn enter(&mut self, made: Arc<T>) -> u64 {
        self.next += 1;
        self.all.insert(self.next - 1, Entry { made, is_dropped: false });
        self.next - 1
    }

    /// Marks one as dropped by this member.
    pub(crate) fn take(&mut self, number: u64) {
        if let Some(entry) = self.all.get_mut(&number) {
            entry.is_dropped = true;
        }
    }

    /// Returns the one of that number, unless it was freed.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<T>> {
        self.all.get(&number).map(|entry| &entry.made)
    }

    /// Returns all that this member has not freed, without those that are lost.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.all.values().map(|entry| entry.made.clone()).collect()
    }

    /// Returns all that this member has not freed, with those that are lost.
    pub(crate) fn all_with_lost(&self) -> Vec<Arc<T>> {
        self.all.values().map(|entry| &entry.made).chain(&self.lost).cloned().collect()
    }

    /// Returns true if this member has dropped all and needs none any more.
    pub(crate) fn are_over(&self) -> bool {
        self.lost.iter().all(|made| made.is_over()) && self.all.values().all(Entry::is_over)
    }

    /// Returns true if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns how many windows all make up; at least one.
    pub(crate) fn windows(&self) -> usize {
        self.all.len().div_ceil(WINDOW).max(1)
    }

    /// Returns those of the window, in the order of their bits.
    fn in_window(&self) -> impl Iterator<Item = (u64, &Entry<T>)> {
        let (before, from) = (self.all.range(..self.window), self.all.range(self.window..));
        from.chain(before).take(WINDOW).map(|(&number, entry)| (number, entry))
    }

    fn word_of(&self, is_set: impl Fn(&Entry<T>) -> bool) -> u64 {
        let bits = self.in_window().enumerate().filter(|(_, (_, entry))| is_set(entry));
        bits.fold(0, |word, (bit, _)| word | 1 << bit)
    }

    /// Returns a word with the bits of those that this member has dropped.
    pub(crate) fn dropped_word(&self) -> u64 {
        self.word_of(|entry| entry.is_dropped)
    }

    /// Returns a word with the bits of those that this member has dropped and no longer needs.
    pub(crate) fn word(&self) -> u64 {
        self.word_of(Entry::is_over)
    }

    /// Returns those whose bits are set in a word.
    pub(crate) fn among(&self, word: u64) -> Vec<(u64, Arc<T>)> {
        let of_bits = self.in_window().enumerate().filter(|(bit, _)| word >> bit & 1 != 0);
        of_bits.map(|(_, (number, entry))| (number, entry.made.clone())).collect()
    }

    /// Records that a member needs one for good, so that no later words are about it. All members must record it.
    pub(crate) fn lose(&mut self, number: u64) {
        self.lost.extend(self.all.remove(&number).map(|entry| entry.made));
    }

    /// Takes all out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<T>> + use<T> {
        let (all, lost) = (std::mem::take(&mut self.all), std::mem::take(&mut self.lost));
        all.into_values().map(|entry| entry.made).chain(lost)
    }

    /// Takes the words of all members, returns those that no member needs any more, and moves the window on.
    pub(crate) fn settle(&mut self, words: impl Iterator<Item = u64>) -> Vec<Arc<T>> {
        let over = self.among(words.fold(u64::MAX, |all, word| all & word));
        self.window = self.in_window().last().map_or(0, |(number, _)| number + 1);
        over.iter().for_each(|(number, _)| drop(self.all.remove(number)));
        over.into_iter().map(|(_, made)| made).collect()
    }
}

impl<T: MadeTogether> Entry<T> {
    fn is_over(&self) -> bool {
        self.is_dropped && self.made.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::base::sync::{AtomicBool, Ordering::Relaxed};

    struct Thing(AtomicBool);

    impl MadeTogether for Thing {
        fn is_over(&self) -> bool {
            self.0.load(Relaxed)
        }
    }

    fn thing(is_over: bool) -> Arc<Thing> {
        Arc::new(Thing(AtomicBool::new(is_over)))
    }

    #[test]
    fn things_that_live_on_keep_no_others() {
        // The first 100 of 1,000 live on; the others are dropped at once.
        let mut all: AgreedFree<Thing> = AgreedFree::default();
        for number in 0..1000 {
            let words = [all.word(), u64::MAX];
            all.settle(words.into_iter());
            let entered = all.enter(thing(true));
            assert_eq!(entered, number);
            if number >= 100 {
                all.take(number);
            }
            assert!(all.all.len() <= 100 + 4, "{number}: {} are kept", all.all.len());
        }
        for _ in 0..all.windows() {
            let word = all.word();
            all.settle([word].into_iter());
        }
        assert_eq!((all.all.len(), all.windows(), all.are_over()), (100, 2, false));
        assert!(all.all.keys().copied().eq(0..100));
    }

    #[test]
    fn one_is_freed_when_all_members_need_it_no_longer() {
        let mut all = AgreedFree::default();
        let slow = thing(false);
        let [first, second] = [slow.clone(), thing(true)].map(|thing| all.enter(thing));
        all.take(first);
        assert_eq!((all.dropped_word(), all.word()), (0b01, 0b00));
        slow.0.store(true, Relaxed);
        all.take(second);
        assert_eq!((all.dropped_word(), all.word(), all.are_over()), (0b11, 0b11, true));
        assert_eq!(all.settle([0b11, 0b10].into_iter()).len(), 1, "another member needs the first one");
        slow.0.store(false, Relaxed);
        all.lose(first);
        assert!(
            all.all.is_empty() && !all.are_over(),
            "what is lost is over only if this member needs it no longer"
        );
        slow.0.store(true, Relaxed);
        assert!(all.are_over() && all.all().is_empty() && all.all_with_lost().len() == 1);
    }
}
