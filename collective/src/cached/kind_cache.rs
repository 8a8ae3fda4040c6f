//! Counts the calls of each kind, and keeps something for kinds that are frequent.
//!
//! The order of calls, and values that are equal on all members, decide which kinds have an entry and which entry is
//! evicted. So all members decide alike.

/// Number of first calls of a kind that go by messages.
const BY_MESSAGES: u32 = 3;
/// Most kinds whose calls are counted.
const KINDS_MAX: usize = 32;
/// Most entries.
const ENTRIES_MAX: usize = 128;
/// Most bytes of memory that the entries use on a member, approximately.
const BYTES_MAX: u64 = 64 << 20;

/// What is kept for kinds of calls.
#[derive(Debug)]
pub(crate) struct KindCache<E> {
    /// Number of calls for which the cache could be used.
    calls: u64,
    /// The latest kinds: word, number of calls, and the number of the last call.
    kinds: Vec<(u64, u32, u64)>,
    /// Keys of the entries, when they were last used, and the entries, each with its bytes. An entry is None if the
    /// members cannot have one for its kind.
    keys: Vec<u64>,
    used: Vec<u64>,
    entries: Vec<Option<(u64, E)>>,
}

impl<E> Default for KindCache<E> {
    fn default() -> KindCache<E> {
        KindCache { calls: 0, kinds: Vec::new(), keys: Vec::new(), used: Vec::new(), entries: Vec::new() }
    }
}

impl<E> KindCache<E> {
    /// Counts a call.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.calls += 1;
    }

    /// Counts a call of that kind. Returns true if the cache may now have an entry for the kind.
    pub(crate) fn is_frequent(&mut self, word: u64) -> bool {
        let calls = self.calls;
        if let Some((_, times, last)) = self.kinds.iter_mut().find(|(known, ..)| *known == word) {
            (*times, *last) = (times.saturating_add(1), calls);
            return *times > BY_MESSAGES;
        }
        if self.kinds.len() == KINDS_MAX {
            let oldest = (0..KINDS_MAX).min_by_key(|&at| self.kinds[at].2).unwrap_or(0);
            self.kinds.swap_remove(oldest);
        }
        self.kinds.push((word, 1, calls));
        false
    }

    /// Returns the index of the entry of that key.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        self.keys.iter().position(|&known| known == key)
    }

    /// Returns an entry, which is used now.
    #[inline]
    pub(crate) fn used(&mut self, at: usize) -> Option<&mut E> {
        self.used[at] = self.calls;
        self.at(at)
    }

    #[inline]
    pub(crate) fn at(&mut self, at: usize) -> Option<&mut E> {
        self.entries[at].as_mut().map(|(_, entry)| entry)
    }

    /// Adds an entry that uses `bytes`. Returns its index.
    pub(crate) fn enter(&mut self, key: u64, bytes: u64, entry: Option<E>) -> usize {
        self.keys.push(key);
        self.used.push(self.calls);
        self.entries.push(entry.map(|entry| (bytes, entry)));
        self.keys.len() - 1
    }

    /// Returns true if there is room for an entry that uses `bytes`.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let all: u64 = self.entries.iter().flatten().map(|(bytes, _)| bytes).sum();
        self.keys.len() < ENTRIES_MAX && (all + bytes <= BYTES_MAX || all == 0)
    }

    /// Makes room for an entry that uses `bytes`. Returns the evicted entries.
    pub(crate) fn make_room(&mut self, bytes: u64) -> Vec<E> {
        let mut evicted = Vec::new();
        loop {
            if self.has_room(bytes) {
                return evicted;
            }
            let oldest = (0..self.keys.len()).min_by_key(|&at| self.used[at]).unwrap_or(0);
            self.keys.swap_remove(oldest);
            self.used.swap_remove(oldest);
            evicted.extend(self.entries.swap_remove(oldest).map(|(_, entry)| entry));
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().flatten().map(|(_, entry)| entry)
    }

    /// Returns all entries.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = E> {
        self.entries.into_iter().flatten().map(|(_, entry)| entry)
    }
}
