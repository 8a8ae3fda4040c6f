//! The handlers of a job: equal on all ranks.

use super::dispatch::CallContext;
use crate::base::Cause;
use crate::queue::directory::LEVELS_MAX;
use crate::queue::handler_call::HANDLERS_MAX;
use crate::queue::inline_data::{INLINE_BYTES, Inline};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most levels of calls that a call may lead to. Each has a queue of its own on each rank.
pub(super) const DEPTH_MAX: usize = LEVELS_MAX - 1;
/// Most calls and commands that one run of a handler may post.
pub(super) const EACH_MAX: usize = 64;

/// A function of the program's. It may panic, and must not wait.
pub trait Handler: Send + Sync {
    /// Runs it with what it was given. What it answers goes into `answer`, which is empty.
    fn run(&self, call: &CallContext<'_>, args: &[u8], answer: &mut Inline) -> Result<(), Cause>;
}

/// How many bytes a handler is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ArgumentSize {
    /// So many.
    Exactly(usize),
    /// Any number of values of so many bytes.
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
    /// The same on all ranks, as is all but the function itself.
    pub name: String,
    /// What it is given.
    pub takes: ArgumentSize,
    /// How many bytes it answers.
    pub returns: usize,
    /// How many levels of calls one call of it may lead to.
    pub depth: usize,
    /// How many calls and commands one run of it may post.
    pub each: usize,
    /// What is run.
    pub handler: Box<dyn Handler>,
}

impl fmt::Debug for HandlerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handler {}", self.name)
    }
}

/// All handlers of a job, by their numbers.
#[derive(Debug, Default)]
pub struct HandlerTable {
    entries: Vec<HandlerEntry>,
}

impl HandlerTable {
    /// Those handlers, if nothing can be said against them.
    pub fn new(entries: Vec<HandlerEntry>) -> Result<HandlerTable, Cause> {
        let wrong = |text: String| Err(Cause::Argument(text));
        if entries.len() > HANDLERS_MAX {
            return wrong(format!("{} handlers: a job has at most {HANDLERS_MAX}", entries.len()));
        }
        for (at, entry) in entries.iter().enumerate() {
            let HandlerEntry { name, depth, each, returns, .. } = entry;
            if name.is_empty() {
                return wrong("a handler without a name".into());
            }
            if entries[..at].iter().any(|other| other.name == *name) {
                return wrong(format!("two handlers have the name {name:?}"));
            }
            if *depth > DEPTH_MAX || *each > EACH_MAX {
                let most = format!("at most {EACH_MAX} a run, {DEPTH_MAX} levels deep");
                return wrong(format!("handler {name:?} posts {each} a run, {depth} levels deep: {most}"));
            }
            if *returns > INLINE_BYTES {
                return wrong(format!(
                    "handler {name:?} answers {returns} bytes: at most {INLINE_BYTES} travel with an answer"
                ));
            }
        }
        Ok(HandlerTable { entries })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A number that differs where the handlers of two ranks do.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.entries)
    }

    /// The same of one handler; 0: there is none of that number.
    pub(super) fn fingerprint_of(&self, number: usize) -> u64 {
        self.entries.get(number).map_or(0, |entry| fingerprint(std::slice::from_ref(entry)))
    }

    /// All that has to be equal on all ranks of one handler.
    pub(super) fn described(&self, number: usize) -> String {
        let Some(HandlerEntry { name, takes, returns, depth, each, .. }) = self.entries.get(number) else {
            return "none".into();
        };
        let calls = format!("follow_ups({depth}, {each})");
        format!("{name:?}, which is given {takes}, answers {returns} bytes, has {calls}")
    }

    /// How deep the deepest handler goes.
    pub(super) fn depth(&self) -> usize {
        self.entries.iter().map(|entry| entry.depth).max().unwrap_or(0)
    }

    /// Whether any handler posts commands.
    pub(super) fn posts(&self) -> bool {
        self.entries.iter().any(|entry| entry.each > 0)
    }

    /// The handler of that number.
    #[inline]
    pub(super) fn get(&self, number: u8) -> Option<&HandlerEntry> {
        self.entries.get(usize::from(number))
    }

    /// The handler of that number, if it can be given so many bytes.
    #[inline]
    pub(super) fn check(&self, number: u8, len: u64) -> Result<&HandlerEntry, Cause> {
        let none = || Cause::Argument(format!("there is no handler {number}: {self}"));
        let entry = self.get(number).ok_or_else(none)?;
        if entry.takes.agrees(len) {
            return Ok(entry);
        }
        let HandlerEntry { name, takes, .. } = entry;
        Err(Cause::Argument(format!("handler {name:?} is given {takes}, not {len}")))
    }

    /// The number of the handler of that name, that answers so many bytes.
    pub(super) fn find(&self, name: &str, returns: Option<usize>) -> Result<u8, Cause> {
        let place = self.entries.iter().position(|entry| entry.name == name);
        let Some(place) = place else {
            return Err(Cause::Argument(format!("there is no handler {name:?}: {self}")));
        };
        let answers = self.entries[place].returns;
        match returns {
            Some(bytes) if bytes != answers => {
                Err(Cause::Argument(format!("handler {name:?} answers {answers} bytes, not {bytes}")))
            }
            _ => Ok(place as u8),
        }
    }
}

fn fingerprint(entries: &[HandlerEntry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for HandlerEntry { name, takes, returns, depth, each, .. } in entries {
        (name, takes, returns, depth, each).hash(&mut hasher);
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
        HandlerEntry { name: name.into(), takes, returns: 0, depth: 0, each: 0, handler: Box::new(Nothing) }
    }

    #[test]
    fn what_is_wrong_with_handlers_is_said() {
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
    fn tables_that_differ_have_other_fingerprints() {
        let of = |entries| HandlerTable::new(entries).unwrap().fingerprint();
        let first = of(vec![entry("a"), entry("b")]);
        assert_eq!(first, of(vec![entry("a"), entry("b")]));
        assert_ne!(first, of(vec![entry("b"), entry("a")]));
        assert_ne!(first, of(vec![entry("a"), HandlerEntry { returns: 8, ..entry("b") }]));
        assert_ne!(first, of(vec![entry("a")]));
        let table = HandlerTable::new(vec![entry("a"), entry("b")]).unwrap();
        assert_ne!(table.fingerprint_of(0), table.fingerprint_of(1));
        assert_eq!((table.fingerprint_of(2), table.described(2).as_str()), (0, "none"));
        let told = "\"b\", which is given 8 bytes, answers 0 bytes, has follow_ups(0, 0)";
        assert_eq!(table.described(1), told);
    }

    #[test]
    fn a_handler_is_found_by_its_name_and_checked() {
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
