//! Handlers at work: functions that were named when the job started, called by any rank, run by their own.
//!
//! A rank with handlers has *queues of calls*, one for each number of levels that a call may still lead to. Who calls
//! posts into the queue of the handler's own depth; what that handler calls goes into the queue one level below, on
//! whatever rank, and so on. Threads of the rank that wait, and its helper, read the queues and run the handlers, one
//! at a time. The queues are rings of commands (`queue/area`); nobody takes their lease, because only their own rank's
//! process reads them.
//!
//! **Why nothing locks up** (protocol 11). A handler is run only when there is room in this process for all that it may
//! post, at this level's *following* list; from there it goes on when its destination has room. ActiveMessages of level 0 post
//! nothing, so their queues always empty. If those of level `n` do, the following lists into them do, so calls of level
//! `n + 1` find room and are run. ReplyLines go to lines that were taken before the call was posted. So only who calls
//! first can find a queue full, and is told so.
//!
//! **Order.** ActiveMessages of one rank through one queue are posted in order, are read in order, and run one at a time. What
//! follows them goes through one list for each level.

mod deferred_posts;
mod dispatch;
mod handler_table;
mod reply;
mod request;

pub use dispatch::CallContext;
pub use handler_table::{ArgumentSize, Handler, HandlerEntry, HandlerTable};
#[cfg(loom)]
pub use reply::{TestReplyLine, TestReplyLines};
pub use request::PendingCall;

use super::command_queue::{LocalQueue, QueueName};
use super::sync::try_lock::TryLock;
use super::sync::work_queue::WorkQueue;
use super::worker::Worker;
use crate::base::{Cause, Error, Rank, Result};
use crate::fabric::CommandWrite;
use crate::segment::GlobalAddress;
use crate::segment::layout::signal_offset;
use deferred_posts::DeferredPost;
use dispatch::BufferFetch;
use reply::ReplyLines;
use std::sync::{Arc, Mutex};

/// Places of each queue of calls.
const PLACES: u64 = 256;
/// Places of the queue into which handlers post commands.
const COMMANDS: usize = 256;

/// What a rank with handlers has.
#[derive(Debug)]
pub(super) struct ActiveMessages {
    table: HandlerTable,
    /// By how many levels a call may still lead to.
    levels: Vec<CallLevel>,
    answers: Arc<ReplyLines>,
    /// CommandQueues that handlers post, if any may.
    commands: Option<Arc<LocalQueue>>,
    commands_following: WorkQueue<DeferredPost>,
    /// ReplyLines that wait for their fabric.
    unsent: WorkQueue<CommandWrite>,
    /// The signal that is poisoned by calls which failed and had nobody else to tell.
    failures: u32,
    /// Whether a thread of the rank is running handlers.
    running: TryLock,
    /// Where buffers are brought to; who runs handlers takes it out.
    buffer: Mutex<Vec<u64>>,
}

/// ActiveMessages that may lead to so many levels more.
#[derive(Debug)]
struct CallLevel {
    queue: LocalQueue,
    /// What handlers of this rank call at this level, and finds no room yet.
    following: WorkQueue<DeferredPost>,
    /// The buffer of the call at the head that is on its way.
    bringing: Mutex<Option<BufferFetch>>,
}

impl Worker {
    /// From now on those handlers are called by any rank. The first call of its kind, before the rank has allocated
    /// anything: all ranks then lay it out alike. A number that is the same where it has been, and whether the ranks
    /// agree is to be checked before anybody calls.
    pub fn take_calls(&self, table: HandlerTable) -> Result<u64> {
        let mut fingerprint = table.fingerprint();
        let mut levels = Vec::new();
        for level in 0..=table.depth() {
            let queue = self.lay_out_call_queue(PLACES, level as u32)?;
            fingerprint = fingerprint.rotate_left(7) ^ queue.name().address().offset();
            levels.push(CallLevel { queue, following: WorkQueue::default(), bringing: Mutex::default() });
        }
        let answers = Arc::new(self.make_reply_lines()?);
        let failures = self.registry().signal()?;
        fingerprint ^= u64::from(failures);
        let wanted = table.posts().then(|| self.make_queue(COMMANDS, None)).transpose();
        let calls = ActiveMessages {
            table,
            levels,
            answers,
            commands: wanted.map_err(Error::new)?,
            commands_following: WorkQueue::default(),
            unsent: WorkQueue::default(),
            failures,
            running: TryLock::default(),
            buffer: Mutex::default(),
        };
        self.set_calls(calls);
        Ok(fingerprint)
    }

    /// The number of the handler of that name; if `returns` is said, one that answers so many bytes.
    pub fn handler(&self, name: &str, returns: Option<usize>) -> Result<u8, Cause> {
        match self.calls() {
            Some(calls) => calls.table.find(name, returns),
            None => HandlerTable::default().find(name, returns),
        }
    }

    /// A number that differs where the handlers of that number of two ranks do; 0: there is none.
    pub fn handler_fingerprint(&self, number: usize) -> u64 {
        self.calls().map_or(0, |calls| calls.table.fingerprint_of(number))
    }

    /// What has to be equal on all ranks of the handler of that number, in words.
    pub fn describe_handler(&self, number: usize) -> String {
        self.calls().map_or("none".into(), |calls| calls.table.described(number))
    }

    /// Whether that handler can be called with so many bytes.
    #[inline]
    pub(super) fn check_handler(&self, handler: u8, len: u64) -> Result<(), Cause> {
        match self.calls() {
            Some(calls) => calls.table.check(handler, len).map(drop),
            None => HandlerTable::default().check(handler, len).map(drop),
        }
    }

    /// Why a call of this rank's failed that had nobody else to tell; the first.
    pub fn call_failure(&self) -> Option<Cause> {
        let signal = GlobalAddress::new(self.rank(), signal_offset(self.calls()?.failures));
        self.signal_control_at(signal)?.poisoned().map(|poison| poison.as_own_failure().cause())
    }

    /// Names the handler that a cause knows by its number: it is the same on all ranks.
    pub(in crate::engine) fn name_handler(&self, cause: &mut Cause) {
        match cause {
            Cause::Poisoned { cause, .. } | Cause::Failed { cause, .. } => self.name_handler(cause),
            Cause::HandlerFailed { handler, name } => {
                if let Some(entry) = self.calls().and_then(|calls| calls.table.get(*handler)) {
                    name.clone_from(&entry.name);
                }
            }
            _ => {}
        }
    }

    /// The queue of calls of that rank and level.
    #[inline]
    fn call_queue(&self, calls: &ActiveMessages, to: Rank, level: usize) -> QueueName {
        calls.levels[level].queue.name().on(to)
    }
}
