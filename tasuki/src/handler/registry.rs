//! The handlers of a job, and what a running handler may do.

use super::argument::{Argument, Outcome};
use super::declaration::Handler;
use crate::command::Command;
use crate::memory::word::Word;
use crate::onesided::RemoteSignal;
use crate::{GlobalPtr, Rank, Result};
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{CallContext, HandlerEntry, HandlerTable};
use tasuki_core::queue::inline_data::Inline;

type Maker = dyn Fn() -> Box<dyn Any + Send + Sync> + Send + Sync;
type MakeEntry = dyn Fn(&Arc<Locals>) -> HandlerEntry + Send + Sync;

/// The handlers of a job and the values that they work on.
///
/// All ranks add the same handlers in the same order: the same names, types and
/// [`follow_ups`](Handler::follow_ups). That is checked when the job starts, and a difference is an error on all ranks
/// that names the handler. A job has at most 255 handlers.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
/// use tasuki::{Handler, HandlerCx, Handlers, Rank, Request};
///
/// type Counts = Mutex<BTreeMap<u64, u64>>;
/// fn count(cx: &HandlerCx<'_>, key: &u64) -> u64 {
///     let mut table = cx.local::<Counts>().lock().expect("no handler panics here");
///     let entry = table.entry(*key).or_default();
///     *entry += 1;
///     *entry
/// }
/// const COUNT: Handler<u64, u64> = Handler::new("count", count);
///
/// tasuki::local_with(3, Handlers::new().local(Counts::default).add(COUNT), |job| {
///     let owner = |key: u64| Rank(key as usize % job.size());
///     COUNT.call(job, owner(7), &7)?.wait()?;
///     job.barrier()?;
///     assert!(COUNT.call(job, owner(7), &7)?.wait()? > job.size() as u64);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Handlers {
    entries: Vec<(&'static str, Arc<MakeEntry>)>,
    makers: Vec<(TypeId, Arc<Maker>)>,
}

impl Handlers {
    /// An empty set of handlers.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Request};
    /// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
    /// tasuki::local_with(2, Handlers::new().add(DOUBLE), |job| {
    ///     assert_eq!(DOUBLE.call(job, job.rank_after(1), &4)?.wait()?, 8);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Adds a handler.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers};
    ///
    /// const DOUBLE: Handler<u64, u64> = Handler::new("double", |_, value| 2 * value);
    /// const LENGTH: Handler<[u8], usize> = Handler::new("length", |_, text| text.len());
    /// let handlers = Handlers::new().add(DOUBLE).add(LENGTH);
    /// assert_eq!(format!("{handlers:?}"), r#"["double", "length"]"#);
    /// ```
    #[must_use]
    #[allow(clippy::should_implement_trait)] // the trait would need a name for the type of its argument
    pub fn add<A: Argument + ?Sized, R: Outcome + ?Sized>(mut self, handler: Handler<A, R>) -> Handlers {
        let entry = move |locals: &Arc<Locals>| HandlerEntry {
            name: handler.name(),
            key: handler.key(),
            takes: Handler::<A, R>::takes(),
            returns: Handler::<A, R>::returns(),
            depth: handler.depth,
            posts_max: handler.posts_max,
            handler: Box::new(RankHandler { handler, locals: locals.clone() }),
        };
        self.entries.push((handler.name(), Arc::new(entry)));
        self
    }

    /// Adds a value that the handlers of a rank share with its program. `make` runs once on each rank when the job
    /// starts. [`HandlerCx::local`] and [`Job::local`](crate::Job::local) find the value by its type. The program must
    /// not hold a lock of it over a call that waits ([`Job::local`](crate::Job::local)).
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use tasuki::{Handler, Handlers};
    /// type Inbox = Mutex<Vec<u32>>;
    /// const DELIVER: Handler<u32, ()> = Handler::new("deliver", |cx, &item| {
    ///     cx.local::<Inbox>().lock().expect("no handler panics here").push(item);
    /// });
    /// tasuki::local_with(2, Handlers::new().local(Inbox::default).add(DELIVER), |job| {
    ///     DELIVER.post(job, job.rank_after(1), &7)?;
    ///     job.flush_calls()?;
    ///     job.barrier()?;
    ///     let inbox = job.local::<Inbox>().expect("the job has one");
    ///     assert_eq!(*inbox.lock().expect("no handler panics here"), [7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn local<T: Send + Sync + 'static>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Handlers {
        let maker: Arc<Maker> = Arc::new(move || Box::new(make()) as Box<dyn Any + Send + Sync>);
        self.makers.push((TypeId::of::<T>(), maker));
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
        HandlerTable::new(self.entries.iter().map(|(_, entry)| entry(locals)).collect())
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|(name, _)| name)).finish()
    }
}

/// A handler with the values of one rank.
struct RankHandler<A: Argument + ?Sized, R: Outcome + ?Sized> {
    handler: Handler<A, R>,
    locals: Arc<Locals>,
}

impl<A: Argument + ?Sized, R: Outcome + ?Sized> tasuki_core::engine::Handler for RankHandler<A, R> {
    fn run(&self, call: &CallContext<'_>, args: &[u8], reply: &mut Inline) -> Result<(), Cause> {
        self.handler.run(&HandlerCx { context: call, locals: &self.locals }, call, args, reply)
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
///
/// ```
/// use tasuki::{Handler, HandlerCx, Handlers, Request};
/// fn greet(cx: &HandlerCx<'_>, _: &()) -> [usize; 3] {
///     [cx.rank().index(), cx.from().index(), cx.size()]
/// }
/// const GREET: Handler<(), [usize; 3]> = Handler::new("greet", greet);
/// tasuki::local_with(3, Handlers::new().add(GREET), |job| {
///     let next = job.rank_after(1);
///     assert_eq!(GREET.call(job, next, &())?.wait()?, [next.index(), job.rank().index(), 3]);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct HandlerCx<'c> {
    pub(super) context: &'c CallContext<'c>,
    locals: &'c Locals,
}

impl HandlerCx<'_> {
    /// The rank on which the handler runs.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Rank, Request};
    /// const WHERE: Handler<(), Rank> = Handler::new("where", |cx, _| cx.rank());
    /// tasuki::local_with(2, Handlers::new().add(WHERE), |job| {
    ///     assert_eq!(WHERE.call(job, job.rank_after(1), &())?.wait()?, job.rank_after(1));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn rank(&self) -> Rank {
        self.context.worker().rank()
    }

    /// The number of ranks of the job.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Request};
    /// const IS_LAST: Handler<(), u8> = Handler::new("is last", |cx, _| (cx.rank().index() + 1 == cx.size()).into());
    /// tasuki::local_with(2, Handlers::new().add(IS_LAST), |job| {
    ///     assert_eq!(IS_LAST.call(job, job.rank_after(1), &())?.wait()?, 1 - job.rank().index() as u8);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn size(&self) -> usize {
        self.context.worker().size()
    }

    /// The rank that posted the call. For a call that fired in a queue, the rank of the queue.
    ///
    /// ```
    /// use tasuki::{Handler, Handlers, Rank, Request};
    /// const WHO: Handler<(), Rank> = Handler::new("who", |cx, _| cx.from());
    /// tasuki::local_with(2, Handlers::new().add(WHO), |job| {
    ///     assert_eq!(WHO.call(job, job.rank_after(1), &())?.wait()?, job.rank());
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn from(&self) -> Rank {
        self.context.from()
    }

    /// The value that [`Handlers::local`] made for this rank.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// use tasuki::{Handler, Handlers, Rank, Request};
    /// const TICKET: Handler<(), u64> = Handler::new("ticket", |cx, _| cx.local::<AtomicU64>().fetch_add(1, Relaxed));
    /// tasuki::local_with(3, Handlers::new().local(AtomicU64::default).add(TICKET), |job| {
    ///     let mine = TICKET.call(job, Rank(0), &())?.wait()?;
    ///     let mut tickets = job.world().allgather(&mine)?;
    ///     tickets.sort();
    ///     assert_eq!(tickets, [0, 1, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// # Panics
    /// If no value of this type was made. The panic ends the call.
    pub fn local<T: Send + Sync + 'static>(&self) -> &T {
        match self.locals.get() {
            Some(value) => value,
            None => panic!("Handlers::local made no value of type {}", std::any::type_name::<T>()),
        }
    }

    /// Posts a command without a trigger, for instance a copy of data that are too long for a reply. It counts among
    /// this handler's [`Handler::follow_ups`]. The commands of a rank's handlers fire in order. A failure poisons
    /// the command's effects.
    ///
    /// ```
    /// use tasuki::onesided::RemoteSignal;
    /// use tasuki::{Command, GlobalPtr, Handler, HandlerCx, Handlers};
    ///
    /// #[derive(Clone, Copy, tasuki::Pod, tasuki::Zeroable)]
    /// # #[bytemuck(crate = "tasuki::bytemuck")]
    /// #[repr(C)]
    /// struct Fetch {
    ///     from: GlobalPtr<u64>,
    ///     to: GlobalPtr<u64>,
    ///     done: RemoteSignal,
    /// }
    /// fn fetch(cx: &HandlerCx<'_>, wanted: &Fetch) {
    ///     let copy = Command::copy(wanted.from, wanted.to, 100).then(wanted.done.add(1));
    ///     cx.post(&copy).expect("there is room for one follow-up");
    /// }
    /// const FETCH: Handler<Fetch, ()> = Handler::new("fetch", fetch).follow_ups(1, 1);
    ///
    /// tasuki::local_with(2, Handlers::new().add(FETCH), |job| {
    ///     let (data, done, peer) = (job.alloc::<u64>(200)?, job.signal()?, job.rank_after(1));
    ///     data.write(0, &[job.rank().index() as u64; 100])?;
    ///     job.barrier()?;
    ///     let wanted = Fetch { from: data.on(peer), to: data.pointer().at(100), done: done.on(job.rank()) };
    ///     FETCH.post(job, peer, &wanted)?;
    ///     done.wait_at_least(1)?;
    ///     assert_eq!(data.get(199)?, peer.index() as u64);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn post(&self, command: &Command) -> Result<()> {
        let worker = self.context.worker();
        let posted = command.check(worker.serial());
        let posted = posted.and_then(|()| self.context.post(command.encoded()));
        posted.map_err(|cause| worker.fault(cause, || format!("post({command})")))
    }

    /// Raises a signal of any rank. Counts among the follow-ups.
    ///
    /// ```
    /// use tasuki::onesided::RemoteSignal;
    /// use tasuki::{Handler, Handlers};
    /// const PING: Handler<RemoteSignal, ()> = Handler::new("ping", |cx, answer| {
    ///     cx.raise(*answer, 1).expect("there is room for one follow-up");
    /// })
    /// .follow_ups(1, 1);
    /// tasuki::local_with(2, Handlers::new().add(PING), |job| {
    ///     let answer = job.signal()?;
    ///     PING.post(job, job.rank_after(1), &answer.on(job.rank()))?;
    ///     answer.wait_at_least(1)?;
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn raise(&self, signal: RemoteSignal, amount: u32) -> Result<()> {
        self.post(&Command::nothing().then(signal.add(amount)))
    }

    /// Stores a word of any rank. Counts among the follow-ups.
    ///
    /// ```
    /// use tasuki::{GlobalPtr, Handler, Handlers};
    /// const WRITE: Handler<GlobalPtr<u64>, ()> = Handler::new("write", |cx, at| {
    ///     cx.store(*at, 100 + cx.rank().index() as u64).expect("there is room for one follow-up");
    /// })
    /// .follow_ups(1, 1);
    /// tasuki::local_with(2, Handlers::new().add(WRITE), |job| {
    ///     let words = job.alloc::<u64>(1)?;
    ///     WRITE.post(job, job.rank_after(1), &words.pointer())?;
    ///     job.flush_calls()?;
    ///     while job.load(words.pointer())? != 100 + job.rank_after(1).index() as u64 {
    ///         job.serve()?;
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn store<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<()> {
        self.post(&Command::store(at, value))
    }
}
