//! Handlers: functions of a program that any rank can call, run where their data are.

use crate::command::{Command, Effect};
use crate::memory::word::Word;
use crate::{GlobalPtr, Pod, Rank, RemoteSignal, Result};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{ArgumentSize, CallContext, HandlerEntry, HandlerTable, Worker};
use tasuki_core::queue::handler_call::Args;
use tasuki_core::queue::inline_data::{INLINE_BYTES, Inline};

type Function = dyn Fn(&HandlerCx<'_>, &[u8], &mut Inline) -> Result<(), Cause> + Send + Sync;
type Maker = dyn Fn() -> Box<dyn Any + Send + Sync> + Send + Sync;

/// The handlers of a job, and what they work on. Equal on all ranks, which is checked when the job starts.
///
/// A handler is called by [`Job::call`](crate::Job::call), [`Job::call_with_reply`](crate::Job::call_with_reply) or
/// [`Command::call`](crate::Command::call), with up to 48 bytes or a buffer. It runs in a thread of the rank that was
/// called: one that waits, whatever it waits for, or the rank's helper (`tasuki run --helper rank`). A rank that
/// computes and has no helper answers when it waits next.
///
/// Handlers of one rank run one at a time. They must not wait for anything: [`HandlerCx`] has what they may do. A panic
/// ends the call, not the rank; whoever called is told.
///
/// ```
/// use std::sync::Mutex;
/// use std::collections::BTreeMap;
/// use tasuki::{HandlerCx, Handlers, Rank};
///
/// type HandlerTable = Mutex<BTreeMap<u64, u64>>;
/// fn count(cx: &HandlerCx<'_>, key: u64) -> u64 {
///     let mut table = cx.local::<HandlerTable>().lock().expect("no handler panics here");
///     let entry = table.entry(key).or_default();
///     *entry += 1;
///     *entry
/// }
///
/// let handlers = Handlers::new().local(HandlerTable::default).add("count", count);
/// tasuki::local_with(3, &handlers, |job| {
///     let owner = |key: u64| Rank((key % job.size() as u64) as u32);
///     job.call_with_reply::<_, u64>(owner(7), "count", &7_u64)?.wait()?;
///     job.barrier()?;
///     let last: u64 = job.call_with_reply(owner(7), "count", &7_u64)?.wait()?;
///     assert!(last > job.size() as u64);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: NICAM, active messages; the queues' levels, which keep them from locking each other up, are Tasuki's own.
#[derive(Clone, Default)]
pub struct Handlers {
    drafts: Vec<Draft>,
    makers: Vec<(TypeId, Arc<Maker>)>,
    wrong: Option<String>,
}

#[derive(Clone)]
struct Draft {
    name: String,
    takes: ArgumentSize,
    returns: usize,
    depth: usize,
    each: usize,
    function: Arc<Function>,
}

/// A handler by its number, which is found once: [`Job::handler`](crate::Job::handler).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler {
    pub(crate) number: u8,
    returns: usize,
}

/// A handler by name or number.
pub trait HandlerName: Copy + fmt::Debug + sealed::Sealed {
    #[doc(hidden)]
    fn number(self, worker: &Worker, returns: Option<usize>) -> Result<u8, Cause>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for super::Handler {}
}

impl HandlerName for &str {
    fn number(self, worker: &Worker, returns: Option<usize>) -> Result<u8, Cause> {
        worker.handler(self, returns)
    }
}

impl HandlerName for Handler {
    #[inline]
    fn number(self, _: &Worker, returns: Option<usize>) -> Result<u8, Cause> {
        match returns {
            Some(bytes) if bytes != self.returns => {
                let Handler { number, returns } = self;
                Err(Cause::Argument(format!("handler {number} answers {returns} bytes, not {bytes}")))
            }
            _ => Ok(self.number),
        }
    }
}

impl Handler {
    pub(crate) fn find(worker: &Worker, name: &str) -> Result<Handler, Cause> {
        let number = worker.handler(name, None)?;
        let sizes = 0..=INLINE_BYTES;
        let returns = sizes.into_iter().find(|&bytes| worker.handler(name, Some(bytes)).is_ok());
        Ok(Handler { number, returns: returns.unwrap_or(0) })
    }
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// A handler that is given a value, and answers one (`()` for none), each of 48 bytes at most. Names are chosen by
    /// the program, and differ.
    pub fn add<A: Pod, R: Pod>(
        self,
        name: &str,
        run: impl Fn(&HandlerCx<'_>, A) -> R + Send + Sync + 'static,
    ) -> Handlers {
        self.add_fallible(name, move |cx, value| Ok(run(cx, value)))
    }

    /// The same of a handler that may fail. Whoever asked is told the first 48 bytes of what the error says, whoever
    /// waits for the call's effects that it failed; the log of the handler's rank has it all.
    pub fn add_fallible<A: Pod, R: Pod>(
        self,
        name: &str,
        run: impl Fn(&HandlerCx<'_>, A) -> Result<R> + Send + Sync + 'static,
    ) -> Handlers {
        let function = move |cx: &HandlerCx<'_>, bytes: &[u8], into: &mut Inline| {
            let Ok(value) = bytemuck::try_pod_read_unaligned(bytes) else {
                return Err(too_many(bytes.len()));
            };
            answer(run(cx, value), into)
        };
        if size_of::<A>() > INLINE_BYTES {
            return self.refuse(format!("handler {name:?} is given {} bytes at once", size_of::<A>()));
        }
        self.enter::<R>(name, ArgumentSize::Exactly(size_of::<A>()), Arc::new(function))
    }

    /// A handler that is given any number of values: up to 48 bytes with the call, or a buffer of up to 64 KiB, which
    /// is copied to this rank before it runs.
    pub fn add_many<A: Pod, R: Pod>(
        self,
        name: &str,
        run: impl Fn(&HandlerCx<'_>, &[A]) -> R + Send + Sync + 'static,
    ) -> Handlers {
        let function = move |cx: &HandlerCx<'_>, bytes: &[u8], into: &mut Inline| {
            let value = match bytemuck::try_cast_slice(bytes) {
                Ok(values) => run(cx, values),
                // Of a type that is aligned to more than a word.
                Err(_) => {
                    let values = bytes.chunks_exact(size_of::<A>().max(1)).map(bytemuck::pod_read_unaligned);
                    run(cx, &values.collect::<Vec<A>>())
                }
            };
            answer(Ok(value), into)
        };
        self.enter::<R>(name, ArgumentSize::ManyOf(size_of::<A>()), Arc::new(function))
    }

    /// The handler that was added last calls others: one call of it leads to at most `depth` levels of calls, and one
    /// run of it posts at most `each` calls and commands. At most 16 and 64. A handler of which this is not said posts
    /// nothing.
    ///
    /// Costs 72 KiB of memory on each rank for each level.
    pub fn follow_ups(mut self, depth: usize, each: usize) -> Handlers {
        match self.drafts.last_mut() {
            Some(draft) => (draft.depth, draft.each) = (depth, each),
            None => return self.refuse("follow-ups of no handler".into()),
        }
        self
    }

    /// Something that handlers of a rank and its program share: made once on each rank, when the job starts.
    /// [`HandlerCx::local`] and [`Job::local`](crate::Job::local) find it by its type.
    pub fn local<T: Send + Sync + 'static>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Handlers {
        let maker: Arc<Maker> = Arc::new(move || Box::new(make()) as Box<dyn Any + Send + Sync>);
        self.makers.push((TypeId::of::<T>(), maker));
        self
    }

    fn refuse(mut self, text: String) -> Handlers {
        self.wrong.get_or_insert(format!("{text}: at most {INLINE_BYTES} travel with a call"));
        self
    }

    fn enter<R>(mut self, name: &str, takes: ArgumentSize, function: Arc<Function>) -> Handlers {
        let (name, returns) = (name.to_string(), size_of::<R>());
        self.drafts.push(Draft { name, takes, returns, depth: 0, each: 0, function });
        self
    }

    pub(crate) fn are_none(&self) -> bool {
        self.drafts.is_empty()
    }

    /// What a rank's handlers and its program share.
    pub(crate) fn make_locals(&self) -> Locals {
        Locals(self.makers.iter().map(|(of, make)| (*of, make())).collect())
    }

    /// The table of a rank whose handlers share `locals`.
    pub(crate) fn table(&self, locals: &Arc<Locals>) -> Result<HandlerTable, Cause> {
        if let Some(wrong) = &self.wrong {
            return Err(Cause::Argument(wrong.clone()));
        }
        let entry = |draft: &Draft| {
            let Draft { name, takes, returns, depth, each, function } = draft.clone();
            let handler = Box::new(OfRank { function, locals: locals.clone() });
            HandlerEntry { name, takes, returns, depth, each, handler }
        };
        HandlerTable::new(self.drafts.iter().map(entry).collect())
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.drafts.iter().map(|draft| &draft.name)).finish()
    }
}

/// A handler as one rank runs it.
struct OfRank {
    function: Arc<Function>,
    locals: Arc<Locals>,
}

impl tasuki_core::engine::Handler for OfRank {
    fn run(&self, call: &CallContext<'_>, args: &[u8], answer: &mut Inline) -> Result<(), Cause> {
        (self.function)(&HandlerCx { arrived: call, locals: &self.locals }, args, answer)
    }
}

/// What handlers of a rank and its program share.
#[derive(Default)]
pub(crate) struct Locals(Vec<(TypeId, Box<dyn Any + Send + Sync>)>);

impl Locals {
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        let found = self.0.iter().find(|(of, _)| *of == TypeId::of::<T>());
        found.and_then(|(_, value)| value.downcast_ref())
    }
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

/// What a handler is told, and all that it may do: nothing here waits.
#[derive(Debug)]
pub struct HandlerCx<'c> {
    arrived: &'c CallContext<'c>,
    locals: &'c Locals,
}

impl HandlerCx<'_> {
    /// The rank on which it runs.
    pub fn rank(&self) -> Rank {
        self.arrived.worker().rank()
    }

    /// How many ranks the job has.
    pub fn size(&self) -> usize {
        self.arrived.worker().size()
    }

    /// Who called: the rank that posted the call; of a call that fired in a queue, the rank of the queue.
    pub fn from(&self) -> Rank {
        self.arrived.from()
    }

    /// What [`Handlers::local`] made for this rank.
    ///
    /// # Panics
    /// If nothing of that type was made, which ends the call.
    pub fn local<T: Send + Sync + 'static>(&self) -> &T {
        match self.locals.get() {
            Some(value) => value,
            None => panic!("Handlers::local made no {}", std::any::type_name::<T>()),
        }
    }

    /// Calls a handler on any rank, one level below this one. Calls to one rank keep their order. Errors: this handler
    /// was not registered for so many levels, or for so many calls a run ([`Handlers::follow_ups`]); there is no such
    /// handler, or it is given another number of bytes.
    pub fn call<A: Pod>(&self, to: Rank, handler: impl HandlerName, args: &A) -> Result<()> {
        self.follow(to, handler, args, None)
    }

    /// The same; when that handler has run, a signal is raised.
    pub fn call_then<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
        effect: Effect,
    ) -> Result<()> {
        self.follow(to, handler, args, Some(effect))
    }

    fn follow<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
        effect: Option<Effect>,
    ) -> Result<()> {
        let worker = self.arrived.worker();
        let posted = inline(args).and_then(|args| {
            let number = handler.number(worker, None)?;
            self.arrived.call(to, number, args, [effect.map(|effect| effect.0), None])
        });
        posted.map_err(|cause| worker.fault(cause, || format!("call({handler:?} of rank {to})")))
    }

    /// Posts a command without a trigger, which counts among this handler's [`Handlers::follow_ups`]: a copy of an
    /// answer that is too long to travel with it, say. Commands of a rank's handlers fire in their order. A failure
    /// poisons the command's effects.
    pub fn post(&self, command: &Command) -> Result<()> {
        let worker = self.arrived.worker();
        let posted = command.check(worker.serial());
        let posted = posted.and_then(|()| self.arrived.post(command.lines()));
        posted.map_err(|cause| worker.fault(cause, || format!("post({command})")))
    }

    /// Raises a signal of any rank; counts among the follow-ups.
    pub fn raise(&self, signal: RemoteSignal, amount: u32) -> Result<()> {
        self.post(&Command::nothing().then(signal.add(amount)))
    }

    /// Stores a word of any rank; counts among the follow-ups.
    pub fn store<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<()> {
        self.post(&Command::store(at, value))
    }
}

/// A value that a call carries.
pub(crate) fn inline<A: Pod>(args: &A) -> Result<Args, Cause> {
    let bytes = bytemuck::bytes_of(args);
    Inline::of(bytes).map(Args::Inline).ok_or_else(|| too_many(bytes.len()))
}

fn too_many(bytes: usize) -> Cause {
    let text =
        format!("{bytes} bytes: a call carries at most {INLINE_BYTES}; bring a buffer along (call_with)");
    Cause::Argument(text)
}

#[inline(always)]
fn answer<R: Pod>(outcome: Result<R>, into: &mut Inline) -> Result<(), Cause> {
    match outcome {
        Ok(value) if into.set(bytemuck::bytes_of(&value)) => Ok(()),
        Ok(_) => Err(too_many(size_of::<R>())),
        Err(error) => Err(Cause::Program(error.cause().to_string())),
    }
}
