//! The table of a job's handlers, which is equal on all ranks.

use super::active_messages::CallContext;
use super::deferred_list::ENTRIES;
use crate::base::Cause;
use crate::queue::directory::LEVELS_MAX;
use crate::queue::handler_call::HANDLERS_MAX;
use crate::queue::inline_data::Inline;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most levels of calls that a call may lead to. Each rank has a call queue for each level.
const DEPTH_MAX: usize = LEVELS_MAX - 1;
/// Most calls and commands that one run of a handler may post.
const POSTS_MAX: usize = 64;
const _: () = assert!(ENTRIES >= 2 * POSTS_MAX);

/// A function of the program that other ranks may call. It may panic. It must not wait.
pub trait Handler: Send + Sync {
    /// Runs the handler on `args`. It stores its return value in `reply`, which is empty before.
    fn run(&self, call: &CallContext<'_>, args: &[u8], reply: &mut Inline) -> Result<(), Cause>;
}

/// What a handler takes or returns: one value or any number of values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ValueShape {
    /// Bytes of a value.
    pub bytes: usize,
    /// True for any number of values.
    pub is_slice: bool,
    /// What the type of the value is called. A type of the program has a name by which ranks that run different
    /// programs do not know it, so its name says its size only.
    pub name: String,
}

impl ValueShape {
    #[inline]
    fn agrees(&self, len: u64) -> bool {
        let bytes = self.bytes as u64;
        if self.is_slice { bytes > 0 && len.is_multiple_of(bytes) } else { len == bytes }
    }
}

impl fmt::Display for ValueShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_slice { write!(f, "[{}]", self.name) } else { f.write_str(&self.name) }
    }
}

/// A handler under its name.
pub struct HandlerEntry {
    /// Its name. All fields but `key` and `handler` are equal on all ranks.
    pub name: &'static str,
    /// By what callers in this process find its number: a hash of its name and its types.
    pub key: u64,
    /// What it takes.
    pub takes: ValueShape,
    /// What it returns.
    pub returns: ValueShape,
    /// Number of levels of calls that one call of it may lead to.
    pub depth: usize,
    /// Number of calls and commands that one run of it may post.
    pub posts_max: usize,
    /// The function.
    pub handler: Box<dyn Handler>,
}

impl fmt::Debug for HandlerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handler {}", self.name)
    }
}

/// The handlers of a job. The index is the number of a handler.
#[derive(Debug, Default)]
pub struct HandlerTable {
    entries: Vec<HandlerEntry>,
    index: KeyIndex,
}

/// The table of a job without handlers.
pub(in crate::engine) static NO_HANDLERS: HandlerTable =
    HandlerTable { entries: Vec::new(), index: KeyIndex { words: Vec::new(), mask: 0 } };

/// Finds the number of a handler by its key. A word holds a key and, in the lowest byte, a number; 0 is no word. A key
/// is in the first free place from the place on that its bits name.
#[derive(Debug, Default)]
struct KeyIndex {
    words: Vec<u64>,
    mask: usize,
}

const NUMBER_BITS: u32 = 8;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

impl KeyIndex {
    /// `keys` are the keys by number. Fails with the numbers of two handlers that have the same key.
    fn new(keys: impl ExactSizeIterator<Item = u64>) -> Result<KeyIndex, (usize, usize)> {
        let len = (4 * keys.len()).next_power_of_two();
        let mut index = KeyIndex { words: vec![0; len], mask: len - 1 };
        for (number, key) in keys.enumerate() {
            if let Some(other) = index.find(key) {
                return Err((usize::from(other), number));
            }
            let free = (KeyIndex::first(key)..).map(|place| place & index.mask);
            let free = free.into_iter().find(|&place| index.words[place] == 0);
            index.words[free.unwrap_or(0)] = KeyIndex::key_bits(key) | number as u64;
        }
        Ok(index)
    }

    /// The key as it is in a word, which is never 0.
    #[inline(always)]
    const fn key_bits(key: u64) -> u64 {
        key & !NUMBER | 1 << 63
    }

    #[inline(always)]
    const fn first(key: u64) -> usize {
        (key >> NUMBER_BITS) as usize
    }

    #[inline(always)]
    fn find(&self, key: u64) -> Option<u8> {
        for place in KeyIndex::first(key).. {
            let word = *self.words.get(place & self.mask)?;
            if word & !NUMBER == KeyIndex::key_bits(key) {
                return Some((word & NUMBER) as u8);
            }
            if word == 0 {
                return None;
            }
        }
        None
    }
}

impl HandlerTable {
    /// Makes a table of these handlers.
    ///
    /// Errors: there are too many; a name is empty or used twice; a handler posts more than is allowed.
    pub fn new(entries: Vec<HandlerEntry>) -> Result<HandlerTable, Cause> {
        let wrong = |text: String| Err(Cause::Argument(text));
        if entries.len() > HANDLERS_MAX {
            return wrong(format!("{} handlers: a job has at most {HANDLERS_MAX}", entries.len()));
        }
        for (at, entry) in entries.iter().enumerate() {
            let HandlerEntry { name, depth, posts_max, .. } = entry;
            if name.is_empty() {
                return wrong("a handler without a name".into());
            }
            if entries[..at].iter().any(|other| other.name == *name) {
                return wrong(format!("two handlers have the name {name:?}"));
            }
            if *depth > DEPTH_MAX || *posts_max > POSTS_MAX {
                let most = format!("at most {POSTS_MAX} times, {DEPTH_MAX} levels deep");
                return wrong(format!(
                    "handler {name:?} posts {posts_max} times in a run, {depth} levels deep: {most}"
                ));
            }
        }
        match KeyIndex::new(entries.iter().map(|entry| entry.key)) {
            Ok(index) => Ok(HandlerTable { entries, index }),
            Err((one, other)) => {
                let [one, other] = [one, other].map(|number| &entries[number].name);
                wrong(format!(
                    "the names {one:?} and {other:?} have the same hash: give one of them another name"
                ))
            }
        }
    }

    /// Returns true if there are no handlers.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A number that differs if the handlers of two ranks differ.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.entries)
    }

    /// The fingerprint of one handler; 0: there is no handler with that number.
    pub fn fingerprint_of(&self, number: usize) -> u64 {
        self.entries.get(number).map_or(0, |entry| fingerprint(std::slice::from_ref(entry)))
    }

    /// Describes, for an error text, everything of one handler that has to be equal on all ranks.
    pub fn described(&self, number: usize) -> String {
        let Some(HandlerEntry { name, takes, returns, depth, posts_max, .. }) = self.entries.get(number)
        else {
            return "none".into();
        };
        let calls = format!("follow_ups({depth}, {posts_max})");
        format!("{name:?}, which takes {takes}, returns {returns}, has {calls}")
    }

    /// The largest depth of a handler.
    pub(super) fn depth(&self) -> usize {
        self.entries.iter().map(|entry| entry.depth).max().unwrap_or(0)
    }

    /// Returns true if any handler may post.
    pub(super) fn posts(&self) -> bool {
        self.entries.iter().any(|entry| entry.posts_max > 0)
    }

    /// The handler with that number.
    #[inline]
    pub(super) fn get(&self, number: u8) -> Option<&HandlerEntry> {
        self.entries.get(usize::from(number))
    }

    /// Adds the name of a handler to a cause that holds its number.
    pub(in crate::engine) fn name_handler(&self, cause: &mut Cause) {
        match cause {
            Cause::Poisoned { cause, .. } | Cause::Failed { cause, .. } => self.name_handler(cause),
            Cause::HandlerFailed { handler, name, .. } => {
                if let Some(entry) = self.get(*handler) {
                    *name = entry.name.into();
                }
            }
            _ => {}
        }
    }

    /// The handler with that number. Fails if there is none or if it does not take `len` bytes.
    #[inline]
    pub(in crate::engine) fn check(&self, number: u8, len: u64) -> Result<&HandlerEntry, Cause> {
        let none = || Cause::Argument(format!("there is no handler {number}: {self}"));
        let entry = self.get(number).ok_or_else(none)?;
        if entry.takes.agrees(len) {
            return Ok(entry);
        }
        let HandlerEntry { name, takes, .. } = entry;
        Err(Cause::Argument(format!("handler {name:?} takes {takes}; the call has {len} bytes")))
    }

    /// The number of the handler with that key; `None` if there is none.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<u8> {
        self.index.find(key)
    }

    /// Says why there is no handler with that name and the types of the handler that is called.
    #[cold]
    pub fn not_found(&self, name: &str) -> Cause {
        Cause::Argument(match self.entries.iter().position(|entry| entry.name == name) {
            None => format!("there is no handler {name:?}: {self}"),
            Some(number) => {
                format!("the call is of a handler with other types; the job has {}", self.described(number))
            }
        })
    }
}

fn fingerprint(entries: &[HandlerEntry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for HandlerEntry { name, takes, returns, depth, posts_max, .. } in entries {
        (name, takes, returns, depth, posts_max).hash(&mut hasher);
    }
    hasher.finish()
}

impl fmt::Display for HandlerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("the job was started without handlers (tasuki::main_with)");
        }
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name).collect();
        write!(f, "the job has {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Handler for Nothing {
        fn run(&self, _: &CallContext<'_>, _: &[u8], _: &mut Inline) -> Result<(), Cause> {
            Err(Cause::JobOver)
        }
    }

    fn shape(bytes: usize, is_slice: bool) -> ValueShape {
        ValueShape { bytes, is_slice, name: format!("u{}", 8 * bytes) }
    }

    fn entry(name: &'static str) -> HandlerEntry {
        let key = name.bytes().fold(1 << 40, |key: u64, byte| key.wrapping_mul(251) + u64::from(byte) * 256);
        HandlerEntry {
            name,
            key,
            takes: shape(8, false),
            returns: shape(0, false),
            depth: 0,
            posts_max: 0,
            handler: Box::new(Nothing),
        }
    }

    #[test]
    fn wrong_handlers_are_refused() {
        let refused = |entries: Vec<HandlerEntry>| match HandlerTable::new(entries) {
            Err(Cause::Argument(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(refused(vec![entry("a"), entry("b"), entry("a")]).contains("\"a\""));
        assert!(refused(vec![entry("")]).contains("without a name"));
        let (same, key) = (entry("same"), entry("same").key);
        assert!(
            refused(vec![same, HandlerEntry { key, ..entry("other") }]).contains("\"same\" and \"other\"")
        );
        assert!(refused(vec![HandlerEntry { depth: DEPTH_MAX + 1, ..entry("deep") }]).contains("deep"));
        assert!(refused((0..256).map(|at| entry(at.to_string().leak())).collect()).contains("256"));
    }

    #[test]
    fn different_tables_have_different_fingerprints() {
        let of = |entries| HandlerTable::new(entries).unwrap().fingerprint();
        let first = of(vec![entry("a"), entry("b")]);
        assert_eq!(first, of(vec![entry("a"), entry("b")]));
        assert_ne!(first, of(vec![entry("b"), entry("a")]));
        assert_ne!(first, of(vec![entry("a"), HandlerEntry { returns: shape(8, false), ..entry("b") }]));
        assert_ne!(first, of(vec![entry("a"), HandlerEntry { takes: shape(8, true), ..entry("b") }]));
        let signed = ValueShape { name: "i64".into(), ..shape(8, false) };
        assert_ne!(first, of(vec![entry("a"), HandlerEntry { takes: signed, ..entry("b") }]));
        assert_ne!(first, of(vec![entry("a")]));
        let table = HandlerTable::new(vec![entry("a"), entry("b")]).unwrap();
        assert_ne!(table.fingerprint_of(0), table.fingerprint_of(1));
        assert_eq!((table.fingerprint_of(2), table.described(2).as_str()), (0, "none"));
        let expected = "\"b\", which takes u64, returns u0, has follow_ups(0, 0)";
        assert_eq!(table.described(1), expected);
    }

    #[test]
    fn handlers_are_found_by_key_and_checked() {
        let b = HandlerEntry { takes: shape(4, true), ..entry("b") };
        let table = HandlerTable::new(vec![entry("a"), b]).unwrap();
        assert_eq!([table.find(entry("b").key), table.find(entry("c").key)], [Some(1), None]);
        assert!(table.not_found("c").to_string().contains("the job has a, b"));
        assert!(
            table.not_found("b").to_string().contains("other types; the job has \"b\", which takes [u32]")
        );
        assert!(table.check(0, 8).is_ok() && table.check(0, 9).is_err() && table.check(2, 8).is_err());
        assert!(table.check(1, 12).is_ok() && table.check(1, 13).is_err());
        assert_eq!(NO_HANDLERS.find(entry("a").key), None);
    }

    /// Keys whose bits name the same place follow each other, around the end of the index.
    #[test]
    fn keys_that_name_the_same_place_are_all_found() {
        let keys: Vec<u64> =
            (0..HANDLERS_MAX as u64).map(|number| number << 32 | 1000 << NUMBER_BITS).collect();
        let index = KeyIndex::new(keys.iter().copied()).unwrap();
        for (number, &key) in keys.iter().enumerate() {
            assert_eq!(index.find(key), Some(number as u8));
            assert_eq!(index.find(key | 1 << NUMBER_BITS), None);
        }
        assert_eq!(KeyIndex::new([7 << 20, 8 << 20, 7 << 20].into_iter()).err(), Some((0, 2)));
    }
}
