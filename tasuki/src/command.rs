//! Commands: what is to be done, when, and what follows.

use crate::handler::registry::{Handler, inline};
use crate::job::Job;
use crate::memory::word::Word;
use crate::{AtomicOp, GlobalPtr, Pod, Rank};
use std::fmt;
use tasuki_core::base::Cause;
use tasuki_core::fabric::{Atomic, AtomicKind};
use tasuki_core::queue::command::{
    Action, Class, Command as Core, Effect as CoreEffect, Trigger as CoreTrigger,
};
use tasuki_core::queue::encoding::EncodedCommand;
use tasuki_core::queue::handler_call::{Args, Call, ReplyAddress};
use tasuki_core::queue::inline_data::{INLINE_BYTES, Inline};
pub use tasuki_core::queue::reduction::Combine;
use tasuki_core::queue::reduction::{ElementType, Reduction};

/// A command that a [`Queue`](crate::Queue) takes: `(trigger) -> deed -> (effects)`.
///
/// Made of a deed, then said when it fires and what follows:
///
/// ```
/// # use tasuki::Command;
/// tasuki::local(2, |job| {
///     let (data, arrived, done) = (job.alloc::<f64>(8)?, job.signal()?, job.signal()?);
///     let (me, peer) = (job.rank(), job.rank_after(1));
///     let queue = job.queue(16)?;
///     data.fill(1.5)?;
///     // When the peer says so, this rank's part goes there, whatever this rank is doing then.
///     queue.post(
///         Command::copy(data.on(me), data.on(peer).at(4), 4)
///             .when(arrived.reaches(1))
///             .then(done.on(peer).add(1)),
///     )?;
///     job.raise(arrived.on(peer), 1)?;
///     done.wait_at_least(1)?;
///     assert_eq!(data.get(4)?, 1.5);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// What is wrong with it is told when it is posted, or, where that shows only when it runs, by the poison of its
/// signals.
#[derive(Clone, PartialEq)]
#[must_use = "a command does nothing until it is posted"]
pub struct Command {
    /// As it is posted: a post does no more than check and copy it.
    lines: EncodedCommand,
    /// The job of its trigger, by the number of its machine.
    job: Option<u64>,
    wrong: Option<Box<Wrong>>,
}

/// What is wrong with a command in itself.
#[derive(Clone, PartialEq)]
struct Wrong {
    cause: Cause,
    /// What was asked for, where lines cannot say it: a command that is too long has none.
    asked: String,
}

/// When a command fires. Made by [`Signal::reaches`](crate::Signal::reaches).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    core: CoreTrigger,
    job: u64,
}

/// What follows when a command has ended well: a signal is raised. Made by
/// [`RemoteSignal::add`](crate::RemoteSignal::add).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect(pub(crate) CoreEffect);

impl Trigger {
    pub(crate) fn new(job: &Job, signal: u32, threshold: u64) -> Trigger {
        Trigger { core: CoreTrigger { signal, threshold }, job: job.worker.serial() }
    }
}

/// Values that a command can combine on arrival.
pub trait Reducible: Pod {
    /// Which type it is.
    const NUMBER: ElementType;
}

macro_rules! reducible {
    ($($type:ty: $number:ident),*) => {
        $(impl Reducible for $type {
            const NUMBER: ElementType = ElementType::$number;
        })*
    };
}

reducible!(i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64);

impl Command {
    #[inline]
    fn new(deed: Action) -> Command {
        let command = Command { lines: EncodedCommand::of(&deed), job: None, wrong: None };
        match deed.check() {
            Ok(()) => command,
            Err(cause) => Command::refused(cause, &Core::new(deed)),
        }
    }

    /// One that is refused when it is posted. `asked`: what it was to do.
    #[cold]
    fn refused(cause: Cause, asked: &dyn fmt::Display) -> Command {
        let wrong = Wrong { cause, asked: asked.to_string() };
        Command { lines: EncodedCommand::of(&Action::Nothing), job: None, wrong: Some(wrong.into()) }
    }

    /// The same, if nothing was wrong.
    #[inline]
    fn unless(self, outcome: Result<(), Cause>) -> Command {
        match outcome {
            Err(cause) if self.wrong.is_none() => {
                let wrong = Wrong { cause, asked: self.to_string() };
                Command { wrong: Some(wrong.into()), ..self }
            }
            _ => self,
        }
    }

    /// Copies `count` values from anywhere to anywhere: job memory, or memory that its owner has registered. Inside one
    /// rank's memory, overlapping ranges move as `memmove` does. The source is read when the command runs.
    ///
    /// Long ones are run beside the queue: others of it go on meanwhile. Cost: one copy by whoever runs it.
    pub fn copy<T: Pod>(from: GlobalPtr<T>, to: GlobalPtr<T>, count: usize) -> Command {
        let len = (count as u64).saturating_mul(size_of::<T>() as u64);
        Command::new(Action::Copy { from: from.address(), to: to.address(), len })
    }

    /// Writes values that the command carries, 48 bytes at most: they are read now.
    pub fn put<T: Pod>(to: GlobalPtr<T>, values: &[T]) -> Command {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let to = to.address();
        match Inline::of(bytes) {
            Some(bytes) => Command::new(Action::Put { to, bytes }),
            None => {
                let (len, most) = (bytes.len(), INLINE_BYTES);
                let text =
                    format!("a command carries at most {most} bytes, not {len}: Command::copy moves more");
                Command::refused(Cause::Argument(text), &format_args!("put({len} bytes to {to})"))
            }
        }
    }

    /// Stores a word in one piece.
    pub fn store<W: Word>(at: GlobalPtr<W>, value: W) -> Command {
        let atomic = Atomic { kind: AtomicKind::Store, operand: value.to_bits(), width: W::WIDTH };
        Command::new(Action::Atomic { at: at.address(), atomic, result: crate::GlobalAddress::NULL })
    }

    /// Changes a word in one step, as [`Job::change`] does.
    pub fn atomic<W: Word>(at: GlobalPtr<W>, change: AtomicOp<W>) -> Command {
        let atomic = change.atomic();
        Command::new(Action::Atomic { at: at.address(), atomic, result: crate::GlobalAddress::NULL })
    }

    /// The same; what the word was is stored at `result`, anywhere, before the effects happen.
    pub fn fetch_atomic<W: Word>(at: GlobalPtr<W>, change: AtomicOp<W>, result: GlobalPtr<W>) -> Command {
        let atomic = change.atomic();
        Command::new(Action::Atomic { at: at.address(), atomic, result: result.address() })
    }

    /// Combines `count` values at `from` into those at `to`, which become what they were and their partners. At most
    /// 1 MiB. Those of one queue go one after the other, so they may have the same values at `to`; those of different
    /// queues are in each other's way, as any two writers: order them by triggers.
    pub fn reduce<T: Reducible>(
        from: GlobalPtr<T>,
        to: GlobalPtr<T>,
        count: usize,
        combine: Combine,
    ) -> Command {
        let len = (count as u64).saturating_mul(size_of::<T>() as u64);
        match Reduction::new(T::NUMBER, combine) {
            Some(how) => Command::new(Action::Reduce { from: from.address(), to: to.address(), len, how }),
            None => {
                let text = format!("{combine:?} combines the bits of integers, not floating-point numbers");
                let number = T::NUMBER;
                let asked = format_args!("{combine:?} of {number:?}({len} bytes from {from} into {to})");
                Command::refused(Cause::Argument(text), &asked)
            }
        }
    }

    /// Calls a handler of a rank with a value of 48 bytes at most, which is read now. The command's effects happen when
    /// the handler has run, on its rank, not in the order of this queue's others; they are poisoned if it failed.
    /// Calls that fire in one queue are handed on in the order in which they fire, whoever they are for: one that finds
    /// no room at its rank holds up the calls behind it.
    ///
    /// Handlers are found by [`Job::handler`].
    pub fn call<A: Pod>(to: Rank, handler: Handler, args: &A) -> Command {
        match inline(args) {
            Ok(args) => Command::calling(to, handler, args),
            Err(cause) => {
                let (number, len) = (handler.number, size_of::<A>());
                Command::refused(cause, &format_args!("call(handler {number} of rank {to}, {len} bytes)"))
            }
        }
    }

    /// The same with `count` values that lie at `from`, 64 KiB at most, which are read when the handler runs.
    pub fn call_with<A: Pod>(to: Rank, handler: Handler, from: GlobalPtr<A>, count: usize) -> Command {
        let len = (count as u64).saturating_mul(size_of::<A>() as u64);
        Command::calling(to, handler, Args::at(from.address(), len))
    }

    fn calling(to: Rank, handler: Handler, args: Args) -> Command {
        Command::new(Action::Call(Call {
            peer: to,
            handler: handler.number,
            args,
            answer: ReplyAddress::NONE,
        }))
    }

    /// Does nothing: only its trigger and effects count, which makes signals of signals.
    pub fn nothing() -> Command {
        Command::new(Action::Nothing)
    }

    /// It fires when that signal has reached its threshold, and at once without. Said twice it fires when both are met,
    /// in either order; that the second one is poisoned is found when the first is met. Two triggers take a place more
    /// in the queue and leave room for 40 bytes inline. A command of a session queue has no trigger of its own.
    pub fn when(mut self, trigger: Trigger) -> Command {
        if self.job.is_some_and(|job| job != trigger.job) {
            return self.unless(Err(Cause::Argument("its triggers are signals of two jobs".into())));
        }
        self.job = Some(trigger.job);
        let added = self.lines.when(trigger.core);
        self.unless(added)
    }

    /// What follows when it has ended well, its bytes visible: a signal of any rank is raised. Twice at most; the
    /// second by less than 2^24. If the command fails the signal is *poisoned* instead, with the cause: waits for it
    /// fail, and so do commands that it was to trigger, and theirs.
    ///
    /// Commands of one queue that raise the same signal are a *stream*: they may end in any order, and their effects
    /// happen in the order in which they fired.
    pub fn then(mut self, effect: Effect) -> Command {
        let added = self.lines.then(effect.0);
        self.unless(added)
    }

    /// Only the rank whose memory is read may run it.
    pub fn by_source(mut self) -> Command {
        self.lines.bind(Class::Source);
        self
    }

    /// Only the rank whose memory is written may run it.
    pub fn by_destination(mut self) -> Command {
        self.lines.bind(Class::Destination);
        self
    }

    /// Whether the machine of that job takes it.
    #[inline(always)]
    pub(crate) fn check(&self, worker: u64) -> Result<(), Cause> {
        let is_fine = self.wrong.is_none() && self.job.is_none_or(|job| job == worker);
        if is_fine { Ok(()) } else { Err(self.what_is_wrong()) }
    }

    #[cold]
    fn what_is_wrong(&self) -> Cause {
        let text = "its trigger is a signal of another job, or of this one as another rank has it";
        self.wrong.as_ref().map_or_else(|| Cause::Argument(text.into()), |wrong| wrong.cause.clone())
    }

    /// Whether it is refused whoever posts it.
    pub(crate) fn is_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    #[inline]
    pub(crate) fn lines(&self) -> &EncodedCommand {
        &self.lines
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.wrong, Core::from_lines(&self.lines)) {
            (Some(wrong), _) => f.write_str(&wrong.asked),
            (None, Some(command)) => command.fmt(f),
            (None, None) => f.write_str("a command that nobody made"),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}
