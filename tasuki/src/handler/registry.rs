//! The registry of handlers: functions of a program that any rank can call and that run on the rank that has the
//! data.

use crate::command::{Command, Effect};
use crate::handler::handler_number::HandlerName;
use crate::handler::inline_args::{inline, too_many};
use crate::memory::word::Word;
use crate::onesided::RemoteSignal;
use crate::{GlobalPtr, Pod, Rank, Result};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{ArgumentSize, CallContext, HandlerEntry, HandlerTable};
use tasuki_core::queue::inline_data::{INLINE_BYTES, Inline};

type Function = dyn Fn(&HandlerCx<'_>, &[u8], &mut Inline) -> Result<(), Cause> + Send + Sync;
type Maker = dyn Fn() -> Box<dyn Any + Send + Sync> + Send + Sync;

/// The handlers of a job and the values that they work on. They must be equal on all ranks, which is checked when the
/// job starts. UCX calls them active message handlers.
///
/// A handler is called by [`Job::call`](crate::Job::call), [`Job::call_with_reply`](crate::Job::call_with_reply) or
/// [`Command::call`](crate::Command::call), with up to 48 bytes or a buffer. It runs on the called rank: in a thread
/// that waits for anything, or in the rank's helper (`tasuki run --helper rank`). A rank that computes and has no
/// helper runs it in its next waiting call.
///
/// The handlers of one rank run one at a time. A handler must not wait; [`HandlerCx`] has the calls that it may make.
/// A panic ends the call, not the rank, and the caller gets an error.
///
/// ```
/// use std::sync::Mutex;
/// use std::collections::BTreeMap;
/// use tasuki::{HandlerCx, Handlers, Rank, Request};
///
/// type Counts = Mutex<BTreeMap<u64, u64>>;
/// fn count(cx: &HandlerCx<'_>, key: u64) -> u64 {
///     let mut table = cx.local::<Counts>().lock().expect("no handler panics here");
///     let entry = table.entry(key).or_default();
///     *entry += 1;
///     *entry
/// }
///
/// let handlers = Handlers::new().local(Counts::default).add("count", count);
/// tasuki::local_with(3, &handlers, |job| {
///     let owner = |key: u64| Rank(key as usize % job.size());
///     job.call_with_reply::<_, u64>(owner(7), "count", &7_u64)?.wait()?;
///     job.barrier()?;
///     let last: u64 = job.call_with_reply(owner(7), "count", &7_u64)?.wait()?;
///     assert!(last > job.size() as u64);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: NICAM, active messages. The levels of the queues, which prevent deadlocks between handlers, are Tasuki's
/// own.
#[derive(Clone, Default)]
pub struct Handlers {
    entries: Vec<Entry>,
    makers: Vec<(TypeId, Arc<Maker>)>,
    invalid: Option<String>,
}

#[derive(Clone)]
struct Entry {
    name: String,
    takes: ArgumentSize,
    returns: usize,
    depth: usize,
    each: usize,
    function: Arc<Function>,
}

impl Handlers {
    /// An empty set of handlers.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Adds a handler that takes one value and returns one (`()` for none), each of at most 48 bytes. Each handler
    /// has a different name.
    pub fn add<A: Pod, R: Pod>(
        self,
        name: &str,
        run: impl Fn(&HandlerCx<'_>, A) -> R + Send + Sync + 'static,
    ) -> Handlers {
        self.add_fallible(name, move |cx, value| Ok(run(cx, value)))
    }

    /// Adds a handler that may fail. A caller with a reply gets the first 48 bytes of the error's text. A rank that
    /// waits for the call's effects gets an error without the text. The log of the handler's rank has the whole text.
    pub fn add_fallible<A: Pod, R: Pod>(
        self,
        name: &str,
        run: impl Fn(&HandlerCx<'_>, A) -> Result<R> + Send + Sync + 'static,
    ) -> Handlers {
        let function = move |cx: &HandlerCx<'_>, bytes: &[u8], into: &mut Inline| {
            let Ok(value) = bytemuck::try_pod_read_unaligned(bytes) else {
                return Err(too_many(bytes.len()));
            };
            set_reply(run(cx, value), into)
        };
        if size_of::<A>() > INLINE_BYTES {
            return self.invalidate(format!("handler {name:?} takes {} bytes", size_of::<A>()));
        }
        self.push::<R>(name, ArgumentSize::Exactly(size_of::<A>()), Arc::new(function))
    }

    /// Adds a handler that takes any number of values: up to 48 bytes within the call, or a buffer of up to 64 KiB,
    /// which is copied to the handler's rank before the handler runs.
    pub fn add_many<A: Pod, R: Pod>(
        self,
        name: &str,
        run: impl Fn(&HandlerCx<'_>, &[A]) -> R + Send + Sync + 'static,
    ) -> Handlers {
        let function = move |cx: &HandlerCx<'_>, bytes: &[u8], into: &mut Inline| {
            let value = match bytemuck::try_cast_slice(bytes) {
                Ok(values) => run(cx, values),
                // The type has a larger alignment than a word.
                Err(_) => {
                    let values = bytes.chunks_exact(size_of::<A>().max(1)).map(bytemuck::pod_read_unaligned);
                    run(cx, &values.collect::<Vec<A>>())
                }
            };
            set_reply(Ok(value), into)
        };
        self.push::<R>(name, ArgumentSize::ManyOf(size_of::<A>()), Arc::new(function))
    }

    /// Permits the handler that was added last to call other handlers: one call of it leads to at most `depth` levels
    /// of calls (at most 16), and one run of it posts at most `each` calls and commands (at most 64). By default a
    /// handler posts nothing.
    ///
    /// Cost: 72 KiB of memory on each rank for each level.
    pub fn follow_ups(mut self, depth: usize, each: usize) -> Handlers {
        match self.entries.last_mut() {
            Some(entry) => (entry.depth, entry.each) = (depth, each),
            None => return self.invalidate("follow_ups is called after the handler that it is for".into()),
        }
        self
    }

    /// Adds a value that the handlers of a rank share with its program. `make` runs once on each rank when the job
    /// starts. [`HandlerCx::local`] and [`Job::local`](crate::Job::local) find the value by its type.
    pub fn local<T: Send + Sync + 'static>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Handlers {
        let maker: Arc<Maker> = Arc::new(move || Box::new(make()) as Box<dyn Any + Send + Sync>);
        self.makers.push((TypeId::of::<T>(), maker));
        self
    }

    fn invalidate(mut self, text: String) -> Handlers {
        self.invalid.get_or_insert(format!("{text}: a call carries at most {INLINE_BYTES} bytes"));
        self
    }

    fn push<R>(mut self, name: &str, takes: ArgumentSize, function: Arc<Function>) -> Handlers {
        let (name, returns) = (name.to_string(), size_of::<R>());
        self.entries.push(Entry { name, takes, returns, depth: 0, each: 0, function });
        self
    }

    pub(crate) fn are_none(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes the values that a rank's handlers share with its program.
    pub(crate) fn make_locals(&self) -> Locals {
        Locals(self.makers.iter().map(|(of, make)| (*of, make())).collect())
    }

    /// The table of a rank whose handlers share `locals`.
    pub(crate) fn table(&self, locals: &Arc<Locals>) -> Result<HandlerTable, Cause> {
        if let Some(invalid) = &self.invalid {
            return Err(Cause::Argument(invalid.clone()));
        }
        let with_locals = |entry: &Entry| {
            let Entry { name, takes, returns, depth, each, function } = entry.clone();
            let handler = Box::new(RankHandler { function, locals: locals.clone() });
            HandlerEntry { name, takes, returns, depth, posts_max: each, handler }
        };
        HandlerTable::new(self.entries.iter().map(with_locals).collect())
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| &entry.name)).finish()
    }
}

/// A handler with the values of one rank.
struct RankHandler {
    function: Arc<Function>,
    locals: Arc<Locals>,
}

impl tasuki_core::engine::Handler for RankHandler {
    fn run(&self, call: &CallContext<'_>, args: &[u8], reply: &mut Inline) -> Result<(), Cause> {
        (self.function)(&HandlerCx { context: call, locals: &self.locals }, args, reply)
    }
}

/// The values that a rank's handlers share with its program.
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

/// The context of a running handler: what it knows, and the calls that it may make. None of them waits.
#[derive(Debug)]
pub struct HandlerCx<'c> {
    context: &'c CallContext<'c>,
    locals: &'c Locals,
}

impl HandlerCx<'_> {
    /// The rank on which the handler runs.
    pub fn rank(&self) -> Rank {
        self.context.worker().rank()
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> usize {
        self.context.worker().size()
    }

    /// The rank that posted the call. For a call that fired in a queue, the rank of the queue.
    pub fn from(&self) -> Rank {
        self.context.from()
    }

    /// The value that [`Handlers::local`] made for this rank.
    ///
    /// # Panics
    /// If no value of this type was made. The panic ends the call.
    pub fn local<T: Send + Sync + 'static>(&self) -> &T {
        match self.locals.get() {
            Some(value) => value,
            None => panic!("Handlers::local made no value of type {}", std::any::type_name::<T>()),
        }
    }

    /// Calls a handler of any rank, one level below this one. Calls to one rank stay in order.
    /// Errors: this handler was not registered for that many levels, or for that many calls in one
    /// run ([`Handlers::follow_ups`]); there is no such handler, or it takes another number of
    /// bytes.
    pub fn call<A: Pod>(&self, to: Rank, handler: impl HandlerName, args: &A) -> Result<()> {
        self.post_call(to, handler, args, None)
    }

    /// Calls a handler like [`HandlerCx::call`], and raises a signal when the called handler has
    /// run.
    pub fn call_then<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
        effect: Effect,
    ) -> Result<()> {
        self.post_call(to, handler, args, Some(effect))
    }

    fn post_call<A: Pod>(
        &self,
        to: Rank,
        handler: impl HandlerName,
        args: &A,
        effect: Option<Effect>,
    ) -> Result<()> {
        let worker = self.context.worker();
        let posted = inline(args).and_then(|args| {
            let number = handler.number(worker, None)?;
            self.context.call(to, number, args, [effect.map(|effect| effect.0), None])
        });
        posted.map_err(|cause| worker.fault(cause, || format!("call({handler:?} of rank {to})")))
    }

    /// Posts a command without a trigger, for instance a copy of data that are too long for a reply. It counts among
    /// this handler's [`Handlers::follow_ups`]. The commands of a rank's handlers fire in order. A failure poisons
    /// the command's effects.
    pub fn post(&self, command: &Command) -> Result<()> {
        let worker = self.context.worker();
        let posted = command.check(worker.serial());
        let posted = posted.and_then(|()| self.context.post(command.encoded()));
        posted.map_err(|cause| worker.fault(cause, || format!("post({command})")))
    }

    /// Raises a signal of any rank. Counts among the follow-ups.
    pub fn raise(&self, signal: RemoteSignal, amount: u32) -> Result<()> {
        self.post(&Command::nothing().then(signal.add(amount)))
    }

    /// Stores a word of any rank. Counts among the follow-ups.
    pub fn store<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<()> {
        self.post(&Command::store(at, value))
    }
}

#[inline(always)]
fn set_reply<R: Pod>(outcome: Result<R>, into: &mut Inline) -> Result<(), Cause> {
    match outcome {
        Ok(value) if into.set(bytemuck::bytes_of(&value)) => Ok(()),
        Ok(_) => Err(too_many(size_of::<R>())),
        Err(error) => Err(Cause::Program(error.cause().to_string())),
    }
}
