//! A command: its trigger, its action and its effects. `encoding` writes it into ring lines.

use super::handler_call::{Args, Call};
use super::inline_data::Inline;
use super::reduction::Reduction;
use crate::base::{Cause, Rank};
use crate::fabric::Atomic;
use crate::segment::GlobalAddress;
use crate::segment::layout::RANGE_BYTES;
use std::fmt;

/// Which ranks may run a command. The poster fixes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// Any rank that can access the operands.
    Any = 0,
    /// The rank that owns the source.
    Source = 1,
    /// The rank that owns the destination.
    Destination = 2,
}

/// The condition on which a command fires: a signal of the queue's rank has reached a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Number of the signal.
    pub signal: u32,
    /// The value to reach. The comparison allows for the wrap of the counter.
    pub threshold: u64,
}

/// The signal that is raised when a command has succeeded, and by how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The signal, of any rank.
    pub signal: GlobalAddress,
    /// The amount by which the signal is raised: less than 2^32 for the first effect, less than 2^24 for the second.
    pub amount: u32,
}

/// Most bytes of one reduction. More bytes need several commands.
pub const REDUCE_BYTES_MAX: u64 = 1 << 20;
/// Largest amount of a second effect.
pub const SECOND_AMOUNT_MAX: u32 = (1 << 24) - 1;

/// What a command does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Action {
    /// The command only has effects.
    Nothing,
    /// Copies bytes between any two ranks.
    Copy {
        /// Source.
        from: GlobalAddress,
        /// Destination.
        to: GlobalAddress,
        /// Number of bytes, less than 2^40.
        len: u64,
    },
    /// Puts bytes that the command carries.
    Put {
        /// Destination.
        to: GlobalAddress,
        /// The bytes.
        bytes: Inline,
    },
    /// Applies an atomic operation to a word. Its old value is written to `result`, unless that is null.
    Atomic {
        /// The word.
        at: GlobalAddress,
        /// The operation.
        atomic: Atomic,
        /// Where the old value goes.
        result: GlobalAddress,
    },
    /// Combines values at the source into those at the destination.
    Reduce {
        /// The values at the source.
        from: GlobalAddress,
        /// The values at the destination, which receive the result.
        to: GlobalAddress,
        /// Number of bytes on each side.
        len: u64,
        /// Element type and operation.
        how: Reduction,
    },
    /// Calls a handler. The rank that runs it performs the effects after it has run.
    Call(Call),
}

impl Action {
    /// Checks what does not depend on the rank that runs the action.
    pub fn check(&self) -> Result<(), Cause> {
        match *self {
            Action::Copy { len, .. }
            | Action::Reduce { len, .. }
            | Action::Call(Call { args: Args::At { len, .. }, .. })
                if len >= RANGE_BYTES =>
            {
                Err(Cause::Argument(format!("a command moves less than 2^40 bytes, not {len}")))
            }
            Action::Reduce { len, .. } if len > REDUCE_BYTES_MAX => Err(Cause::Argument(format!(
                "a reduction combines at most {REDUCE_BYTES_MAX} bytes, not {len}"
            ))),
            _ => Ok(()),
        }
    }
}

/// `(trigger) -> action -> (effects)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Command {
    /// Which ranks may run the command.
    pub class: Class,
    /// The trigger of the command. `None`: it fires as soon as it is read.
    pub trigger: Option<Trigger>,
    /// A second trigger that must be met, too. It lets a command wait for two contributors. One signal that counts both
    /// would not do: if one contributor is ahead of the other, the sum does not tell which of them has arrived.
    pub second_trigger: Option<Trigger>,
    /// What the command does.
    pub action: Action,
    /// Signals that are raised when the command has succeeded. If it fails, they are poisoned.
    pub effects: [Option<Effect>; 2],
}

impl Command {
    /// A command with this action, without trigger and effects, that any rank may run.
    pub fn new(action: Action) -> Command {
        Command { class: Class::Any, trigger: None, second_trigger: None, action, effects: [None, None] }
    }

    /// The call, if the action is one.
    #[inline(always)]
    pub fn as_call(&self) -> Option<&Call> {
        if let Action::Call(call) = &self.action { Some(call) } else { None }
    }

    /// Returns true if the action is a reduction.
    #[inline(always)]
    pub fn is_reduction(&self) -> bool {
        matches!(self.action, Action::Reduce { .. })
    }

    /// The rank that must run the command, if only one rank may run it.
    pub fn runner(&self) -> Option<Rank> {
        match (self.class, self.action) {
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
        match self.action {
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
        self.trigger.map_or(Ok(()), |trigger| trigger.fmt(f))
    }
}

/// The end of a command's description: when it fires.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " when signal {} >= {}", self.signal, self.threshold)
    }
}
