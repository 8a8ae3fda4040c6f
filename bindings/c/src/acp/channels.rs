//! Channels: messages in order from one rank to another.
//!
//! A channel is a ring of bytes in the receiver's memory, a channel of Tasuki. A message is its length in 8 bytes, and its
//! bytes behind them. The two ends find each other by a message in a slot, which the ends of one pair use in turn.
//!
//! Unsafe: the functions are symbols of C; buffers are pointers of C, which the caller keeps in place until the wait for
//! the transfer has ended.
#![allow(unsafe_code)]

use super::ongoing::{Advance, Ongoing};
use super::slots::CHANNELS;
use super::state::{State, state};
use crate::status::Failure;
use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use tasuki::bindings::{AwaitedCondition, poll_channel_from, poll_channel_to};
use tasuki::message::{ChannelReceiver, ChannelSender, channel_from, channel_to};
use tasuki::{Job, Rank, Slot};

/// Bytes of the ring of a channel. A message that fits in it is sent before it is received.
const RING_BYTES: usize = 64 << 10;
/// Bytes of the length before a message.
const HEADER_BYTES: usize = size_of::<u64>();
/// What acp_wait_ch returns when it fails.
const FAILED: usize = usize::MAX;

/// An end of a channel.
enum End {
    Sender(ChannelSender<u8>),
    Receiver(ChannelReceiver<u8>),
}

/// A buffer of the program.
struct Buffer {
    at: *mut u8,
    bytes: usize,
}

// SAFETY: the program lends the buffer to the transfer, which one thread at a time advances.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(at: *mut c_void, bytes: usize) -> Result<Buffer, Failure> {
        if at.is_null() && bytes != 0 {
            return Err(Failure::misuse(format!("the buffer of {bytes} bytes is null")));
        }
        if bytes > isize::MAX as usize {
            return Err(Failure::misuse(format!("size is {}, and must be 0 or more", bytes.cast_signed())));
        }
        Ok(Buffer { at: at.cast(), bytes })
    }

    /// Copies bytes from `first` on to `to`.
    fn read(&self, first: usize, to: &mut [u8]) {
        assert!(to.len() <= self.bytes - first);
        // SAFETY: the buffer has these bytes, and its program does not change them before the transfer has ended.
        unsafe { std::ptr::copy_nonoverlapping(self.at.add(first), to.as_mut_ptr(), to.len()) };
    }

    /// Copies those of the bytes to the places from `first` on that the buffer has room for.
    fn write(&self, first: usize, from: &[u8]) {
        let room = self.bytes.saturating_sub(first).min(from.len());
        if room > 0 {
            // SAFETY: the buffer has these places, and its program does not use them before the transfer has ended.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.at.add(first), room) };
        }
    }
}

/// What an end does, one after the other.
enum Action {
    Transfer(Transfer),
    /// Ends the channel.
    Free,
}

/// A message on its way.
struct Transfer {
    buffer: Buffer,
    /// The length of the message: its sender's; at the receiver, as far as it has come.
    header: [u8; HEADER_BYTES],
    /// Bytes that have passed through the ring, those of the header included.
    passed: usize,
}

impl Transfer {
    fn new(buffer: Buffer) -> Transfer {
        let header = (buffer.bytes as u64).to_le_bytes();
        Transfer { buffer, header, passed: 0 }
    }

    fn message_bytes(&self) -> usize {
        u64::from_le_bytes(self.header) as usize
    }

    /// Bytes that have not passed yet. Of a message whose length is not known: those of the header.
    fn left(&self) -> usize {
        let is_known = self.passed >= HEADER_BYTES;
        let all = if is_known { HEADER_BYTES + self.message_bytes() } else { HEADER_BYTES };
        all - self.passed
    }

    /// Puts the next bytes into places of the ring. Returns how many.
    fn fill(&mut self, places: &mut [u8]) -> usize {
        let count = places.len().min(self.left());
        let places = &mut places[..count];
        match self.passed.checked_sub(HEADER_BYTES) {
            Some(first) => self.buffer.read(first, places),
            None => places.copy_from_slice(&self.header[self.passed..self.passed + count]),
        }
        self.passed += count;
        count
    }

    /// Takes the next bytes out of the ring. Returns how many.
    fn take(&mut self, elements: &[u8]) -> usize {
        let count = elements.len().min(self.left());
        let elements = &elements[..count];
        match self.passed.checked_sub(HEADER_BYTES) {
            Some(first) => self.buffer.write(first, elements),
            None => self.header[self.passed..self.passed + count].copy_from_slice(elements),
        }
        self.passed += count;
        count
    }
}

/// What came of a request: the bytes in its buffer.
type Outcome = Result<usize, Failure>;

/// What a rank has of a channel.
struct Endpoint {
    end: End,
    actions: VecDeque<(usize, Action)>,
    awaited: AwaitedCondition,
    is_being_freed: bool,
    /// Why nothing can be transferred any more.
    failure: Option<Failure>,
}

impl Endpoint {
    /// Transfers as much as can be transferred now. Returns true if the transfer is over.
    fn step(end: &mut End, transfer: &mut Transfer) -> Result<bool, Failure> {
        loop {
            match end {
                End::Sender(to) => match to.try_reserve(transfer.left())? {
                    Some(places) if !places.is_empty() => {
                        let count = transfer.fill(places);
                        to.commit(count)?;
                    }
                    _ => return Ok(false),
                },
                End::Receiver(from) => match from.try_peek()? {
                    Some([]) => return Err(Failure::misuse("the sender has freed the channel")),
                    Some(elements) => {
                        let count = transfer.take(elements);
                        from.release(count)?;
                    }
                    None => return Ok(false),
                },
            }
            if transfer.left() == 0 {
                return Ok(true);
            }
        }
    }

    /// Returns true if the end can go on at once. Otherwise `waker` is woken when it can.
    fn poll(&mut self, waker: &Waker) -> bool {
        let awaited = &mut self.awaited;
        let polled = match &mut self.end {
            End::Sender(to) => poll_channel_to(to, awaited, waker),
            End::Receiver(from) => poll_channel_from(from, awaited, waker),
        };
        polled.is_ready()
    }

    /// Advances the first actions. Returns the results of those that have ended, and true if the last one ended the
    /// channel.
    fn advance(&mut self, waker: &Waker) -> (Vec<(usize, Outcome)>, bool) {
        let mut ended = Vec::new();
        while let Some((request, action)) = self.actions.front_mut() {
            let (request, step) = match action {
                Action::Free => {
                    ended.push((*request, Ok(0)));
                    return (ended, true);
                }
                Action::Transfer(transfer) => {
                    let step = match &self.failure {
                        Some(failure) => Err(failure.clone()),
                        None => Endpoint::step(&mut self.end, transfer),
                    };
                    (
                        *request,
                        step.map(|is_over| {
                            is_over.then(|| transfer.message_bytes().min(transfer.buffer.bytes))
                        }),
                    )
                }
            };
            match step {
                Ok(None) if self.poll(waker) => continue,
                Ok(None) => break,
                Ok(Some(bytes)) => ended.push((request, Ok(bytes))),
                Err(failure) => {
                    self.failure = Some(failure.clone());
                    ended.push((request, Err(failure)));
                }
            }
            self.actions.pop_front();
        }
        (ended, false)
    }
}

/// The channels of this rank, and what was begun on them.
#[derive(Default)]
struct Channels {
    ends: HashMap<usize, Endpoint>,
    /// The results of requests that nobody has waited for; `None`: under way.
    requests: HashMap<usize, Option<Outcome>>,
    /// The last number of a channel or request.
    last: usize,
    /// How many channels were created for each pair: the peer, and whether it is the receiver.
    created: HashMap<(Rank, bool), usize>,
}

impl Channels {
    /// Drops all channels and requests.
    fn clear(&mut self) {
        self.ends.clear();
        self.requests.clear();
    }

    fn number(&mut self) -> usize {
        self.last += 1;
        self.last
    }

    fn create(&mut self, state: &State, sender: c_int, receiver: c_int) -> Result<usize, Failure> {
        let (from, to, own) = (state.rank_of(sender)?, state.rank_of(receiver)?, state.job.rank());
        if from == to {
            return Err(Failure::misuse(format!("rank {sender} is the sender and the receiver")));
        }
        if own != from && own != to {
            return Err(Failure::misuse(format!("this rank is neither {sender} nor {receiver}")));
        }
        let (sends, peer) = if own == from { (true, to) } else { (false, from) };
        let created = self.created.entry((peer, sends)).or_default();
        let slot = Slot(*created % CHANNELS);
        let end = match sends {
            true => End::Sender(channel_to(&state.own_messages, peer, slot)?),
            false => End::Receiver(channel_from(&state.own_messages, peer, slot, RING_BYTES)?),
        };
        *created += 1;
        let (actions, awaited) = (VecDeque::new(), AwaitedCondition::default());
        let number = self.number();
        self.ends.insert(number, Endpoint { end, actions, awaited, is_being_freed: false, failure: None });
        Ok(number)
    }

    /// Adds an action of an end that `check` accepts. Returns its request.
    fn begin(
        &mut self,
        channel: usize,
        action: Action,
        check: impl FnOnce(&End) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        let request = self.number();
        let end = self
            .ends
            .get_mut(&channel)
            .ok_or_else(|| Failure::misuse("there is no such channel, or it was freed"))?;
        if end.is_being_freed {
            return Err(Failure::misuse("the channel is being freed"));
        }
        check(&end.end)?;
        end.is_being_freed = matches!(action, Action::Free);
        end.actions.push_back((request, action));
        self.requests.insert(request, None);
        Ok(request)
    }

    /// Returns the result of a request that has ended, and forgets it.
    fn take(&mut self, request: usize) -> Option<Outcome> {
        match self.requests.get_mut(&request) {
            None => Some(Err(Failure::misuse("there is no such request, or it was waited for"))),
            Some(result) => {
                let result = result.take()?;
                self.requests.remove(&request);
                Some(result)
            }
        }
    }
}

impl Advance for Channels {
    fn advance(&mut self, waker: &Waker) -> bool {
        let mut freed = Vec::new();
        let mut has_ended = false;
        for (number, end) in &mut self.ends {
            let (ended, is_freed) = end.advance(waker);
            has_ended |= !ended.is_empty();
            for (request, result) in ended {
                self.requests.insert(request, Some(result));
            }
            if is_freed {
                freed.push(*number);
            }
        }
        for number in freed {
            self.ends.remove(&number); // the peer reads what was sent, and learns that no more comes
        }
        has_ended
    }
}

static CHANNELS_OF_RANK: OnceLock<Arc<Ongoing<Channels>>> = OnceLock::new();

/// Makes the rank's set of channels, which is empty.
pub(super) fn begin(job: &'static Job) -> Result<(), Failure> {
    let _ = CHANNELS_OF_RANK.set(Ongoing::new(job, Channels::default())?); // a rank begins once
    Ok(())
}

/// Drops all channels and requests.
pub(super) fn end_all() {
    CHANNELS_OF_RANK.get().into_iter().for_each(|channels| channels.with(Channels::clear));
}

/// Returns the channels. Failure: ACP does not run.
fn channels() -> Result<&'static Arc<Ongoing<Channels>>, Failure> {
    state()?;
    CHANNELS_OF_RANK.get().ok_or_else(|| Failure::not_running("acp_init has failed"))
}

fn wait(request: usize) -> Result<usize, Failure> {
    channels()?.wait(|channels| channels.take(request))
}

calls! {
    /// Creates this rank's end of a channel.
    acp_create_ch(sender: c_int, receiver: c_int) -> usize, 0; {
        let state = state()?;
        channels()?.with(|channels| channels.create(state, sender, receiver))
    }

    /// Begins to send a message.
    acp_nbsend_ch(ch: usize, buf: *mut c_void, size: usize) -> usize, 0; {
        let (all, action) = (channels()?, Action::Transfer(Transfer::new(Buffer::new(buf, size)?)));
        all.with(|channels| channels.begin(ch, action, |end| match end {
            End::Sender(_) => Ok(()),
            End::Receiver(_) => Err(Failure::misuse("this rank is the receiver of the channel")),
        }))
    }

    /// Begins to receive a message.
    acp_nbrecv_ch(ch: usize, buf: *mut c_void, size: usize) -> usize, 0; {
        let (all, action) = (channels()?, Action::Transfer(Transfer::new(Buffer::new(buf, size)?)));
        all.with(|channels| channels.begin(ch, action, |end| match end {
            End::Receiver(_) => Ok(()),
            End::Sender(_) => Err(Failure::misuse("this rank is the sender of the channel")),
        }))
    }

    /// Begins to free this rank's end of a channel.
    acp_nbfree_ch(ch: usize) -> usize, 0; {
        channels()?.with(|channels| channels.begin(ch, Action::Free, |_| Ok(())))
    }

    /// Frees this rank's end of a channel.
    acp_free_ch(ch: usize) -> c_int, -1; {
        let request = channels()?.with(|channels| channels.begin(ch, Action::Free, |_| Ok(())))?;
        wait(request).map(|_| 0)
    }

    /// Waits for what was begun on a channel.
    acp_wait_ch(request: usize) -> usize, FAILED; {
        wait(request)
    }

    /// Waits for all of several requests.
    acp_waitall_ch(requests: *mut usize, count: c_int, sizes: *mut usize) -> c_int, -1; {
        channels()?;
        let count = usize::try_from(count).map_err(|_| Failure::misuse(format!("there are {count} requests")))?;
        if requests.is_null() && count != 0 {
            return Err(Failure::misuse("the array of requests is null"));
        }
        let mut outcome = Ok(0);
        for index in 0..count {
            // SAFETY: the caller promises that there are `count` requests.
            let waited = wait(unsafe { requests.add(index).read() });
            if !sizes.is_null() {
                let size = waited.as_ref().map_or(FAILED, |size| *size);
                // SAFETY: the caller promises that there is room for `count` sizes, if there is for any.
                unsafe { sizes.add(index).write(size) };
            }
            outcome = outcome.and(waited.map(|_| 0)); // the first failure, after all have been waited for
        }
        outcome
    }
}
