//! The called side: reads calls, fetches their buffers, runs handlers, sends replies and performs effects.

use super::active_messages::{ActiveMessages, BufferFetch, CallContext, CallLevel};
use super::deferred_list::{DeferredList, DeferredPost};
use super::handler_table::{Handler, HandlerEntry};
use crate::base::log::Level as LogLevel;
use crate::base::{Cause, panic_message};
use crate::engine::command_queue::ResolvedQueue;
use crate::engine::worker::Worker;
use crate::engine::{BufferView, CachePolicy, RevocableBuffer, Started};
use crate::fabric::{CommandWrite, Poison};
use crate::queue::command::Effect;
use crate::queue::handler_call::{BUFFER_MAX, ReceivedCall, Reply, ReplyAddress};
use crate::queue::inline_data::{INLINE_BYTES, Inline};
use crate::queue::ring::LINE_WORDS;
use crate::segment::GlobalAddress;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{Ordering, fence};

/// Handlers that a thread runs in a row before it checks what it waits for.
const RUNS_MAX: usize = 32;

impl Worker {
    /// Returns true if [`Worker::run_calls`] might find work.
    #[inline]
    pub(in crate::engine) fn calls_look_ready(&self) -> bool {
        self.calls().is_some_and(|calls| calls.have_arrived() || !calls.has_nothing_deferred())
    }

    /// Runs handlers that were called and posts deferred entries, unless another thread of the rank does so. Returns
    /// true if it did anything.
    #[inline]
    pub(in crate::engine) fn run_calls(&self) -> bool {
        let Some(calls) = self.calls() else { return false };
        if !calls.have_arrived() && calls.has_nothing_deferred() {
            return false;
        }
        let Some(_guard) = calls.running.try_lock() else { return false };
        let mut progressed = !calls.has_nothing_deferred() && self.post_deferred(calls);
        for _ in 0..RUNS_MAX {
            let ran = calls.levels.iter().enumerate().any(|(at, level)| self.run_next(calls, at, level));
            if !ran {
                break;
            }
            progressed = true;
        }
        progressed
    }

    /// Runs the next call of a level, if there is one and there is room for what it may post.
    fn run_next(&self, calls: &ActiveMessages, at: usize, level: &CallLevel) -> bool {
        let queue = level.queue.queue();
        let position = queue.reader().read();
        if !calls.unsent.has_room(1) {
            return false;
        }
        let resolved = self.commands().resolved(&level.queue);
        let Some(encoded) = resolved.encoded_at(position) else { return false };
        let Some(call) = encoded.call() else {
            queue.reader().set_read(position + encoded.line_count().max(1));
            return true; // no poster writes such a line: it is skipped
        };
        self.fetch_reply_line(call.reply);
        let entry = calls.table.check(call.handler, call.len);
        let posts_max = entry.as_ref().map_or(0, |entry| entry.posts_max);
        let below = at.checked_sub(1).map(|below| &calls.levels[below].deferred);
        let takes_all = |deferred: &DeferredList<DeferredPost>| deferred.has_room(posts_max);
        if !below.is_none_or(takes_all) || !takes_all(&calls.deferred_commands) {
            return false;
        }
        let begin = self.recorder().map_or(0, |_| self.platform().observer_now_ns());
        let done = || queue.reader().set_read(position + encoded.line_count());
        let context =
            CallContext { worker: self, calls, from: call.peer, level: at, left: Cell::new(posts_max) };
        let mut reply = Inline::EMPTY;
        let outcome = match (entry, call.buffer) {
            (Err(cause), _) => Err(cause),
            (Ok(entry), None) => {
                done();
                run(entry, &context, encoded.inline_bytes(), &mut reply)
            }
            (Ok(entry), Some(from)) => {
                let run = |bytes: &[u8]| run(entry, &context, bytes, &mut reply);
                match self.run_with(calls, level, from, call.len, run) {
                    Some(outcome) => outcome,
                    None => return false,
                }
            }
        };
        done();
        if let Some(recorder) = self.recorder() {
            let name = calls.table.get(call.handler).map_or("handler", |entry| &entry.name);
            self.record_handled(recorder, begin, &resolved, position, (name, outcome.is_err()));
        }
        self.report_outcome(calls, &resolved, &call, &encoded.effects(), outcome.map(|()| &reply));
        true
    }

    /// Runs a handler with the `len` bytes at `from`. `None`: they are still being fetched.
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
        let fetched = self.fetch_buffer(level, from, bytes);
        let outcome = fetched.map(|fetched| fetched.and_then(|()| run(bytes)));
        *calls.buffer() = buffer;
        outcome
    }

    /// Copies the buffer of a call to `bytes`. `None`: it is still being fetched.
    fn fetch_buffer(
        &self,
        level: &CallLevel,
        from: GlobalAddress,
        bytes: &mut [u8],
    ) -> Option<Result<(), Cause>> {
        let len = bytes.len();
        if len == 0 || self.copy_in(from, BufferView::of_mut(bytes), 0, len as u64, CachePolicy::Cached) {
            return Some(Ok(()));
        }
        let mut place = level.fetch();
        let mut one = place
            .take()
            .unwrap_or_else(|| BufferFetch { operation: None, revocable: RevocableBuffer::zeroed(len) });
        drop(place); // the fabric is called without the lock
        match self.advance_fetch(&mut one, from, len) {
            None => {
                *level.fetch() = Some(one);
                None
            }
            Some(fetched) => Some(fetched.and_then(|()| {
                one.revocable.enter()?.view().read(0, bytes);
                Ok(())
            })),
        }
    }

    fn advance_fetch(
        &self,
        one: &mut BufferFetch,
        from: GlobalAddress,
        len: usize,
    ) -> Option<Result<(), Cause>> {
        if let Some(operation) = one.operation {
            return self.take_outcome(operation).map(|outcome| outcome.map(drop));
        }
        let launched = one.revocable.enter().and_then(|used| self.start_get(from, &used, 0..len));
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

    /// Reports how a call ended: by its reply, by its effects, or, if it failed and has neither, to the calling rank.
    #[inline(always)]
    fn report_outcome(
        &self,
        calls: &ActiveMessages,
        resolved: &ResolvedQueue<'_>,
        call: &ReceivedCall,
        effects: &[Option<Effect>; 2],
        outcome: Result<&Inline, Cause>,
    ) {
        let (wants_reply, has_effects) = (!call.reply.is_none(), effects[0].is_some());
        match outcome {
            Ok(value) => {
                if wants_reply {
                    self.reply(calls, call.reply, Reply::value_words(value));
                }
                if has_effects {
                    self.perform_effects(Some(resolved), effects, None);
                }
            }
            Err(cause) => self.report_failure(calls, call, effects, &cause),
        }
    }

    #[cold]
    fn report_failure(
        &self,
        calls: &ActiveMessages,
        call: &ReceivedCall,
        effects: &[Option<Effect>; 2],
        cause: &Cause,
    ) {
        let (wants_reply, has_effects) = (!call.reply.is_none(), effects[0].is_some());
        if wants_reply {
            self.reply(calls, call.reply, self.failed_reply(cause).words());
        }
        let name = calls.table.get(call.handler).map_or("", |entry| &entry.name);
        let level = if wants_reply || has_effects { LogLevel::Info } else { LogLevel::Warn };
        self.log().say(level, format_args!("handler {name:?}, called by rank {}: {cause}", call.peer));
        if has_effects || !wants_reply {
            // The handler's message is not sent: a poison has no room for it.
            let failed = Cause::HandlerFailed { handler: call.handler, name: String::new() };
            let cause = if let Cause::Program(_) = cause { &failed } else { cause };
            self.fail_call(calls, call.peer, effects, cause);
        }
    }

    fn failed_reply(&self, cause: &Cause) -> Reply {
        if let Cause::Program(_) | Cause::Argument(_) | Cause::Unsupported(_) = cause {
            let text = cause.to_string();
            let text = &text.as_bytes()[..text.len().min(INLINE_BYTES)];
            Inline::of(text).map_or(Reply::Failed(Poison::of(cause, self.rank())), Reply::ErrorMessage)
        } else {
            Reply::Failed(Poison::of(cause, self.rank()))
        }
    }

    /// Writes or sends a reply.
    #[inline(always)]
    fn reply(&self, calls: &ActiveMessages, place: ReplyAddress, words: [u64; LINE_WORDS]) {
        if !self.write_reply(place, &words) {
            let (places, words) = ([place.line(); 2], [words, [0; LINE_WORDS]]);
            self.send_reply(calls, CommandWrite { places, position: place.sequence(), words, lines: 1 });
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

/// Runs a handler. If it panics, its call fails and nothing else.
#[inline(always)]
fn run(
    entry: &HandlerEntry,
    context: &CallContext<'_>,
    bytes: &[u8],
    reply: &mut Inline,
) -> Result<(), Cause> {
    let handler: &dyn Handler = &*entry.handler;
    match catch_unwind(AssertUnwindSafe(|| handler.run(context, bytes, reply))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = format!("panicked: {}", panic_message(&*panic));
            drop(panic); // before the result is made: this may panic itself, and the result would leak
            Err(Cause::Program(text))
        }
    }
}
