//! The called side: reads calls, fetches their buffers, runs handlers, sends replies and performs effects.

use super::active_messages::{ActiveMessages, BufferFetch, CallContext, CallLevel};
use super::block_pool::Purpose;
use super::deferred_list::{DeferredList, DeferredPost};
use super::handler_table::{Handler, HandlerEntry};
use crate::base::log::Level as LogLevel;
use crate::base::sync::{Ordering, fence};
use crate::base::{Cause, Rank, panic_message};
use crate::engine::command_queue::ResolvedQueue;
use crate::engine::worker::Worker;
use crate::engine::{BufferView, CachePolicy, RevocableBuffer, Started};
use crate::fabric::Poison;
use crate::queue::command::Effect;
use crate::queue::handler_call::{FLUSH, ReceivedCall, Reply};
use crate::queue::inline_data::{INLINE_BYTES, Inline};
use crate::queue::ring::LINE_WORDS;
use crate::segment::GlobalAddress;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Handlers that a thread runs in a row before it checks what it waits for.
const RUNS_MAX: usize = 32;
/// Most bytes of the memory for arguments that is kept between two calls.
const BUFFER_KEPT: usize = 1024 * 1024;
/// Most bytes of a handler's message that its caller gets.
const MESSAGE_MAX: usize = 4096;
/// Most replies that one call causes, with the return of the block of its arguments.
const REPLIES_OF_CALL: usize = 2;

/// What [`Worker::run_calls`] has done.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::engine) struct CallProgress {
    /// Number of calls that have run.
    pub(in crate::engine) ran: usize,
    /// True if an entry was posted that had waited for room.
    posted: bool,
}

impl CallProgress {
    /// Returns true if anything was done.
    #[inline]
    pub(in crate::engine) fn is_any(self) -> bool {
        self.ran > 0 || self.posted
    }
}

impl Worker {
    /// Returns true if [`Worker::run_calls`] might find work.
    #[inline]
    pub(in crate::engine) fn calls_look_ready(&self) -> bool {
        self.calls().is_some_and(|calls| calls.have_arrived() || !calls.has_nothing_deferred())
    }

    /// Runs handlers that were called and posts deferred entries, unless another thread of the rank does so.
    #[inline]
    pub(in crate::engine) fn run_calls(&self) -> CallProgress {
        let mut progress = CallProgress::default();
        let Some(calls) = self.calls() else { return progress };
        calls.block_pool.trim_now_and_then(self.registry());
        if !calls.have_arrived() && calls.has_nothing_deferred() {
            return progress;
        }
        let Some(_guard) = calls.running.try_lock() else { return progress };
        progress.posted = !calls.has_nothing_deferred() && self.post_deferred(calls);
        while progress.ran < RUNS_MAX
            && calls.levels.iter().enumerate().any(|(at, level)| self.run_next(calls, at, level))
        {
            progress.ran += 1;
        }
        progress
    }

    /// Runs handlers that were called, without waiting for any. Returns true if any has run.
    pub fn serve_calls(&self) -> bool {
        self.progress_and_run() | (self.run_calls().ran > 0)
    }

    /// Runs the next call of a level, if there is one and there is room for what it may post.
    fn run_next(&self, calls: &ActiveMessages, at: usize, level: &CallLevel) -> bool {
        let queue = level.queue.queue();
        let position = queue.reader().read();
        if !calls.unsent.has_room(REPLIES_OF_CALL) {
            return false;
        }
        let resolved = self.commands().resolved(&level.queue);
        let Some(encoded) = resolved.encoded_at(position) else { return false };
        let Some(call) = encoded.call() else {
            queue.reader().set_read(position + encoded.line_count().max(1));
            return true; // no poster writes such a line: it is skipped
        };
        self.fetch_reply_line(call.reply);
        let done = || queue.reader().set_read(position + encoded.line_count());
        if call.handler == FLUSH {
            done();
            self.report_flush(calls, &call);
            return true;
        }
        let entry = calls.table.check(call.handler, call.len);
        let posts_max = entry.as_ref().map_or(0, |entry| entry.posts_max);
        let below = at.checked_sub(1).map(|below| &calls.levels[below].deferred);
        let takes_all = |deferred: &DeferredList<DeferredPost>| deferred.has_room(posts_max);
        if !below.is_none_or(takes_all) || !takes_all(&calls.deferred_commands) {
            return false;
        }
        let begin = self.recorder().map_or(0, |_| self.platform().observer_now_ns());
        let context = CallContext {
            worker: self,
            calls,
            from: call.peer,
            level: at,
            left: Cell::new(posts_max),
            wants_reply: !call.reply.is_none(),
            long_result: Cell::new(None),
            has_panicked: Cell::new(false),
        };
        let mut reply = Inline::EMPTY;
        let outcome = match (entry, call.buffer) {
            (Err(cause), _) => {
                self.give_back(calls, call.block);
                Err(cause)
            }
            (Ok(entry), None) => {
                done();
                run(entry, &context, encoded.inline_bytes(), &mut reply)
            }
            (Ok(entry), Some(from)) => {
                let run = |bytes: &[u8]| run(entry, &context, bytes, &mut reply);
                match self.run_with(calls, level, (from, &call), run) {
                    Some(outcome) => outcome,
                    None => return false,
                }
            }
        };
        done();
        if let Some(recorder) = self.recorder() {
            let name = calls.table.get(call.handler).map_or("handler", |entry| entry.name);
            self.record_handled(recorder, begin, &resolved, position, (name, outcome.is_err()));
        }
        let words = || match context.long_result.take() {
            None => Reply::value_words(&reply),
            Some(long) => Reply::LongValue(long).words(),
        };
        let outcome = outcome.map(|()| words).map_err(|cause| (cause, context.has_panicked.get()));
        self.report_outcome(calls, &resolved, &call, &encoded.effects(), outcome);
        true
    }

    /// Runs a handler with the bytes of the call at `from`. `None`: they are still being fetched.
    fn run_with(
        &self,
        calls: &ActiveMessages,
        level: &CallLevel,
        (from, call): (GlobalAddress, &ReceivedCall),
        run: impl FnOnce(&[u8]) -> Result<(), Cause>,
    ) -> Option<Result<(), Cause>> {
        let mut fetch = level.fetch().take(); // the fabric is called without the lock
        let mut buffer = std::mem::take(&mut *calls.buffer());
        let fetched = match &mut fetch {
            None => match self.copy_arguments(from, call.len, &mut buffer) {
                Ok(true) => Some(Ok(())),
                Ok(false) => {
                    let revocable = RevocableBuffer::zeroed(call.len as usize);
                    self.advance_fetch(
                        fetch.insert(BufferFetch { operation: None, revocable }),
                        from,
                        call.len,
                    )
                }
                Err(cause) => Some(Err(cause)),
            },
            Some(fetch) => self.advance_fetch(fetch, from, call.len),
        };
        let Some(fetched) = fetched else {
            *level.fetch() = fetch;
            *calls.buffer() = buffer;
            return None;
        };
        let len = call.len as usize;
        let fetched = fetched.and_then(|()| match &fetch {
            Some(fetch) => {
                resize(&mut buffer, len)?;
                fetch.revocable.enter()?.view().read(0, &mut bytemuck::cast_slice_mut(&mut buffer)[..len]);
                Ok(())
            }
            None => Ok(()),
        });
        self.give_back(calls, call.block);
        let outcome = fetched.and_then(|()| run(&bytemuck::cast_slice(&buffer)[..len]));
        if buffer.len() * 8 <= BUFFER_KEPT {
            *calls.buffer() = buffer;
        }
        Some(outcome)
    }

    /// Copies the `len` bytes at `from` into `buffer`. Returns false if this process cannot map them.
    fn copy_arguments(&self, from: GlobalAddress, len: u64, buffer: &mut Vec<u64>) -> Result<bool, Cause> {
        self.fabric().check(from, len)?; // before memory is allocated for so many bytes
        resize(buffer, len as usize)?;
        let bytes = &mut bytemuck::cast_slice_mut(buffer)[..len as usize];
        Ok(self.copy_in(from, BufferView::of_mut(bytes), 0, len, CachePolicy::Cached))
    }

    fn advance_fetch(
        &self,
        one: &mut BufferFetch,
        from: GlobalAddress,
        len: u64,
    ) -> Option<Result<(), Cause>> {
        if let Some(operation) = one.operation {
            return self.take_outcome(operation).map(|outcome| outcome.map(drop));
        }
        let launched = one.revocable.enter().and_then(|used| self.start_get(from, &used, 0..len as usize));
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

    /// Reports how a call ended: by its reply, by its effects, or, if it failed and has neither, to the calling rank. A
    /// failure says whether it was a panic.
    #[inline(always)]
    fn report_outcome(
        &self,
        calls: &ActiveMessages,
        resolved: &ResolvedQueue<'_>,
        call: &ReceivedCall,
        effects: &[Option<Effect>; 2],
        outcome: Result<impl FnOnce() -> [u64; LINE_WORDS], (Cause, bool)>,
    ) {
        let (wants_reply, has_effects) = (!call.reply.is_none(), effects[0].is_some());
        match outcome {
            Ok(words) => {
                if wants_reply {
                    self.reply(calls, call.reply, words());
                }
                if has_effects {
                    self.perform_effects(Some(resolved), effects, None);
                }
            }
            Err(failure) => self.report_failure(calls, call, effects, failure),
        }
    }

    #[cold]
    fn report_failure(
        &self,
        calls: &ActiveMessages,
        call: &ReceivedCall,
        effects: &[Option<Effect>; 2],
        (cause, has_panicked): (Cause, bool),
    ) {
        let (wants_reply, has_effects) = (!call.reply.is_none(), effects[0].is_some());
        if wants_reply {
            self.reply(calls, call.reply, self.failed_reply(calls, call.handler, &cause).words());
        }
        let name = calls.table.get(call.handler).map_or("", |entry| entry.name);
        // The panic hook has printed a panic.
        let is_reported = wants_reply || has_effects || has_panicked;
        let level = if is_reported { LogLevel::Info } else { LogLevel::Warn };
        self.log().say(level, format_args!("handler {name:?}, called by rank {}: {cause}", call.peer));
        if has_effects || !wants_reply {
            self.fail_call(calls, (call.peer, call.handler), effects, cause);
        }
    }

    /// Replies to a call that asks for the failure of an earlier call of the same rank.
    fn report_flush(&self, calls: &ActiveMessages, call: &ReceivedCall) {
        let reply = calls.failed.take(call.peer).map_or(Reply::Value(Inline::EMPTY), |failed| {
            self.failed_reply(calls, failed.handler, &failed.cause)
        });
        if !call.reply.is_none() {
            self.reply(calls, call.reply, reply.words());
        }
    }

    /// The reply that tells a caller why its call of the handler failed.
    fn failed_reply(&self, calls: &ActiveMessages, handler: u8, cause: &Cause) -> Reply {
        let (Cause::Program(_) | Cause::Argument(_) | Cause::Unsupported(_) | Cause::Undecodable(_)) = cause
        else {
            return Reply::Failed(Poison::of(cause, self.rank()));
        };
        let text = cause.to_string();
        let bytes = &text.as_bytes()[..text.floor_char_boundary(MESSAGE_MAX)];
        if let Some(text) = Inline::of(bytes) {
            return Reply::ErrorMessage { handler, text };
        }
        match calls.block_pool.fill(Purpose::ByHandler, bytes, self.registry()) {
            Ok(Some(text)) => Reply::LongErrorMessage { handler, text },
            _ => {
                let begin = &bytes[..text.floor_char_boundary(INLINE_BYTES)];
                Reply::ErrorMessage { handler, text: Inline::of(begin).unwrap_or(Inline::EMPTY) }
            }
        }
    }

    /// Called when the rank leaves: accepts no more calls, and runs those that were accepted.
    pub(in crate::engine) fn end_calls(&self) {
        let Some(calls) = self.calls() else { return };
        let closed: Vec<u64> =
            calls.levels.iter().map(|level| self.close(&level.queue).unwrap_or(0)).collect();
        let is_over = || {
            let mut levels = calls.levels.iter().zip(&closed);
            let all_ran = levels.all(|(level, &lines)| level.queue.queue().reader().read() >= lines);
            fence(Ordering::Acquire); // SYNC ring-read
            // In this order: the posts of a call are deferred before the thread that read the call releases `running`.
            all_ran
                && !calls.running.is_locked()
                && calls.has_nothing_deferred()
                && self.commands().has_forwarded()
        };
        while !is_over() && self.check().is_ok() {
            self.run_calls();
            self.pause();
        }
    }
}

/// Makes room for `len` bytes in `buffer`.
fn resize(buffer: &mut Vec<u64>, len: usize) -> Result<(), Cause> {
    let words = len.div_ceil(8);
    let limit = || "memory for the argument of a handler".to_string();
    let more = words.saturating_sub(buffer.len());
    buffer.try_reserve(more).map_err(|_| Cause::NoMemory {
        wanted: len as u64,
        available: 0,
        limit: limit(),
    })?;
    buffer.resize(words.max(buffer.len()), 0);
    Ok(())
}

thread_local! {
    /// The handler that this thread runs: its name, and the rank that has called it.
    static RUNNING: Cell<Option<(&'static str, Rank)>> = const { Cell::new(None) };
}

/// Returns the name of the handler that this thread runs, and the rank that has called it, for the report of a panic.
pub fn running_handler() -> Option<(&'static str, Rank)> {
    RUNNING.get()
}

/// Runs a handler. If it panics, its call fails and nothing else. Meanwhile a panic hook, and readers of the node
/// state, can tell whose call it is.
#[inline(always)]
fn run(
    entry: &HandlerEntry,
    context: &CallContext<'_>,
    bytes: &[u8],
    reply: &mut Inline,
) -> Result<(), Cause> {
    let handler: &dyn Handler = &*entry.handler;
    let rank_state = context.worker.rank_state();
    RUNNING.set(Some((entry.name, context.from)));
    rank_state.set_handles_for(Some(context.from));
    let outcome = catch_unwind(AssertUnwindSafe(|| handler.run(context, bytes, reply)));
    rank_state.set_handles_for(None);
    RUNNING.set(None);
    match outcome {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = format!("panicked: {}", panic_message(&*panic));
            context.has_panicked.set(true);
            drop(panic); // before the result is made: this may panic itself, and the result would leak
            Err(Cause::Program(text))
        }
    }
}
