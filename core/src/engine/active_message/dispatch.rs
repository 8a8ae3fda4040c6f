//! Running handlers: calls are read, their buffers brought, their answers and effects sent.

use super::deferred_posts::{DeferredPost, has_room};
use super::handler_table::{Handler, HandlerEntry};
use super::request::written;
use super::{ActiveMessages, CallLevel};
use crate::base::log::Level as Loud;
use crate::base::{Cause, Rank, panic_message};
use crate::engine::command_queue::ResolvedQueue;
use crate::engine::sync::work_queue::WorkQueue;
use crate::engine::worker::Worker;
use crate::engine::{BufferView, CachePolicy, RevocableBuffer, Started};
use crate::fabric::{CommandWrite, Poison};
use crate::queue::command::Effect;
use crate::queue::encoding::EncodedCommand;
use crate::queue::handler_call::{Args, BUFFER_MAX, Call, ReceivedCall, Reply, ReplyAddress};
use crate::queue::inline_data::{INLINE_BYTES, Inline};
use crate::queue::ring::LINE_WORDS;
use crate::segment::GlobalAddress;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, PoisonError};

/// Handlers that are run in a row before the thread looks at what it waits for.
const IN_A_ROW: usize = 32;

/// A buffer on its way to a handler.
#[derive(Debug)]
pub(super) struct BufferFetch {
    /// The operation; none: its fabric had no room.
    operation: Option<u64>,
    loan: Arc<RevocableBuffer>,
}

/// What a handler is told of its call, and what it may do.
#[derive(Debug)]
pub struct CallContext<'m> {
    worker: &'m Worker,
    calls: &'m ActiveMessages,
    from: Rank,
    level: usize,
    /// How much it may still post.
    left: Cell<usize>,
}

impl<'m> CallContext<'m> {
    /// The rank on which it runs.
    pub fn worker(&self) -> &'m Worker {
        self.worker
    }

    /// Who called.
    pub fn from(&self) -> Rank {
        self.from
    }

    /// ActiveMessages a handler, on any rank, one level below.
    pub fn call(&self, to: Rank, handler: u8, args: Args, effects: [Option<Effect>; 2]) -> Result<(), Cause> {
        self.worker.check_rank(to)?;
        self.calls.table.check(handler, args.len())?;
        let Some(level) = self.level.checked_sub(1) else {
            return Err(Cause::Argument("calls deeper than its follow_ups allow".into()));
        };
        self.count()?;
        let call = Call { peer: self.worker.rank(), handler, args, answer: ReplyAddress::NONE };
        let queue = self.worker.call_queue(self.calls, to, level);
        self.worker.follow(&self.calls.levels[level].following, queue, &written(call, &effects)?)
    }

    /// Posts a command without a trigger, that calls no handler.
    pub fn post(&self, command: &EncodedCommand) -> Result<(), Cause> {
        if command.triggers()[0].is_some() || command.call().is_some() {
            let text = "a handler posts commands without triggers, and calls handlers by call()";
            return Err(Cause::Argument(text.into()));
        }
        self.worker.check_command(command, false)?;
        self.count()?;
        let none = || Cause::Bug("a handler that posts, and no queue for it".into());
        let queue = self.calls.commands.as_ref().ok_or_else(none)?.name();
        self.worker.follow(&self.calls.commands_following, queue, command)
    }

    /// One more is posted.
    fn count(&self) -> Result<(), Cause> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(Cause::Argument("posts more a run than its follow_ups allow".into()));
        };
        self.left.set(left);
        Ok(())
    }
}

impl Worker {
    /// Whether [`Worker::run_calls`] would find something.
    #[inline]
    pub(in crate::engine) fn calls_look_ready(&self) -> bool {
        self.calls().is_some_and(|calls| calls.have_come() || !calls.are_quiet())
    }

    /// Runs handlers that were called, and posts what follows them, unless another thread of the rank does. Whether
    /// that was of use.
    #[inline]
    pub(in crate::engine) fn run_calls(&self) -> bool {
        let Some(calls) = self.calls() else { return false };
        if !calls.have_come() && calls.are_quiet() {
            return false;
        }
        let Some(_turn) = calls.running.take() else { return false };
        let mut of_use = !calls.are_quiet() && self.post_following(calls);
        for _ in 0..IN_A_ROW {
            let ran = calls.levels.iter().enumerate().any(|(at, level)| self.run_next(calls, at, level));
            if !ran {
                break;
            }
            of_use = true;
        }
        of_use
    }

    /// Runs the next call of that level, if there is one and room for what follows it.
    fn run_next(&self, calls: &ActiveMessages, at: usize, level: &CallLevel) -> bool {
        let queue = level.queue.queue();
        let position = queue.reader().read();
        if !has_room(&calls.unsent, 1) {
            return false;
        }
        let named = self.named(&level.queue);
        let Some(lines) = self.lines_at(&named, position) else { return false };
        let Some(call) = lines.call() else {
            queue.reader().set_read(position + lines.count().max(1));
            return true; // nobody can have posted it
        };
        self.fetch_reply_line(call.answer);
        let entry = calls.table.check(call.handler, call.len);
        let each = entry.as_ref().map_or(0, |entry| entry.each);
        let below = at.checked_sub(1).map(|below| &calls.levels[below].following);
        let takes_all = |following: &WorkQueue<DeferredPost>| has_room(following, each);
        if !below.is_none_or(takes_all) || !takes_all(&calls.commands_following) {
            return false;
        }
        let begin = self.recorder().map_or(0, |_| self.platform().observer_now_ns());
        let done = || queue.reader().set_read(position + lines.count());
        let arrived = CallContext { worker: self, calls, from: call.peer, level: at, left: Cell::new(each) };
        let mut answer = Inline::EMPTY;
        let outcome = match (entry, call.buffer) {
            (Err(cause), _) => Err(cause),
            (Ok(entry), None) => {
                done();
                run(entry, &arrived, lines.carried(), &mut answer)
            }
            (Ok(entry), Some(from)) => {
                let run = |bytes: &[u8]| run(entry, &arrived, bytes, &mut answer);
                match self.run_with(calls, level, from, call.len, run) {
                    Some(outcome) => outcome,
                    None => return false,
                }
            }
        };
        done();
        if let Some(recorder) = self.recorder() {
            let name = calls.table.get(call.handler).map_or("handler", |entry| &entry.name);
            self.record_handled(recorder, begin, &named, position, (name, outcome.is_err()));
        }
        self.tell(calls, &named, &call, &lines.effects(), outcome.map(|()| &answer));
        true
    }

    /// Runs a handler with a buffer from there. `None`: it is on its way.
    fn run_with(
        &self,
        calls: &ActiveMessages,
        level: &CallLevel,
        from: GlobalAddress,
        len: u64,
        run: impl FnOnce(&[u8]) -> Result<(), Cause>,
    ) -> Option<Result<(), Cause>> {
        let mut buffer = std::mem::take(&mut *calls.buffer());
        buffer.resize(BUFFER_MAX as usize / 8, 0);
        let bytes = &mut bytemuck::cast_slice_mut(&mut buffer)[..len.min(BUFFER_MAX) as usize];
        let brought = self.bring(level, from, bytes);
        let outcome = brought.map(|brought| brought.and_then(|()| run(bytes)));
        *calls.buffer() = buffer;
        outcome
    }

    /// Copies a call's buffer here. `None`: it is on its way.
    fn bring(&self, level: &CallLevel, from: GlobalAddress, bytes: &mut [u8]) -> Option<Result<(), Cause>> {
        let len = bytes.len();
        if len == 0 || self.copy_in(from, BufferView::of_mut(bytes), 0, len as u64, CachePolicy::Cached) {
            return Some(Ok(()));
        }
        let mut place = level.bringing();
        let mut one = place
            .take()
            .unwrap_or_else(|| BufferFetch { operation: None, loan: RevocableBuffer::zeroed(len) });
        drop(place); // the fabric is called without it
        match self.advance_bringing(&mut one, from, len) {
            None => {
                *level.bringing() = Some(one);
                None
            }
            Some(brought) => Some(brought.and_then(|()| {
                one.loan.enter()?.view().read(0, bytes);
                Ok(())
            })),
        }
    }

    fn advance_bringing(
        &self,
        one: &mut BufferFetch,
        from: GlobalAddress,
        len: usize,
    ) -> Option<Result<(), Cause>> {
        if let Some(operation) = one.operation {
            return self.take_outcome(operation).map(|outcome| outcome.map(drop));
        }
        let launched = one.loan.enter().and_then(|used| self.start_get(from, &used, 0..len));
        match launched {
            Ok(Started::Done(_)) => Some(Ok(())),
            Ok(Started::InFlight(operation)) => {
                one.operation = Some(operation);
                None
            }
            Ok(Started::Later) => None,
            Err(cause) => Some(Err(cause)),
        }
    }

    /// Tells how a call ended: who asked, whoever waits for its effects, or else who called.
    #[inline(always)]
    fn tell(
        &self,
        calls: &ActiveMessages,
        named: &ResolvedQueue<'_>,
        call: &ReceivedCall,
        effects: &[Option<Effect>; 2],
        outcome: Result<&Inline, Cause>,
    ) {
        let (asks, follows) = (!call.answer.is_none(), effects[0].is_some());
        match outcome {
            Ok(value) => {
                if asks {
                    self.answer(calls, call.answer, Reply::value_words(value));
                }
                if follows {
                    self.let_happen(Some(named), effects, None);
                }
            }
            Err(cause) => self.tell_failure(calls, call, effects, &cause),
        }
    }

    #[cold]
    fn tell_failure(
        &self,
        calls: &ActiveMessages,
        call: &ReceivedCall,
        effects: &[Option<Effect>; 2],
        cause: &Cause,
    ) {
        let (asks, follows) = (!call.answer.is_none(), effects[0].is_some());
        if asks {
            self.answer(calls, call.answer, self.failed_reply(cause).words());
        }
        let name = calls.table.get(call.handler).map_or("", |entry| &entry.name);
        let level = if asks || follows { Loud::Info } else { Loud::Warn };
        self.log().say(level, format_args!("handler {name:?}, called by rank {}: {cause}", call.peer));
        if follows || !asks {
            // What the handler said stays here.
            let failed = Cause::HandlerFailed { handler: call.handler, name: String::new() };
            let cause = if let Cause::Program(_) = cause { &failed } else { cause };
            self.fail_call(calls, call.peer, effects, cause);
        }
    }

    fn failed_reply(&self, cause: &Cause) -> Reply {
        if let Cause::Program(_) | Cause::Argument(_) | Cause::Unsupported(_) = cause {
            let text = cause.to_string();
            let text = &text.as_bytes()[..text.len().min(INLINE_BYTES)];
            Inline::of(text).map_or(Reply::Failed(Poison::of(cause, self.rank())), Reply::Said)
        } else {
            Reply::Failed(Poison::of(cause, self.rank()))
        }
    }

    /// Writes an answer where it is waited for.
    #[inline(always)]
    fn answer(&self, calls: &ActiveMessages, place: ReplyAddress, words: [u64; LINE_WORDS]) {
        if !self.write_reply(place, &words) {
            let (places, words) = ([place.line(); 2], [words, [0; LINE_WORDS]]);
            self.send_reply(calls, CommandWrite { places, position: place.turn(), words, lines: 1 });
        }
    }

    /// The rank leaves: takes no more calls, and runs those that it has taken.
    pub(in crate::engine) fn end_calls(&self) {
        let Some(calls) = self.calls() else { return };
        let closed: Vec<u64> =
            calls.levels.iter().map(|level| self.close(&level.queue).unwrap_or(0)).collect();
        let is_over = || {
            let mut levels = calls.levels.iter().zip(&closed);
            let all_ran = levels.all(|(level, &lines)| level.queue.queue().reader().read() >= lines);
            fence(Ordering::Acquire); // SYNC ring-read
            // In this order: what follows a call is there before the turn ends in which it was read.
            all_ran && !calls.running.is_taken() && calls.are_quiet() && self.has_forwarded()
        };
        while !is_over() && self.check().is_ok() {
            self.run_calls();
            self.pause();
        }
    }
}

impl ActiveMessages {
    /// Whether a call has come.
    #[inline]
    fn have_come(&self) -> bool {
        self.levels.iter().any(|level| {
            let queue = level.queue.queue();
            let position = queue.reader().read();
            queue.line(position).holds(position)
        })
    }

    /// Whether nothing waits for room.
    #[inline]
    fn are_quiet(&self) -> bool {
        self.levels.iter().all(|level| level.following.is_empty())
            && self.commands_following.is_empty()
            && self.unsent.is_empty()
    }

    fn buffer(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallLevel {
    fn bringing(&self) -> std::sync::MutexGuard<'_, Option<BufferFetch>> {
        self.bringing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a handler. Its panic is a failure of its call, and of nothing else.
#[inline(always)]
fn run(
    entry: &HandlerEntry,
    arrived: &CallContext<'_>,
    bytes: &[u8],
    answer: &mut Inline,
) -> Result<(), Cause> {
    let handler: &dyn Handler = &*entry.handler;
    match catch_unwind(AssertUnwindSafe(|| handler.run(arrived, bytes, answer))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = format!("panicked: {}", panic_message(&*panic));
            drop(panic); // which may panic itself: what is returned would not be freed then
            Err(Cause::Program(text))
        }
    }
}
