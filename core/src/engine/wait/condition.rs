//! What a thread of a rank waits for, and what tasks await.

use crate::base::Rank;
use crate::fabric::SignalCell;
use crate::node::node_state::RankStage;
use std::fmt::Debug;
use std::sync::Arc;

/// An event of a crate above this one that a thread waits for.
pub trait WaitEvent: Send + Sync + Debug {
    /// Returns true if a wait for the event should end: it has happened, or the waiting thread
    /// itself can make progress. State that other threads of the rank may change without a call
    /// must be read last.
    fn happened(&self) -> bool;

    /// Returns the only rank that can cause the event, and the stage from which on that rank will not.
    fn impossible_after(&self) -> Option<(Rank, RankStage)>;

    /// Returns the ranks of which any one can cause the event, if it needs one of several.
    fn needs_one_of(&self) -> OneOf<'_> {
        OneOf::NoRanks
    }

    /// Returns true if reports show a wait for it. A thread that only serves waits for nothing that ends by itself.
    fn is_reported(&self) -> bool {
        true
    }

    /// Names the call that waits for it, for reports of a task that awaits it.
    fn call(&self) -> String {
        "an event".into()
    }

    /// Returns the only rank whose program must send or receive a message before the event can
    /// happen, if that is known.
    fn needs_message_of(&self) -> Option<Rank> {
        None
    }
}

/// Ranks of which any one can cause an event. The waiting rank itself does not count.
#[derive(Clone, Copy, Debug)]
pub enum OneOf<'r> {
    /// The event does not need one of several ranks.
    NoRanks,
    /// All ranks of the job.
    AllRanks,
    /// These ranks.
    Ranks(&'r [Rank]),
}

/// The condition that a thread of a rank waits for.
#[derive(Clone, Debug)]
pub enum Condition {
    /// An own signal has reached a value. The rank, if given, is the only one that can raise it;
    /// its leaving ends the wait.
    Signal(SignalCell, u64, Option<Rank>),
    /// The operation of that number has ended.
    Finished(u64),
    /// The operation of that number and all before it have ended.
    FinishedThrough(u64),
    /// Another operation may be issued.
    Room,
    /// Never met: for a pause.
    Never,
    /// All ranks have reached a stage of their lives.
    AllReached(RankStage),
    /// Everything that this rank's fabric has accepted has arrived.
    Settled,
    /// An event of a crate above this one has happened.
    Event(Arc<dyn WaitEvent>),
}

impl Condition {
    /// Names what a task awaits.
    pub fn call(&self) -> String {
        match self {
            Condition::Signal(_, threshold, _) => format!("signal >= {threshold}"),
            Condition::Finished(number) => format!("operation {number}"),
            Condition::Event(event) => event.call(),
            other => format!("{other:?}"),
        }
    }

    /// Returns true if reports show a wait for it.
    pub(super) fn is_reported(&self) -> bool {
        if let Condition::Event(event) = self { event.is_reported() } else { true }
    }

    /// Returns true if a probe may end the wait. Not a wait for operations of this rank: each ends by itself, and until
    /// then the fabric may use a buffer that the waiting call has borrowed.
    pub(super) fn can_be_abandoned(&self) -> bool {
        match self {
            Condition::Signal(..) | Condition::Event(_) | Condition::Never | Condition::AllReached(_) => true,
            Condition::Finished(_) | Condition::FinishedThrough(_) | Condition::Room | Condition::Settled => {
                false
            }
        }
    }
}

/// A condition that a task awaits.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The condition. The task is woken when it is met or can no longer be met.
    pub condition: Condition,
    /// When to wake the task although nothing has happened, in ns of the platform's clock; `u64::MAX`: never.
    pub again_at_ns: u64,
    /// The probe that a thread asks which waits for nothing else, and what about; or zeros.
    pub probe: (u32, u32),
}

impl Awaited {
    /// A condition for which nothing but the condition itself wakes the task.
    pub fn only(condition: Condition) -> Awaited {
        Awaited { condition, again_at_ns: u64::MAX, probe: (0, 0) }
    }
}

/// Describes several awaited calls: `await(irecv(slot 3 from rank 1) and 2 more)`. A call that is named twice counts
/// once.
pub fn describe_awaited(mut calls: Vec<String>) -> String {
    calls.sort();
    calls.dedup();
    match &calls[..] {
        [] => "await".into(),
        [one] => format!("await({one})"),
        [first, others @ ..] => format!("await({first} and {} more)", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::describe_awaited;

    #[test]
    fn equal_calls_are_named_once() {
        let texts = |calls: &[&str]| describe_awaited(calls.iter().map(|call| call.to_string()).collect());
        assert_eq!(texts(&[]), "await");
        assert_eq!(texts(&["b", "b"]), "await(b)");
        assert_eq!(texts(&["c", "b", "a", "b"]), "await(a and 2 more)");
    }
}
