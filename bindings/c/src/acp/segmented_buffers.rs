//! Segmented buffers: a ring of segments in memory of the program at both ends, copied one by one.
//!
//! An acknowledgement posts a command: it copies the segment to the destination and raises a signal at each end, so both
//! ends know how many segments have come. Signals count segments, so nobody waits for the other end in an acknowledgement.
//!
//! Unsafe: the functions are symbols of C; memory of C is registered, and its owner vouches for it.
#![allow(unsafe_code)]

use super::command_list::{QUEUE_PLACES_MAX, UNREPORTED_PLACES};
use super::signals::CountedSignal;
use super::slots::CONNECTIONS;
use super::state::{State, state};
use crate::status::Failure;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tasuki::onesided::{GlobalAddress, RawRegistration, RemoteSignal};
use tasuki::{Command, GlobalPtr, Queue, Rank, Request};

/// What the calls that ask return: yes or no.
const YES: c_int = 0;
const NO: c_int = 1;

/// An end, until it is freed.
struct Segments {
    peer: Rank,
    is_source: bool,
    segment_bytes: usize,
    segments: u64,
    memory: RawRegistration,
    /// Counts segments that have come to the destination: at both ends.
    sent: CountedSignal,
    /// Counts segments that the destination has returned: at the source.
    returned: CountedSignal,
    /// Counts 1 when the peer disconnects.
    closed: CountedSignal,
    progress: Mutex<Progress>,
}

/// How far an end is.
#[derive(Default)]
struct Progress {
    /// Set by the connection.
    other: Option<OtherEnd>,
    /// Segments that the source has acknowledged, or that the destination has returned.
    moved: u64,
    is_disconnected: bool,
}

/// What an end knows of the other one.
struct OtherEnd {
    memory: GlobalAddress,
    /// The signals of the other end, in the order of [`Segments`].
    signals: [RemoteSignal; 3],
    /// Of the source alone.
    queue: Option<Queue>,
}

fn not_connected() -> Failure {
    Failure::misuse("the segmented buffer is not connected")
}

impl Segments {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segments before this one were returned by the destination.
    fn head(&self, progress: &Progress) -> u64 {
        if self.is_source { self.returned.value() } else { progress.moved }
    }

    /// The segments before this one were acknowledged by the source; at the destination: and have come.
    fn tail(&self, progress: &Progress) -> u64 {
        if self.is_source { progress.moved } else { self.sent.value() }
    }

    /// Exchanges addresses with the peer.
    fn connect(&self, state: &State) -> Result<(), Failure> {
        if self.progress().other.is_some() {
            return Err(Failure::misuse("the segmented buffer was connected before"));
        }
        let slot = CONNECTIONS[usize::from((state.job.rank() < self.peer) != self.is_source)];
        let own = [self.segment_bytes as u64, self.segments, self.memory.address().bits()];
        let own_signals = [&self.sent, &self.returned, &self.closed].map(|signal| signal.remote(state.job));
        let (mut other, mut signals) = ([0; 3], own_signals);
        let messages = &state.own_messages;
        messages.sendrecv(&own, self.peer, &mut other, self.peer, slot)?;
        messages.sendrecv(&own_signals, self.peer, &mut signals, self.peer, slot)?;
        if other[..2] != own[..2] {
            let text = format!(
                "this end has {} segments of {} bytes, and the other end {} of {}",
                own[1], own[0], other[1], other[0]
            );
            return Err(Failure::disagreement(text));
        }
        // An acknowledgement has two effects, so it takes two places.
        let places = (2 * self.segments as usize).saturating_add(UNREPORTED_PLACES).min(QUEUE_PLACES_MAX);
        let queue = if self.is_source { Some(state.job.queue(places)?) } else { None };
        self.progress().other = Some(OtherEnd { memory: GlobalAddress::from_bits(other[2]), signals, queue });
        Ok(())
    }

    /// Copies the segment at the tail to the destination.
    fn acknowledge(&self, state: &State) -> Result<(), Failure> {
        let mut progress = self.progress();
        let (Some(other), false) = (&progress.other, progress.is_disconnected) else {
            return Err(not_connected());
        };
        let Some(queue) = &other.queue else {
            return Err(Failure::misuse("this rank is the destination of the segmented buffer"));
        };
        if progress.moved - self.head(&progress) >= self.segments {
            return Err(Failure::full(format!("none of the {} segments is ready", self.segments)));
        }
        let first = (progress.moved % self.segments) * self.segment_bytes as u64;
        let [from, to] =
            [self.memory.address(), other.memory].map(|start| GlobalPtr::<u8>::new(start.add(first)));
        let copy = Command::copy(from, to, self.segment_bytes);
        queue.post(copy.then(other.signals[0].add(1)).then(self.sent.remote(state.job).add(1)))?;
        progress.moved += 1;
        Ok(())
    }

    /// Returns the segment at the head to the source.
    fn give_back(&self, state: &State) -> Result<(), Failure> {
        let mut progress = self.progress();
        let (Some(other), false) = (&progress.other, progress.is_disconnected) else {
            return Err(not_connected());
        };
        if self.is_source {
            return Err(Failure::misuse("this rank is the source of the segmented buffer"));
        }
        if progress.moved >= self.tail(&progress) {
            return Err(Failure::misuse("no segment has come that was not returned"));
        }
        state.job.raise(other.signals[1], 1)?;
        progress.moved += 1;
        Ok(())
    }

    /// Waits until all segments have been copied, and until the peer disconnects.
    fn disconnect(&self, state: &State) -> Result<(), Failure> {
        let (acknowledged, closed) = {
            let progress = self.progress();
            let (Some(other), false) = (&progress.other, progress.is_disconnected) else {
                return Err(not_connected());
            };
            (if self.is_source { progress.moved } else { 0 }, other.signals[2])
        };
        self.sent.reaches(acknowledged).wait()?;
        self.progress().is_disconnected = true; // from here on, nobody raises a signal of the other end
        state.job.raise(closed, 1)?;
        Ok(self.closed.reaches(1).wait()?)
    }
}

/// The last number, and the segmented buffers of this rank by their numbers.
static SEGMENTED_BUFFERS: Mutex<(usize, BTreeMap<usize, Arc<Segments>>)> = Mutex::new((0, BTreeMap::new()));

fn segmented_buffers() -> MutexGuard<'static, (usize, BTreeMap<usize, Arc<Segments>>)> {
    SEGMENTED_BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops all segmented buffers.
pub(super) fn end_all() {
    let all = std::mem::take(&mut segmented_buffers().1);
    drop(all); // without the lock
}

/// Returns an end.
fn segments(number: usize) -> Result<Arc<Segments>, Failure> {
    let found = segmented_buffers().1.get(&number).cloned();
    found.ok_or_else(|| Failure::misuse("there is no such segmented buffer, or it was freed"))
}

/// Frees an end.
fn free(state: &State, number: usize) -> Result<(), Failure> {
    let segments = segments(number)?;
    let is_connected = {
        let progress = segments.progress();
        progress.other.is_some() && !progress.is_disconnected
    };
    if is_connected {
        return Err(Failure::misuse("the segmented buffer is connected: disconnect it first"));
    }
    drop(segments);
    let freed = segmented_buffers().1.remove(&number);
    // Another thread may be in a call with it, whose end drops it.
    if let Some(segments) = freed.and_then(Arc::into_inner) {
        for signal in [segments.sent, segments.returned, segments.closed] {
            state.signals.put_back(signal);
        }
    }
    Ok(())
}

/// Creates an end.
///
/// # Safety
/// The memory stays until the end is freed.
unsafe fn create(
    (peer, is_source): (c_int, bool),
    buf: *mut c_void,
    segment_bytes: usize,
    segments: usize,
) -> Result<usize, Failure> {
    let state = state()?;
    let (number, peer) = (peer, state.rank_of(peer)?);
    if peer == state.job.rank() {
        return Err(Failure::misuse(format!("rank {number} is this rank")));
    }
    let bytes = segment_bytes.checked_mul(segments).filter(|bytes| (1..=isize::MAX as usize).contains(bytes));
    let Some(bytes) = bytes.filter(|_| !buf.is_null()) else {
        let text = format!("there are no {segments} segments of {segment_bytes} bytes at {buf:p}");
        return Err(Failure::misuse(text));
    };
    // SAFETY: the caller promises it.
    let memory = unsafe { state.job.register_raw(buf.cast(), bytes)? };
    let signal = || state.signals.take(state.job);
    let (sent, returned, closed) = (signal()?, signal()?, signal()?);
    let (segments, progress) = (segments as u64, Mutex::default());
    let end = Segments { peer, is_source, segment_bytes, segments, memory, sent, returned, closed, progress };
    let (last, all) = &mut *segmented_buffers();
    *last += 1;
    all.insert(*last, Arc::new(end));
    Ok(*last)
}

/// Asks an end that is connected. Makes progress if the answer is no: programs ask again and again.
fn ask(segbuf: usize, question: impl FnOnce(&Segments, &Progress) -> bool) -> Result<c_int, Failure> {
    let state = state()?;
    let segments = segments(segbuf)?;
    let answer = {
        let progress = segments.progress();
        if progress.other.is_none() || progress.is_disconnected {
            return Err(not_connected());
        }
        question(&segments, &progress)
    };
    if !answer {
        state.job.serve()?;
    }
    Ok(if answer { YES } else { NO })
}

/// Reads a counter of an end that is connected.
fn query(segbuf: usize, counter: impl FnOnce(&Segments, &Progress) -> u64) -> Result<i64, Failure> {
    state()?;
    let segments = segments(segbuf)?;
    let progress = segments.progress();
    if progress.other.is_none() {
        return Err(not_connected());
    }
    Ok(counter(&segments, &progress).cast_signed())
}

calls! {
    /// Creates the end of a segmented buffer that gives segments.
    acp_create_src_segbuf(dst_rank: c_int, buf: *mut c_void, segsize: usize, segnum: usize) -> usize, 0; {
        // SAFETY: the caller promises it.
        unsafe { create((dst_rank, true), buf, segsize, segnum) }
    }

    /// Creates the end of a segmented buffer that gets segments.
    acp_create_dst_segbuf(src_rank: c_int, buf: *mut c_void, segsize: usize, segnum: usize) -> usize, 0; {
        // SAFETY: the caller promises it.
        unsafe { create((src_rank, false), buf, segsize, segnum) }
    }

    /// Connects an end with the other one.
    acp_connect_segbuf(segbuf: usize) -> c_int, -1; {
        let state = state()?;
        segments(segbuf)?.connect(state).map(|()| 0)
    }

    /// Tells whether an end is connected.
    acp_isconnected_segbuf(segbuf: usize) -> c_int, -1; {
        state()?;
        let segments = segments(segbuf)?;
        let progress = segments.progress();
        Ok(if progress.other.is_some() && !progress.is_disconnected { YES } else { NO })
    }

    /// Returns the segment at the head to the source.
    acp_ready_segbuf(segbuf: usize) -> c_int, -1; {
        let state = state()?;
        segments(segbuf)?.give_back(state).map(|()| 0)
    }

    /// Gives the segment at the tail to the destination.
    acp_ack_segbuf(segbuf: usize) -> c_int, -1; {
        let state = state()?;
        segments(segbuf)?.acknowledge(state).map(|()| 0)
    }

    /// Tells whether a segment may be overwritten.
    acp_isready_segbuf(segbuf: usize) -> c_int, -1; {
        ask(segbuf, |end, progress| end.tail(progress) - end.head(progress) < end.segments)
    }

    /// Tells whether a segment has come that was not returned.
    acp_isacked_segbuf(segbuf: usize) -> c_int, -1; {
        ask(segbuf, |end, progress| end.sent.value() > end.head(progress))
    }

    /// The number of the first segment that was not returned.
    acp_query_segbuf_head(segbuf: usize) -> i64, -1; {
        query(segbuf, Segments::head)
    }

    /// The number of the next segment that the source gives.
    acp_query_segbuf_tail(segbuf: usize) -> i64, -1; {
        query(segbuf, Segments::tail)
    }

    /// The number of the first segment that was not copied.
    acp_query_segbuf_sent(segbuf: usize) -> i64, -1; {
        state()?;
        let segments = segments(segbuf)?;
        if !segments.is_source {
            return Err(Failure::misuse("this rank is the destination of the segmented buffer"));
        }
        query(segbuf, |end, _| end.sent.value())
    }

    /// Disconnects an end.
    acp_disconnect_segbuf(segbuf: usize) -> c_int, -1; {
        let state = state()?;
        segments(segbuf)?.disconnect(state).map(|()| 0)
    }

    /// Frees an end.
    acp_free_segbuf(segbuf: usize) -> c_int, -1; {
        let state = state()?;
        free(state, segbuf).map(|()| 0)
    }
}
