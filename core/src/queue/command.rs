//! A command: when it fires, what it does, and what follows. How it is written: `lines`.

use super::handler_call::{Args, BUFFER_MAX, Call};
use super::inline_data::Inline;
use super::reduction::Reduction;
use crate::base::{Cause, Rank};
use crate::fabric::Atomic;
use crate::segment::GlobalAddress;
use crate::segment::layout::RANGE_BYTES;
use std::fmt;

/// Who may run a command. Fixed when it is posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// Any rank that reaches its operands.
    Any = 0,
    /// The rank that owns the source.
    Source = 1,
    /// The rank that owns the destination.
    Destination = 2,
}

/// When a command fires: when a signal of the queue's rank has reached a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// ElementType of the signal.
    pub signal: u32,
    /// The value, compared across the wrap of the counter.
    pub threshold: u64,
}

/// What happens when a command has ended well: a signal is raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Of any rank.
    pub signal: GlobalAddress,
    /// By how much: for the first effect less than 2^32, for the second less than 2^24.
    pub amount: u32,
}

/// Most bytes of a reduction: arrays are small, or a program reduces them itself.
pub const REDUCE_BYTES_MAX: u64 = 1 << 20;
/// Largest amount of a second effect.
pub const SECOND_AMOUNT_MAX: u32 = (1 << 24) - 1;

/// What a command does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    /// Nothing: only its effects count.
    Nothing,
    /// Copies bytes from anywhere to anywhere.
    Copy {
        /// Where from.
        from: GlobalAddress,
        /// Where to.
        to: GlobalAddress,
        /// How many, less than 2^40.
        len: u64,
    },
    /// Puts bytes that the command carries.
    Put {
        /// Where to.
        to: GlobalAddress,
        /// What.
        bytes: Inline,
    },
    /// Changes a word; what it was goes to `result`, if that is not null.
    Atomic {
        /// QueueKind word.
        at: GlobalAddress,
        /// How.
        atomic: Atomic,
        /// Where to.
        result: GlobalAddress,
    },
    /// Combines values at the source into those at the destination.
    Reduce {
        /// Where from.
        from: GlobalAddress,
        /// Into which.
        to: GlobalAddress,
        /// How many bytes of values.
        len: u64,
        /// Of which type, and how.
        how: Reduction,
    },
    /// Calls a handler. The effects happen when it has run, on the rank where it did.
    Call(Call),
}

impl Action {
    /// What can be said against it, whoever is to do it.
    pub fn check(&self) -> Result<(), Cause> {
        match *self {
            Action::Copy { len, .. } | Action::Reduce { len, .. } if len >= RANGE_BYTES => {
                Err(Cause::Argument(format!("a command moves less than 2^40 bytes, not {len}")))
            }
            Action::Call(Call { args: Args::At { len, .. }, .. }) if len > BUFFER_MAX => {
                let text = format!("a call brings at most {BUFFER_MAX} bytes along, not {len}");
                Err(Cause::Argument(text))
            }
            Action::Reduce { len, .. } if len > REDUCE_BYTES_MAX => Err(Cause::Argument(format!(
                "a reduction combines at most {REDUCE_BYTES_MAX} bytes, not {len}"
            ))),
            _ => Ok(()),
        }
    }
}

/// `(trigger) -> deed -> (effects)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Command {
    /// Who may run it.
    pub class: Class,
    /// When it fires; at once, if that is none.
    pub trigger: Option<Trigger>,
    /// It fires when this one is met, too. A join without a signal that counts both: of two contributors who are ahead
    /// of each other a sum does not say which has come.
    pub also: Option<Trigger>,
    /// What it does.
    pub deed: Action,
    /// What follows when it has ended well. What fails poisons these signals.
    pub effects: [Option<Effect>; 2],
}

impl Command {
    /// A command of that deed, with nothing else said.
    pub fn new(deed: Action) -> Command {
        Command { class: Class::Any, trigger: None, also: None, deed, effects: [None, None] }
    }

    /// The call that it is, if it is one.
    #[inline(always)]
    pub fn calls(&self) -> Option<&Call> {
        if let Action::Call(call) = &self.deed { Some(call) } else { None }
    }

    /// Whether it combines values with others.
    #[inline(always)]
    pub fn reduces(&self) -> bool {
        matches!(self.deed, Action::Reduce { .. })
    }

    /// Whose processor has to run it, if only one may.
    pub fn runner(&self) -> Option<Rank> {
        match (self.class, self.deed) {
            (Class::Any, _) | (_, Action::Nothing | Action::Call(_)) => None,
            (Class::Source, Action::Copy { from, .. } | Action::Reduce { from, .. }) => Some(from.rank()),
            (_, Action::Copy { to, .. } | Action::Put { to, .. } | Action::Reduce { to, .. }) => {
                Some(to.rank())
            }
            (_, Action::Atomic { at, .. }) => Some(at.rank()),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deed {
            Action::Nothing => write!(f, "nothing")?,
            Action::Copy { from, to, len } => write!(f, "copy({len} bytes from {from} to {to})")?,
            Action::Put { to, bytes } => write!(f, "put({} bytes to {to})", bytes.len())?,
            Action::Atomic { at, atomic, .. } => {
                let name = format!("{:?}", atomic.kind).to_lowercase();
                write!(f, "atomic {}({at})", name.split(' ').next().unwrap_or_default())?;
            }
            Action::Reduce { from, to, len, how } => {
                write!(f, "{how}({len} bytes from {from} into {to})")?;
            }
            Action::Call(Call { peer, handler, args, .. }) => {
                write!(f, "call(handler {handler} of rank {peer}, {} bytes)", args.len())?;
            }
        }
        match self.trigger {
            Some(Trigger { signal, threshold }) => write!(f, " when signal {signal} >= {threshold}"),
            None => Ok(()),
        }
    }
}
