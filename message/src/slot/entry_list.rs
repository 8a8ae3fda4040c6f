//! A list of directory entries that all ranks search and prepend to, and from which the rank of the directory takes
//! entries out. Free entries are in a list of their own, from which any rank takes the first.
//!
//! A head is one word: `changes:32, first:32`. Each change of a list changes the count.
//!
//! Only one thread takes entries out of a list at a time. First it makes the previous entry point to the next one, or
//! changes the head. Then it counts the change in the head. Only then does it free the entry. Meanwhile another rank
//! may be searching the list and have reached the entry, whose contents and successor may then become those of another
//! list. That rank reads the head again after its search, finds it changed, and repeats the search. If its search finds
//! nothing and it prepends an entry, its compare-and-swap fails, because the head has changed. So a key is in a list at
//! most once. SYNC directory-head

use crate::slot::arena::next_head;
use crate::slot::directory::{DirectoryEntry, DirectoryKey};
use crate::slot::ref_count::RefCount;

/// One of the two heads that a rank accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Head {
    Used,
    Free,
}

/// Access to a list and to the list of free entries. Each function is one access, which is atomic for heads and for the
/// single words of an entry.
pub(crate) trait ListMemory {
    type Error;

    fn head(&self, which: Head) -> Result<u64, Self::Error>;

    /// Replaces a head by `new` if it is `expected`. Returns the value found.
    fn exchange_head(&self, which: Head, expected: u64, new: u64) -> Result<u64, Self::Error>;

    fn contents(&self, entry: u32) -> Result<DirectoryEntry, Self::Error>;

    /// Writes an entry that is in no list.
    fn write(&self, entry: u32, contents: DirectoryEntry) -> Result<(), Self::Error>;

    fn set_next(&self, entry: u32, next: u32) -> Result<(), Self::Error>;

    /// Allocates an entry that has never been used.
    fn fresh(&self) -> Result<u32, Self::Error>;
}

/// The entry of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FoundEntry {
    pub(crate) entry: u32,
    /// The reference count of the entry, if this rank has inserted it.
    pub(crate) inserted: Option<RefCount>,
    /// An entry that this rank has made and freed again, because another rank inserted the key first. The units in its
    /// reference count are not freed yet.
    pub(crate) unused: Option<(u32, RefCount)>,
}

/// Finds the entry of a key, or inserts one. `make` gets the number of a new entry and its generation, and returns its
/// reference count.
pub(crate) fn find_or_insert<M: ListMemory>(
    memory: &M,
    key: DirectoryKey,
    make: impl Fn(u32, u32) -> Result<RefCount, M::Error>,
) -> Result<FoundEntry, M::Error> {
    let mut made = None;
    loop {
        let (head, found) = search(memory, key)?;
        if let Some(entry) = found {
            if let Some((entry, _)) = made {
                free(memory, entry)?;
            }
            return Ok(FoundEntry { entry, inserted: None, unused: made });
        }
        let (entry, ref_count) = match made {
            Some(made) => made,
            None => {
                let (entry, generation) = take(memory)?;
                match make(entry, generation) {
                    Ok(ref_count) => *made.insert((entry, ref_count)),
                    Err(error) => return free(memory, entry).and(Err(error)),
                }
            }
        };
        memory.write(entry, DirectoryEntry { key, ref_count, next: head as u32 })?;
        if memory.exchange_head(Head::Used, head, next_head(head, entry))? == head {
            return Ok(FoundEntry { entry, inserted: Some(ref_count), unused: None });
        }
    }
}

/// Searches the entry of a key. Returns the head of the list that was searched, and the number of the entry.
fn search<M: ListMemory>(memory: &M, key: DirectoryKey) -> Result<(u64, Option<u32>), M::Error> {
    loop {
        let head = memory.head(Head::Used)?;
        let (mut entry, mut found) = (head as u32, None);
        while entry != 0 && found.is_none() {
            let contents = memory.contents(entry)?;
            found = (contents.key == key).then_some(entry);
            entry = contents.next;
        }
        if memory.head(Head::Used)? == head {
            return Ok((head, found));
        }
    }
}

/// Takes an entry out of the list and frees it. Only for the rank of the directory, one thread at a time.
pub(crate) fn remove<M: ListMemory>(memory: &M, entry: u32) -> Result<(), M::Error> {
    let next = memory.contents(entry)?.next;
    loop {
        let head = memory.head(Head::Used)?;
        let mut first = head as u32;
        if first == entry {
            first = next;
        } else {
            // In a later round of this loop, an earlier round may have changed the previous entry.
            let mut before = first;
            while before != 0 {
                let after = memory.contents(before)?.next;
                if after == entry {
                    memory.set_next(before, next)?;
                    break;
                }
                before = after;
            }
        }
        if memory.exchange_head(Head::Used, head, next_head(head, first))? == head {
            return free(memory, entry);
        }
    }
}

/// Allocates an entry. Returns the entry with its generation, which continues from that of its last use.
fn take<M: ListMemory>(memory: &M) -> Result<(u32, u32), M::Error> {
    let mut head = memory.head(Head::Free)?;
    while head as u32 != 0 {
        let entry = head as u32;
        let contents = memory.contents(entry)?;
        let found = memory.exchange_head(Head::Free, head, next_head(head, contents.next))?;
        if found == head {
            return Ok((entry, contents.ref_count.generation));
        }
        head = found;
    }
    Ok((memory.fresh()?, 0))
}

/// Frees an entry that is in no list.
fn free<M: ListMemory>(memory: &M, entry: u32) -> Result<(), M::Error> {
    let mut head = memory.head(Head::Free)?;
    loop {
        memory.set_next(entry, head as u32)?;
        let found = memory.exchange_head(Head::Free, head, next_head(head, entry))?;
        if found == head {
            return Ok(());
        }
        head = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, RandomState};

    fn key(context: u64) -> DirectoryKey {
        DirectoryKey { context, higher: 1, bank: 0 }
    }

    /// An access of a rank in the model. To read or write the contents of an entry takes two accesses.
    #[derive(Clone, Copy, Debug)]
    enum Access {
        Head(Head),
        Exchange(Head, u64, u64),
        Key(u32),
        Next(u32),
        Write(u32, DirectoryEntry),
        SetNext(u32, u32),
        Fresh,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    enum Seen {
        Word(u64),
        Entry(DirectoryEntry),
    }

    /// The calls that a rank makes, in order.
    #[derive(Clone, Copy, Debug)]
    enum Call {
        Open(u64),
        Remove(u32),
    }

    struct Stopped;

    /// A rank that runs up to the first access for which it has no result yet. The model runs it again from the start
    /// for each further result.
    struct Rank<'a> {
        results: Cell<&'a [Seen]>,
        pending: Cell<Option<Access>>,
    }

    impl Rank<'_> {
        fn access(&self, access: Access) -> Result<Seen, Stopped> {
            if let Some((&first, rest)) = self.results.get().split_first() {
                self.results.set(rest);
                return Ok(first);
            }
            self.pending.set(self.pending.get().or(Some(access)));
            Err(Stopped)
        }

        fn word(&self, access: Access) -> Result<u64, Stopped> {
            match self.access(access)? {
                Seen::Word(word) => Ok(word),
                Seen::Entry(entry) => unreachable!("{entry:?}"),
            }
        }

        /// Returns the entries that the calls have opened, in order, and whether all calls have returned.
        fn run(&self, calls: &[Call]) -> (Vec<(u64, u32)>, bool) {
            let mut opened = Vec::new();
            for &call in calls {
                let done = match call {
                    Call::Remove(entry) => remove(self, entry).is_ok(),
                    Call::Open(context) => {
                        let make = |_, generation| Ok(RefCount::unopened(generation));
                        let found = find_or_insert(self, key(context), make);
                        found.map(|found| opened.push((context, found.entry))).is_ok()
                    }
                };
                if !done {
                    return (opened, false);
                }
            }
            (opened, true)
        }
    }

    impl ListMemory for Rank<'_> {
        type Error = Stopped;

        fn head(&self, which: Head) -> Result<u64, Stopped> {
            self.word(Access::Head(which))
        }

        fn exchange_head(&self, which: Head, expected: u64, new: u64) -> Result<u64, Stopped> {
            self.word(Access::Exchange(which, expected, new))
        }

        fn contents(&self, entry: u32) -> Result<DirectoryEntry, Stopped> {
            let Seen::Entry(contents) = self.access(Access::Key(entry))? else { unreachable!() };
            Ok(DirectoryEntry { next: self.word(Access::Next(entry))? as u32, ..contents })
        }

        fn write(&self, entry: u32, contents: DirectoryEntry) -> Result<(), Stopped> {
            self.access(Access::Write(entry, contents)).map(drop)
        }

        fn set_next(&self, entry: u32, next: u32) -> Result<(), Stopped> {
            self.access(Access::SetNext(entry, next)).map(drop)
        }

        fn fresh(&self) -> Result<u32, Stopped> {
            self.word(Access::Fresh).map(|entry| entry as u32)
        }
    }

    /// The shared memory, and the results given to each rank.
    #[derive(Clone, PartialEq, Eq, Hash, Default)]
    struct Model {
        heads: [u64; 2],
        entries: Vec<DirectoryEntry>,
        results: Vec<Vec<Seen>>,
    }

    impl Model {
        /// Makes a list with an entry for each of these contexts, the newest last, and a model of `ranks` ranks.
        fn with(contexts: &[u64], ranks: usize) -> Model {
            let entry = |(number, &context): (usize, &u64)| {
                let ref_count = RefCount::unopened(0);
                DirectoryEntry { key: key(context), ref_count, next: number as u32 }
            };
            let entries = contexts.iter().enumerate().map(entry).collect();
            Model { heads: [contexts.len() as u64, 0], entries, results: vec![Vec::new(); ranks] }
        }

        fn entry(&mut self, number: u32) -> &mut DirectoryEntry {
            &mut self.entries[number as usize - 1]
        }

        fn result(&mut self, access: Access, counts: bool) -> Seen {
            match access {
                Access::Head(which) => Seen::Word(self.heads[which as usize]),
                Access::Exchange(which, expected, new) => {
                    let found = self.heads[which as usize];
                    let new = if counts || which == Head::Free { new } else { u64::from(new as u32) };
                    self.heads[which as usize] = if found == expected { new } else { found };
                    Seen::Word(found)
                }
                Access::Key(number) => Seen::Entry(*self.entry(number)),
                Access::Next(number) => Seen::Word(self.entry(number).next.into()),
                Access::Write(number, contents) => {
                    *self.entry(number) = contents;
                    Seen::Word(0)
                }
                Access::SetNext(number, next) => {
                    self.entry(number).next = next;
                    Seen::Word(0)
                }
                Access::Fresh => {
                    self.entries.push(DirectoryEntry {
                        key: key(0),
                        ref_count: RefCount::unopened(0),
                        next: 0,
                    });
                    Seen::Word(self.entries.len() as u64)
                }
            }
        }

        fn of_list(&self, which: Head) -> Vec<u32> {
            let mut numbers = vec![self.heads[which as usize] as u32];
            while let Some(&last) = numbers.last().filter(|&&last| last != 0 && numbers.len() < 20) {
                numbers.push(self.entries[last as usize - 1].next);
            }
            numbers.retain(|&number| number != 0);
            numbers
        }

        /// Checks a model in which all calls have returned: each key has one entry, and the ranks have got that entry.
        fn is_right(&self, opened: &[(u64, u32)], contexts: &HashSet<u64>) -> bool {
            let (used, free) = (self.of_list(Head::Used), self.of_list(Head::Free));
            let of_entry = |&number: &u32| self.entries[number as usize - 1].key.context;
            let keys: HashSet<u64> = used.iter().map(of_entry).collect();
            let all: HashSet<&u32> = used.iter().chain(&free).collect();
            keys == *contexts
                && keys.len() == used.len()
                && all.len() == used.len() + free.len()
                && opened.iter().all(|&(context, entry)| {
                    used.contains(&entry) && self.entries[entry as usize - 1].key.context == context
                })
        }
    }

    /// Explores all orders of the accesses of all ranks. Returns the number of states, or the first wrong end.
    fn explore(first: Model, calls: &[&[Call]], left: &[u64], counts: bool) -> Result<usize, String> {
        let (mut seen, mut open) = (HashSet::new(), vec![first]);
        let (hash, left) = (RandomState::new(), left.iter().copied().collect());
        while let Some(model) = open.pop() {
            let mut opened = Vec::new();
            let mut are_over = true;
            for (rank, calls) in calls.iter().enumerate() {
                let run = Rank { results: Cell::new(&model.results[rank]), pending: Cell::new(None) };
                let (entries, is_over) = run.run(calls);
                opened.extend(entries);
                are_over &= is_over;
                if let Some(access) = run.pending.get() {
                    let mut next = model.clone();
                    let result = next.result(access, counts);
                    next.results[rank].push(result);
                    // Stop following a search that is repeated without end.
                    if next.results[rank].len() < 60 && seen.insert(hash.hash_one(&next)) {
                        open.push(next);
                    }
                }
            }
            if are_over && !model.is_right(&opened, &left) {
                return Err(format!("{opened:?}, heads {:x?}, {:?}", model.heads, model.entries));
            }
        }
        Ok(seen.len())
    }

    #[test]
    fn a_key_has_one_entry_in_all_orders() {
        use Call::{Open, Remove};
        /// Each case: the contexts of a list, the calls of each rank, and the contexts that remain.
        type Scenario<'s> = (&'s [u64], &'s [&'s [Call]], &'s [u64]);
        let all: [Scenario; 4] = [
            // Both ranks of a pair open a bank while an entry is taken out.
            (&[1], &[&[Remove(1), Open(2)], &[Open(2)]], &[2]),
            // A rank searches past an entry that is used again at the head.
            (&[2, 1], &[&[Remove(2), Open(3)], &[Open(2)]], &[2, 3]),
            // Entries inside the list are taken out, while others are prepended.
            (&[1, 2, 3], &[&[Remove(2), Remove(1)], &[Open(4), Open(1 << 40)]], &[3, 4, 1 << 40]),
            (&[1], &[&[Remove(1)], &[Open(2)], &[Open(2)]], &[2]),
        ];
        for (contexts, calls, left) in all {
            let explored = explore(Model::with(contexts, calls.len()), calls, left, true);
            assert!(explored.as_ref().is_ok_and(|&states| states > 100), "{calls:?}: {explored:?}");
        }
    }

    #[test]
    fn heads_without_counts_of_changes_are_found_out() {
        use Call::{Open, Remove};
        let calls: [&[Call]; 2] = [&[Remove(2), Open(3)], &[Open(2)]];
        assert!(explore(Model::with(&[2, 1], 2), &calls, &[2, 3], false).is_err());
    }
}
