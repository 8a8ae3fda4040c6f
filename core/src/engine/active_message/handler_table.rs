//! The table of a job's handlers, which is equal on all ranks.

use super::active_messages::CallContext;
use super::deferred_list::ENTRIES;
use crate::base::Cause;
use crate::queue::directory::LEVELS_MAX;
use crate::queue::handler_call::HANDLERS_MAX;
use crate::queue::inline_data::{INLINE_BYTES, Inline};
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

/// How many bytes a handler takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArgumentSize {
    /// This number of bytes.
    Exactly(usize),
    /// Any number of values of this number of bytes.
    ManyOf(usize),
}

impl ArgumentSize {
    fn agrees(self, len: u64) -> bool {
        match self {
            ArgumentSize::Exactly(bytes) => len == bytes as u64,
            ArgumentSize::ManyOf(0) => len == 0,
            ArgumentSize::ManyOf(bytes) => len.is_multiple_of(bytes as u64),
        }
    }
}

impl fmt::Display for ArgumentSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentSize::Exactly(bytes) => write!(f, "{bytes} bytes"),
            ArgumentSize::ManyOf(bytes) => write!(f, "values of {bytes} bytes"),
        }
    }
}

/// A handler under its name.
pub struct HandlerEntry {
    /// Its name. All fields but `handler` are equal on all ranks.
    pub name: String,
    /// Number of bytes that it takes.
    pub takes: ArgumentSize,
    /// Number of bytes that it returns.
    pub returns: usize,
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
}

/// The table of a job without handlers.
pub(in crate::engine) static NO_HANDLERS: HandlerTable = HandlerTable { entries: Vec::new() };

impl HandlerTable {
    /// Makes a table of these handlers.
    ///
    /// Errors: there are too many; a name is empty or used twice; a handler posts or returns more than is allowed.
    pub fn new(entries: Vec<HandlerEntry>) -> Result<HandlerTable, Cause> {
        let wrong = |text: String| Err(Cause::Argument(text));
        if entries.len() > HANDLERS_MAX {
            return wrong(format!("{} handlers: a job has at most {HANDLERS_MAX}", entries.len()));
        }
        for (at, entry) in entries.iter().enumerate() {
            let HandlerEntry { name, depth, posts_max, returns, .. } = entry;
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
            if *returns > INLINE_BYTES {
                return wrong(format!(
                    "handler {name:?} returns {returns} bytes: a reply holds at most {INLINE_BYTES}"
                ));
            }
        }
        Ok(HandlerTable { entries })
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
        format!("{name:?}, which takes {takes}, returns {returns} bytes, has {calls}")
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
            Cause::HandlerFailed { handler, name } => {
                if let Some(entry) = self.get(*handler) {
                    name.clone_from(&entry.name);
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
        Err(Cause::Argument(format!("handler {name:?} takes {takes}; the call has {len}")))
    }

    /// The number of the handler with that name. Fails if there is none, or if it does not return `returns` bytes.
    pub fn find(&self, name: &str, returns: Option<usize>) -> Result<u8, Cause> {
        let place = self.entries.iter().position(|entry| entry.name == name);
        let Some(place) = place else {
            return Err(Cause::Argument(format!("there is no handler {name:?}: {self}")));
        };
        let returned = self.entries[place].returns;
        match returns {
            Some(bytes) if bytes != returned => {
                Err(Cause::Argument(format!("handler {name:?} returns {returned} bytes, not {bytes}")))
            }
            _ => Ok(place as u8),
        }
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
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
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

    fn entry(name: &str) -> HandlerEntry {
        let takes = ArgumentSize::Exactly(8);
        HandlerEntry {
            name: name.into(),
            takes,
            returns: 0,
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
        assert!(refused(vec![HandlerEntry { returns: 49, ..entry("far") }]).contains("49 bytes"));
        assert!(refused(vec![HandlerEntry { depth: DEPTH_MAX + 1, ..entry("deep") }]).contains("deep"));
        assert!(refused((0..257).map(|at| entry(&at.to_string())).collect()).contains("257"));
    }

    #[test]
    fn different_tables_have_different_fingerprints() {
        let of = |entries| HandlerTable::new(entries).unwrap().fingerprint();
        let first = of(vec![entry("a"), entry("b")]);
        assert_eq!(first, of(vec![entry("a"), entry("b")]));
        assert_ne!(first, of(vec![entry("b"), entry("a")]));
        assert_ne!(first, of(vec![entry("a"), HandlerEntry { returns: 8, ..entry("b") }]));
        assert_ne!(first, of(vec![entry("a")]));
        let table = HandlerTable::new(vec![entry("a"), entry("b")]).unwrap();
        assert_ne!(table.fingerprint_of(0), table.fingerprint_of(1));
        assert_eq!((table.fingerprint_of(2), table.described(2).as_str()), (0, "none"));
        let expected = "\"b\", which takes 8 bytes, returns 0 bytes, has follow_ups(0, 0)";
        assert_eq!(table.described(1), expected);
    }

    #[test]
    fn handlers_are_found_by_name_and_checked() {
        let table = HandlerTable::new(vec![
            entry("a"),
            HandlerEntry { takes: ArgumentSize::ManyOf(4), ..entry("b") },
        ])
        .unwrap();
        assert_eq!(table.find("b", Some(0)), Ok(1));
        assert!(table.find("c", None).is_err_and(|cause| cause.to_string().contains("the job has a, b")));
        assert!(table.find("a", Some(8)).is_err());
        assert!(table.check(0, 8).is_ok() && table.check(0, 9).is_err() && table.check(2, 8).is_err());
        assert!(table.check(1, 12).is_ok() && table.check(1, 13).is_err());
    }
}
