//! Commands: descriptors of operations, with the triggers that start them and the effects that follow.

use crate::memory::word::Word;
use crate::onesided::{AtomicOp, Trigger};
use crate::{GlobalPtr, Pod, Rank};
use std::fmt;
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Atomic, AtomicKind};
use tasuki_core::queue::command::{Action, Class, Command as Core, Effect as CoreEffect};
use tasuki_core::queue::encoding::EncodedCommand;
use tasuki_core::queue::handler_call::{Args, Call, ReplyAddress};
use tasuki_core::queue::inline_data::{INLINE_BYTES, Inline};
/// How [`Command::reduce`] combines values.
///
/// ```
/// use tasuki::Command;
/// use tasuki::engine::Combine;
/// tasuki::local(1, |job| {
///     let (queue, values, done) = (job.queue(4)?, job.alloc::<i64>(2)?, job.signal()?);
///     values.write(0, &[3, -5])?;
///     let least = Command::reduce(values.pointer().at(1), values.pointer(), 1, Combine::Min);
///     queue.post(least.then(done.on(job.rank()).add(1)))?;
///     done.wait_at_least(1)?;
///     assert_eq!(values.to_vec()?, [-5, -5]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub use tasuki_core::queue::reduction::Combine;
use tasuki_core::queue::reduction::{ElementType, Reduction};

/// A command for a [`Queue`](crate::Queue): `(trigger) -> action -> (effects)`.
///
/// A constructor gives the action; [`when`](Command::when) adds a trigger and [`then`](Command::then) an effect:
///
/// ```
/// # use tasuki::Command;
/// tasuki::local(2, |job| {
///     let (data, arrived, done) = (job.alloc::<f64>(8)?, job.signal()?, job.signal()?);
///     let (me, peer) = (job.rank(), job.rank_after(1));
///     let queue = job.queue(16)?;
///     data.fill(1.5)?;
///     // When the peer raises `arrived`, this rank's values are copied there, whatever this rank is doing.
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
/// A post reports errors that can be found in the command itself. An error that is found only when the command runs
/// poisons the command's signals.
#[derive(Clone, PartialEq)]
#[must_use = "a command does nothing until it is posted"]
pub struct Command {
    /// The encoded command: a post only checks and copies it.
    encoded: EncodedCommand,
    /// The handler that it calls. Its number is set when the command is posted, because jobs number their handlers.
    handler: Option<CalledHandler>,
    /// The job of its trigger, by the serial number of the job's worker.
    job: Option<u64>,
    invalid: Option<Box<Invalid>>,
}

/// The handler that a command calls.
#[derive(Clone, Copy, PartialEq)]
struct CalledHandler {
    name: &'static str,
    key: u64,
}

/// The reason why an invalid command is refused.
#[derive(Clone, PartialEq)]
struct Invalid {
    cause: Cause,
    /// What the command should have done, for error texts: an oversized command has no encoding.
    description: String,
}

/// What happens when a command has succeeded: a signal is raised. Made by
/// [`RemoteSignal::add`](crate::onesided::RemoteSignal::add).
///
/// ```
/// use tasuki::Command;
/// use tasuki::onesided::Effect;
/// tasuki::local(2, |job| {
///     let (queue, data, done) = (job.queue(4)?, job.alloc::<u64>(1)?, job.signal()?);
///     let peer = job.rank_after(1);
///     let tell: Effect = done.on(peer).add(1);
///     queue.post(Command::put(data.on(peer), &[7]).then(tell))?;
///     done.wait_at_least(1)?;
///     assert_eq!(data.get(0)?, 7);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect(pub(crate) CoreEffect);

/// Values that [`Command::reduce`] can combine.
///
/// ```
/// use tasuki::Command;
/// use tasuki::engine::{Combine, Reducible};
/// use tasuki::{Job, onesided::LocalArray};
/// fn combined<T: Reducible>(job: &Job, pair: &LocalArray<T>, how: Combine) -> tasuki::Result<T> {
///     let (queue, done) = (job.queue(2)?, job.signal()?);
///     let reduce = Command::reduce(pair.pointer().at(1), pair.pointer(), 1, how);
///     queue.post(reduce.then(done.on(job.rank()).add(1)))?;
///     done.wait_at_least(1)?;
///     pair.get(0)
/// }
/// tasuki::local(1, |job| {
///     let (counts, rates) = (job.alloc_local::<u32>(2)?, job.alloc_local::<f64>(2)?);
///     counts.write(0, &[3, 4])?;
///     rates.write(0, &[0.5, 0.25])?;
///     assert_eq!(combined(job, &counts, Combine::Sum)?, 7);
///     assert_eq!(combined(job, &rates, Combine::Max)?, 0.5);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub trait Reducible: Pod {
    /// The type's number in encoded commands.
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
    fn new(action: Action) -> Command {
        let command =
            Command { encoded: EncodedCommand::of(&action), handler: None, job: None, invalid: None };
        match action.check() {
            Ok(()) => command,
            Err(cause) => Command::invalid(cause, &Core::new(action)),
        }
    }

    /// A command that every post refuses. `description` says what it should have done.
    #[cold]
    fn invalid(cause: Cause, description: &dyn fmt::Display) -> Command {
        let invalid = Invalid { cause, description: description.to_string() };
        let encoded = EncodedCommand::of(&Action::Nothing);
        Command { encoded, handler: None, job: None, invalid: Some(invalid.into()) }
    }

    /// Marks the command as invalid if `outcome` is the first error found in it.
    #[inline]
    pub(crate) fn checked(self, outcome: Result<(), Cause>) -> Command {
        match outcome {
            Err(cause) if self.invalid.is_none() => {
                let invalid = Invalid { cause, description: self.to_string() };
                Command { invalid: Some(invalid.into()), ..self }
            }
            _ => self,
        }
    }

    /// Copies `count` values between any two places: job memory, or memory that its owner has registered. Overlapping
    /// ranges of one rank's memory are copied as `memmove` does. The source is read when the command runs.
    ///
    /// A long copy runs beside the queue, so that other commands of the queue go on meanwhile. Cost: one copy by the
    /// rank that runs the command.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(3, |job| {
    ///     let (queue, data, done) = (job.queue(4)?, job.alloc::<usize>(10)?, job.signal()?);
    ///     data.fill(job.rank().index())?;
    ///     job.barrier()?;
    ///     if job.rank() == 0 {
    ///         // Between two other ranks.
    ///         let (from, to) = (job.rank_after(1), job.rank_after(2));
    ///         queue.post(Command::copy(data.on(from), data.on(to), 10).then(done.on(to).add(1)))?;
    ///     }
    ///     if job.rank() == 2 {
    ///         done.wait_at_least(1)?;
    ///         assert_eq!(data.to_vec()?, [1; 10]);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy<T: Pod>(from: GlobalPtr<T>, to: GlobalPtr<T>, count: usize) -> Command {
        let len = (count as u64).saturating_mul(size_of::<T>() as u64);
        Command::new(Action::Copy { from: from.address(), to: to.address(), len })
    }

    /// Writes values that the command carries, at most 48 bytes. They are read when the command is made.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, data, done) = (job.queue(4)?, job.alloc::<u32>(3)?, job.signal()?);
    ///     let peer = job.rank_after(1);
    ///     queue.post(Command::put(data.on(peer), &[1, 2, 3]).then(done.on(peer).add(1)))?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!(data.to_vec()?, [1, 2, 3]);
    ///     assert!(queue.post(Command::put(data.on(peer), &[0; 13])).is_err()); // 52 bytes are too many
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn put<T: Pod>(to: GlobalPtr<T>, values: &[T]) -> Command {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let to = to.address();
        match Inline::of(bytes) {
            Some(bytes) => Command::new(Action::Put { to, bytes }),
            None => {
                let (len, most) = (bytes.len(), INLINE_BYTES);
                let text =
                    format!("a command carries at most {most} bytes, not {len}: Command::copy moves more");
                Command::invalid(Cause::Argument(text), &format_args!("put({len} bytes to {to})"))
            }
        }
    }

    /// Stores a word atomically.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, word, done) = (job.queue(4)?, job.alloc::<u64>(1)?, job.signal()?);
    ///     let peer = job.rank_after(1);
    ///     queue.post(Command::store(word.on(peer), 7).then(done.on(peer).add(1)))?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!(job.load(word.pointer())?, 7);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn store<W: Word>(at: GlobalPtr<W>, value: W) -> Command {
        let atomic = Atomic { kind: AtomicKind::Store, operand: value.to_bits(), width: W::WIDTH };
        Command::new(Action::Atomic {
            at: at.address(),
            atomic,
            result: crate::onesided::GlobalAddress::NULL,
        })
    }

    /// Applies an atomic operation to a word, as [`Job::atomic`](crate::Job::atomic) does.
    ///
    /// ```
    /// use tasuki::{Command, Rank};
    /// use tasuki::onesided::AtomicOp;
    /// tasuki::local(3, |job| {
    ///     let (queue, total, done) = (job.queue(4)?, job.alloc::<u64>(1)?, job.signal()?);
    ///     let add = Command::atomic(total.on(Rank(0)), AtomicOp::Add(5));
    ///     queue.post(add.then(done.on(Rank(0)).add(1)))?;
    ///     if job.rank() == 0 {
    ///         done.wait_at_least(3)?; // the additions of all ranks
    ///         assert_eq!(total.get(0)?, 15);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn atomic<W: Word>(at: GlobalPtr<W>, operation: AtomicOp<W>) -> Command {
        let atomic = operation.atomic();
        Command::new(Action::Atomic {
            at: at.address(),
            atomic,
            result: crate::onesided::GlobalAddress::NULL,
        })
    }

    /// Applies an atomic operation to a word and stores the word's previous value at `result`, which may be on any
    /// rank, before the effects happen.
    ///
    /// ```
    /// use tasuki::onesided::AtomicOp;
    /// use tasuki::Command;
    /// tasuki::local(1, |job| {
    ///     let (queue, done, me) = (job.queue(8)?, job.signal()?, job.rank());
    ///     let (word, before) = (job.alloc::<u64>(1)?, job.alloc::<u64>(1)?);
    ///     word.set(0, 40)?;
    ///     let add = Command::fetch_atomic(word.on(me), AtomicOp::Add(2), before.on(me));
    ///     queue.post(add.by_source().then(done.on(me).add(1)))?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!((word.get(0)?, before.get(0)?), (42, 40));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn fetch_atomic<W: Word>(at: GlobalPtr<W>, operation: AtomicOp<W>, result: GlobalPtr<W>) -> Command {
        let atomic = operation.atomic();
        Command::new(Action::Atomic { at: at.address(), atomic, result: result.address() })
    }

    /// Combines `count` values at `from` into those at `to`, which become the results. At most 1 MiB. The reductions
    /// of one queue run one after the other, so they may have the same destination. Reductions of different queues
    /// into the same destination conflict like any two writers: order them by triggers.
    ///
    /// The value at `to` is the left operand: of equal distances [`Combine::MinAbs`] and [`Combine::MaxAbs`] keep it.
    /// [`Combine`] says what results from NaN, zeros and infinities, which is what collective calls give.
    ///
    /// ```
    /// use tasuki::engine::Combine;
    /// use tasuki::{Command, Rank};
    /// tasuki::local(2, |job| {
    ///     let (queue, sum, done) = (job.queue(4)?, job.alloc::<f64>(2)?, job.signal()?);
    ///     sum.write(0, &[0.5, job.rank().index() as f64])?;
    ///     job.barrier()?;
    ///     if job.rank() == 1 {
    ///         let add = Command::reduce(sum.pointer(), sum.on(Rank(0)), 2, Combine::Sum);
    ///         queue.post(add.then(done.on(Rank(0)).add(1)))?;
    ///     } else {
    ///         done.wait_at_least(1)?;
    ///         assert_eq!(sum.to_vec()?, [1.0, 1.0]);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
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
                let description =
                    format_args!("{combine:?} of {number:?}({len} bytes from {from} into {to})");
                Command::invalid(Cause::Argument(text), &description)
            }
        }
    }

    /// A command that calls the handler with that name and key.
    pub(crate) fn of_call(to: Rank, (name, key): (&'static str, u64), args: Args) -> Command {
        let call = Call { peer: to, handler: 0, args, reply: ReplyAddress::NONE };
        Command { handler: Some(CalledHandler { name, key }), ..Command::new(Action::Call(call)) }
    }

    /// Does nothing itself. It connects signals: its trigger starts its effects.
    ///
    /// ```
    /// use tasuki::{Command, Rank};
    /// tasuki::local(3, |job| {
    ///     let (queue, all, go) = (job.queue(4)?, job.signal()?, job.signal()?);
    ///     if job.rank() == 0 {
    ///         // When all three have come, everyone may go on.
    ///         for rank in job.ranks() {
    ///             queue.post(Command::nothing().when(all.reaches(3)).then(go.on(rank).add(1)))?;
    ///         }
    ///     }
    ///     job.raise(all.on(Rank(0)), 1)?;
    ///     go.wait_at_least(1)?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn nothing() -> Command {
        Command::new(Action::Nothing)
    }

    /// Adds a trigger: the command fires when the trigger's signal has reached its threshold. A command without a
    /// trigger fires at once.
    ///
    /// A command with two triggers fires when both are met, in either order; if the second is poisoned, that is found
    /// when the first is met. The second trigger takes one more place in the queue and leaves room for 40 bytes of
    /// inline data. A command of a session queue cannot have a trigger.
    ///
    /// ```
    /// use tasuki::{Command, Request};
    /// tasuki::local(1, |job| {
    ///     let (queue, word, me) = (job.queue(4)?, job.alloc::<u64>(1)?, job.rank());
    ///     let (left, right, done) = (job.signal()?, job.signal()?, job.signal()?);
    ///     let both = Command::store(word.on(me), 7).when(left.reaches(1)).when(right.reaches(1));
    ///     queue.post(both.then(done.on(me).add(1)))?;
    ///     job.raise(right.on(me), 1)?;
    ///     assert!(!done.reaches(1).test()); // it waits for both
    ///     job.raise(left.on(me), 1)?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!(word.get(0)?, 7);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn when(mut self, trigger: Trigger<'_>) -> Command {
        let (job, trigger) = trigger.into_core();
        if self.job.is_some_and(|other| other != job) {
            return self
                .checked(Err(Cause::Argument("its triggers are signals of two different jobs".into())));
        }
        self.job = Some(job);
        let added = self.encoded.when(trigger);
        self.checked(added)
    }

    /// Adds an effect: when the command has succeeded and its bytes are visible, a signal of any rank is raised. A
    /// command has at most two effects; the second raises its signal by less than 2^24. If the command fails, the
    /// signal is *poisoned* with the cause instead: waits for the signal fail, and so do the commands that it should
    /// have triggered, and the commands after those.
    ///
    /// The commands of one queue that raise the same signal form a *stream*: they may end in any order, but their
    /// effects happen in the order in which the commands fired.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, row) = (job.queue(4)?, job.alloc::<u64>(2)?);
    ///     let (arrived, sent) = (job.signal()?, job.signal()?);
    ///     let (me, peer) = (job.rank(), job.rank_after(1));
    ///     row.set(0, me.index() as u64)?;
    ///     let copy = Command::copy(row.on(me), row.on(peer).at(1), 1);
    ///     queue.post(copy.then(arrived.on(peer).add(1)).then(sent.on(me).add(1)))?;
    ///     arrived.wait_at_least(1)?; // the peer's value is here
    ///     assert_eq!(row.get(1)?, peer.index() as u64);
    ///     sent.wait_at_least(1)?; // this rank's value is there
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn then(mut self, effect: Effect) -> Command {
        let added = self.encoded.then(effect.0);
        self.checked(added)
    }

    /// Requires that the rank whose memory is read runs the command.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, done, table) = (job.queue(8)?, job.signal()?, job.alloc::<u64>(2)?);
    ///     let peer = job.rank_after(1);
    ///     table.set(0, job.rank().index() as u64)?;
    ///     job.barrier()?;
    ///     let fetch = Command::copy(table.on(peer), table.pointer().at(1), 1);
    ///     queue.post(fetch.by_source().then(done.on(job.rank()).add(1)))?;
    ///     done.wait_at_least(1)?; // while it waits, this rank runs the peer's command
    ///     assert_eq!(table.get(1)?, peer.index() as u64);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn by_source(mut self) -> Command {
        self.encoded.bind(Class::Source);
        self
    }

    /// Requires that the rank whose memory is written runs the command.
    ///
    /// ```
    /// use tasuki::Command;
    /// tasuki::local(2, |job| {
    ///     let (queue, done, table) = (job.queue(8)?, job.signal()?, job.alloc::<u64>(4)?);
    ///     let peer = job.rank_after(1);
    ///     table.fill(job.rank().index() as u64)?;
    ///     job.barrier()?;
    ///     let copy = Command::copy(table.pointer(), table.on(peer).at(2), 2);
    ///     queue.post(copy.by_destination().then(done.on(peer).add(1)))?;
    ///     done.wait_at_least(1)?; // while it waits, this rank runs the peer's command
    ///     assert_eq!(table.get(3)?, peer.index() as u64);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn by_destination(mut self) -> Command {
        self.encoded.bind(Class::Destination);
        self
    }

    /// Checks that the worker with that serial number accepts the command.
    #[inline(always)]
    pub(crate) fn check(&self, worker: u64) -> Result<(), Cause> {
        let is_fine = self.invalid.is_none() && self.job.is_none_or(|job| job == worker);
        if is_fine { Ok(()) } else { Err(self.invalid_cause()) }
    }

    #[cold]
    fn invalid_cause(&self) -> Cause {
        let text = "its trigger is a signal of another job or of another rank";
        self.invalid.as_ref().map_or_else(|| Cause::Argument(text.into()), |invalid| invalid.cause.clone())
    }

    /// Returns true if every post refuses the command.
    pub(crate) fn is_invalid(&self) -> bool {
        self.invalid.is_some()
    }

    /// The encoded command, unless it calls a handler.
    #[inline]
    pub(crate) fn encoded(&self) -> &EncodedCommand {
        &self.encoded
    }

    /// Returns true if it calls a handler.
    #[inline]
    pub(crate) fn is_call(&self) -> bool {
        self.handler.is_some()
    }

    /// The encoded command with the number that its handler has in the job of that worker.
    pub(crate) fn encoded_for(&self, worker: &Worker) -> Result<EncodedCommand, Cause> {
        let mut encoded = self.encoded;
        if let Some(CalledHandler { name, key }) = self.handler {
            let table = worker.handler_table();
            encoded.set_handler(table.find(key).ok_or_else(|| table.not_found(name))?);
        }
        Ok(encoded)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(command) = Core::decode(&self.encoded) else { return f.write_str("an invalid command") };
        match (&self.invalid, self.handler, command.action) {
            (Some(invalid), ..) => f.write_str(&invalid.description),
            (None, Some(handler), Action::Call(call)) => {
                write!(
                    f,
                    "call(handler {:?} of rank {}, {} bytes)",
                    handler.name,
                    call.peer,
                    call.args.len()
                )?;
                command.trigger.map_or(Ok(()), |trigger| trigger.fmt(f))
            }
            _ => command.fmt(f),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({self})")
    }
}
