//! Channels: elements of one type, in order, from one rank to another, filled and read in place.
#![allow(unsafe_code)]
//! Unsafe: slices of the ring of a channel, which two ranks share. The counters of the channel say which elements
//! belong to which of them: an element is the sender's until it is committed, and the receiver's until it is released.
//! The receiver's memory stays until the sender is closed. It is closed memory, on which all operations of programs are
//! refused, so that a wrong address cannot change an element of a slice. Where the sender puts elements, the ring is
//! usual memory, and the receiver's slices are of a copy.

use crate::member::{about, place_of};
use crate::memory::allocate::{allocate_closed, allocate_part};
use crate::memory::array::Array;
use crate::message::Peer;
use crate::message::slot::Slot;
use crate::onesided::Local;
use crate::request::{Request, future_by_request};
use crate::{Communicator, Pod, Rank, Result};
use bytemuck::allocation::try_zeroed_vec;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{self, Poll};
use tasuki_core::base::Cause;
use tasuki_core::engine::{AwaitedCondition, Worker};
use tasuki_message::{
    ChannelElement, ChannelReceiver as Receiver, ChannelSender as Sender, KeptMemory, reaches_ring,
};

/// Makes the sending end of a channel to a member, for elements of type `T`. The member makes the other end with
/// [`channel_from`], for the same slot.
///
/// Elements go one way, in order, without a message for each: the sender fills them in a ring, and the receiver reads
/// them there. The first calls of both ends need each other; after that, an end waits only if the ring is full, or
/// empty. The waits of an end have the limit of the handle with which it was made ([`Communicator::within`]).
///
/// Does not wait. Until both ends were used for the first time, the channel occupies the slot in the direction from the
/// receiver to the sender; then the slot is free for messages and for other channels. So a pair may have any number of
/// channels, in both directions. Source: ACP, channels and segmented buffers.
///
/// Errors: no such slot or member; the slot is busy; no signal is left. Cost: that of a nonblocking receive.
///
/// ```
/// use tasuki::message::{channel_from, channel_to};
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     let world = job.world();
///     if job.rank() == 0 {
///         let mut to = channel_to::<u64>(world, Rank(1), Slot(0))?;
///         let mut next = 0;
///         while next < 1000 {
///             let places = to.reserve(1000 - next)?;              // waits for room for one at least
///             let count = places.len();
///             places.iter_mut().zip(next as u64..).for_each(|(place, number)| *place = number);
///             to.commit(count)?;                                  // now the receiver sees them
///             next += count;
///         }
///         to.finish()?;
///     } else {
///         let mut from = channel_from::<u64>(world, Rank(0), Slot(0), 64)?;
///         let mut sum = 0;
///         loop {
///             let elements = from.peek()?;                        // waits for one at least
///             let count = elements.len();
///             if count == 0 {
///                 break;                                          // the sender has finished
///             }
///             sum += elements.iter().sum::<u64>();
///             from.release(count)?;                               // now the sender may use their places again
///         }
///         assert_eq!(sum, 999 * 1000 / 2);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn channel_to<T: Pod>(
    communicator: &Communicator,
    to: impl Peer,
    slot: Slot,
) -> Result<ChannelSender<T>> {
    let (member, slot) = ends(communicator, to, slot, "channel_to")?;
    let element = ChannelElement::of::<T>();
    let core = Sender::new(communicator.messages(), member, slot, element, communicator.limit());
    let core = ManuallyDrop::new(core.map_err(|error| about(to, error))?);
    Ok(ChannelSender { core, place: Place::Unknown, reserved: 0 })
}

/// Makes the receiving end of a channel from a member, with a ring of `capacity` elements, which is not rounded.
/// [`channel_to`] makes the other end.
///
/// Does not wait. The waits of this end have the limit of `communicator`, too. Errors: those of `channel_to`; the
/// capacity is 0; there is no memory. Cost: that of [`alloc_local`](crate::Job::alloc_local), and of a nonblocking
/// send.
///
/// ```
/// use tasuki::message::{channel_from, channel_to};
/// use tasuki::Slot;
/// tasuki::local(1, |job| {
///     let mut to = channel_to::<f64>(job.world(), job.rank(), Slot(0))?;
///     let mut from = channel_from::<f64>(job.world(), job.rank(), Slot(0), 3)?;
///     let places = to.reserve(10)?;
///     assert_eq!(places.len(), 3); // all places of the ring
///     places.copy_from_slice(&[1.5, 2.5, 3.5]);
///     to.commit(3)?;
///     assert_eq!(from.peek()?, [1.5, 2.5, 3.5]);
///     from.release(3)?;
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub fn channel_from<T: Pod>(
    communicator: &Communicator,
    from: impl Peer,
    slot: Slot,
    capacity: usize,
) -> Result<ChannelReceiver<T>> {
    let (member, slot) = ends(communicator, from, slot, "channel_from")?;
    let (messages, call) =
        (communicator.messages(), || format!("channel_from({capacity} x {} bytes)", size_of::<T>()));
    let (worker, is_closed) = (messages.worker(), reaches_ring(messages, member));
    let allocate = if is_closed { allocate_closed } else { allocate_part };
    let ring: Array<T, Local> = allocate(worker, capacity, &call)?;
    let elements = match is_closed {
        true => Elements::InRing(ring.place()),
        false => Elements::Copied(zeroed_elements(worker, capacity, "channel_from")?, 0),
    };
    receive_over(communicator, (member, slot), ring, elements, is_closed).map_err(|error| about(from, error))
}

/// Like [`channel_from`], with memory of the program as the ring: an array of this rank alone, or this rank's part of
/// an array that other ranks have, too. The capacity is its length. [`ChannelReceiver::free`] returns the array.
///
/// Errors: those of `channel_from`, after which the array was dropped; the array belongs to another job.
///
/// # Safety
///
/// Until `free` has returned the array, no rank accesses this rank's part of it by its address.
///
/// ```
/// use tasuki::message::{channel_over, channel_to};
/// use tasuki::Slot;
/// tasuki::local(1, |job| {
///     let (world, own) = (job.world(), job.alloc_local::<f64>(4)?);
///     let mut to = channel_to::<f64>(world, job.rank(), Slot(0))?;
///     // SAFETY: nobody has the address of the array.
///     let mut from = unsafe { channel_over(world, job.rank(), Slot(0), own)? };
///     to.reserve(2)?.copy_from_slice(&[1.5, 2.5]);
///     to.commit(2)?;
///     assert_eq!(from.peek()?, [1.5, 2.5]);
///     to.finish()?;
///     let own = from.free()?;
///     assert_eq!(own.to_vec()?[..2], [1.5, 2.5]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub unsafe fn channel_over<T: Pod, S: 'static>(
    communicator: &Communicator,
    from: impl Peer,
    slot: Slot,
    ring: Array<T, S>,
) -> Result<ChannelReceiver<T, S>> {
    let (member, slot) = ends(communicator, from, slot, "channel_over")?;
    let worker = communicator.messages().worker();
    if ring.serial() != worker.serial() {
        let cause = Cause::Argument("the array belongs to another job".into());
        return Err(worker.fault(cause, || "channel_over".into()));
    }
    let elements = Elements::InRing(ring.place());
    receive_over(communicator, (member, slot), ring, elements, false).map_err(|error| about(from, error))
}

fn receive_over<T: Pod, S: 'static>(
    communicator: &Communicator,
    (member, slot): (Rank, u32),
    ring: Array<T, S>,
    elements: Elements<T>,
    is_closed: bool,
) -> Result<ChannelReceiver<T, S>> {
    let element = ChannelElement::of::<T>();
    let place = (ring.pointer().address(), ring.len() as u64);
    let mut core =
        Receiver::new(communicator.messages(), member, slot, element, place, communicator.limit())?;
    core.add_bytes(elements.copy_bytes());
    Ok(ChannelReceiver { core: ManuallyDrop::new(core), ring: Some(ring), elements, is_closed })
}

/// Returns the member and the slot of a channel.
fn ends(communicator: &Communicator, peer: impl Peer, slot: Slot, call: &'static str) -> Result<(Rank, u32)> {
    let messages = communicator.messages();
    let refused = |text: &str| messages.worker().fault(Cause::Argument(text.into()), || call.into());
    let Some(member) = place_of(messages, peer, call)? else {
        return Err(refused("a channel needs a rank at its other end"));
    };
    if slot == Slot::ANY {
        return Err(refused("a channel needs a slot with a number"));
    }
    Ok((member, slot.word()))
}

fn zeroed_elements<T: Pod>(worker: &Worker, count: usize, call: &str) -> Result<Vec<T>> {
    try_zeroed_vec(count).map_err(|_| {
        let wanted = (count * size_of::<T>()) as u64;
        let limit = "the allocator".to_string();
        worker.fault(Cause::NoMemory { wanted, available: 0, limit }, || call.into())
    })
}

/// Where a sender fills elements.
enum Place<T> {
    /// The receiver's end was not used yet.
    Unknown,
    /// In the ring itself.
    Ring(NonNull<T>),
    /// In a copy of the ring, which a commit puts there.
    Copy(Vec<T>),
}

/// The sending end of a channel. Made by [`channel_to`].
///
/// Where this rank reaches the receiver's memory, as on one node, elements are filled in the ring itself, and nothing
/// is copied. Otherwise they are filled in a copy of the ring, [`commit`](ChannelSender::commit) puts them, and the
/// receiver copies them out.
///
/// Dropping it ends the channel as [`finish`](ChannelSender::finish) does. A thread that panics does not end it: the
/// receiver learns that this rank has died.
///
/// ```
/// use tasuki::message::{ChannelSender, channel_from, channel_to};
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     if job.rank() == 0 {
///         let mut to: ChannelSender<u32> = channel_to(job.world(), Rank(1), Slot(0))?;
///         for number in 0..100 {
///             to.reserve(1)?[0] = number; // filled where the receiver reads it
///             to.commit(1)?;
///         }
///     } else {
///         let mut from = channel_from::<u32>(job.world(), Rank(0), Slot(0), 8)?;
///         for number in 0..100 {
///             assert_eq!(from.peek()?[0], number);
///             from.release(1)?;
///         }
///         assert!(from.peek()?.is_empty()); // the sender's end was dropped
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct ChannelSender<T: Pod> {
    /// Taken when this is dropped.
    core: ManuallyDrop<Sender>,
    place: Place<T>,
    /// How many elements from the next one on belong to the program.
    reserved: usize,
}

// SAFETY: the pointer is to a ring of which the counters give parts to this end alone; T is plain data.
unsafe impl<T: Pod> Send for ChannelSender<T> {}
// SAFETY: shared references give no access to elements.
unsafe impl<T: Pod> Sync for ChannelSender<T> {}

impl<T: Pod> fmt::Debug for ChannelSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelSender").field("reserved", &self.reserved).finish_non_exhaustive()
    }
}

impl<T: Pod> ChannelSender<T> {
    /// Waits until there is room, and returns the places of up to `n` elements, to be filled: one at least, and no more
    /// than lie in a row until the end of the ring. Their values are those of earlier elements, or zeros.
    ///
    /// A call that has got fewer places than `n` gets others after its commit. The places of a call that are not
    /// committed are returned again by the next one. With an `n` of 0 it returns no place, and does not wait.
    ///
    /// Errors: the receiver was dropped ([`Cause::ChannelDropped`](crate::engine::Cause::ChannelDropped)), which shows
    /// at the latest when the ring is full; the receiver's elements have another type; the peer has left or died; the
    /// time limit, after which one may call again. Cost: a few instructions. When this end does not know of room, it
    /// reads the receiver's counter, one transfer of a cache line.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u32>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u32>(job.world(), job.rank(), Slot(0), 4)?;
    ///     to.reserve(3)?.copy_from_slice(&[1, 2, 3]);
    ///     to.commit(3)?;
    ///     assert_eq!(to.reserve(3)?.len(), 1); // one place is left until the end of the ring
    ///     assert_eq!(from.peek()?, [1, 2, 3]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)]
    pub fn reserve(&mut self, n: usize) -> Result<&mut [T]> {
        if self.core.room() == 0 && n > 0 {
            self.core.wait_for_room()?;
        }
        self.places(n)
    }

    /// Like [`reserve`](ChannelSender::reserve). Returns `None` if there is no room now.
    ///
    /// ```
    /// use tasuki::message::{channel_from, channel_to};
    /// use tasuki::Slot;
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 2)?;
    ///     to.reserve(2)?.copy_from_slice(b"ab");
    ///     to.commit(2)?;
    ///     assert!(to.try_reserve(1)?.is_none());          // the ring is full
    ///     assert_eq!(from.try_peek()?, Some(&b"ab"[..]));
    ///     from.release(2)?;
    ///     assert_eq!(from.try_peek()?, None);             // it is empty
    ///     assert!(to.try_reserve(1)?.is_some());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn try_reserve(&mut self, n: usize) -> Result<Option<&mut [T]>> {
        if self.core.room() == 0 && n > 0 && !self.core.try_room()? {
            return Ok(None);
        }
        self.places(n).map(Some)
    }

    /// The moment when a [`reserve`](ChannelSender::reserve) does not wait: a request, and a future.
    ///
    /// ```
    /// use tasuki::message::{channel_from, channel_to};
    /// use tasuki::{Request, Slot};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 2)?;
    ///     to.ready().wait()?;
    ///     to.reserve(2)?.copy_from_slice(b"ab");
    ///     to.commit(2)?;
    ///     assert!(!to.ready().test()); // the ring is full
    ///     assert_eq!(from.peek()?, b"ab");
    ///     from.release(1)?;
    ///     assert!(to.ready().test());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ready(&mut self) -> ChannelReady<'_> {
        ChannelReady { end: End::Sender(&mut self.core), awaited: AwaitedCondition::default() }
    }

    /// Like a poll of [`ready`](ChannelSender::ready), whose caller keeps what is awaited.
    pub(crate) fn poll_room(&mut self, awaited: &mut AwaitedCondition, waker: &task::Waker) -> Poll<()> {
        self.core.poll_room(awaited, waker)
    }

    #[inline(always)]
    fn places(&mut self, n: usize) -> Result<&mut [T]> {
        if let Place::Unknown = self.place {
            self.find_place()?;
        }
        let (first, count) = (self.core.position() as usize, n.min(self.core.room() as usize));
        self.reserved = count;
        Ok(match &mut self.place {
            // SAFETY: the ring has the elements, since there is room for them in a row. It stays mapped and allocated
            // until this end is closed. The receiver does not access them before they are committed, and this borrow
            // ends before.
            Place::Ring(start) => unsafe { std::slice::from_raw_parts_mut(start.as_ptr().add(first), count) },
            Place::Copy(values) => &mut values[first..first + count],
            Place::Unknown => &mut [],
        })
    }

    #[cold]
    fn find_place(&mut self) -> Result<()> {
        let (ring, capacity) = self.core.ring();
        let bytes = capacity * size_of::<T>() as u64;
        if capacity == 0 {
            return Ok(()); // no place was asked for, and none is known
        }
        let worker = self.core.worker();
        let fabric = worker.fabric();
        let mapped = match self.core.is_direct() {
            true => fabric.map_closed(ring, bytes).or_else(|| fabric.map(ring, bytes)),
            false => None,
        };
        self.place = match mapped {
            Some(start) => Place::Ring(start.cast()),
            None => {
                let values = zeroed_elements(worker, capacity as usize, "reserve")?;
                self.core.add_bytes(bytes);
                Place::Copy(values)
            }
        };
        Ok(())
    }

    /// Makes the first `n` of the reserved places visible to the receiver, as elements. Several commits may follow one
    /// [`reserve`](ChannelSender::reserve).
    ///
    /// Errors: fewer are reserved; a rank died. Cost: three stores into one cache line at the receiver; where the ring
    /// is not reached, a put.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 8)?;
    ///     to.reserve(4)?.copy_from_slice(b"abcd");
    ///     to.commit(1)?; // the rest may follow later
    ///     assert_eq!(from.peek()?, b"a");
    ///     to.commit(3)?;
    ///     from.release(1)?;
    ///     assert_eq!(from.peek()?, b"bcd");
    ///     assert!(to.commit(1).is_err()); // no more are reserved
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)]
    pub fn commit(&mut self, n: usize) -> Result<()> {
        if n > self.reserved {
            return Err(self.core.too_many(n, self.reserved));
        }
        let first = self.core.position() as usize;
        let copy = match &self.place {
            Place::Copy(values) => Some(bytemuck::cast_slice(&values[first..first + n])),
            Place::Ring(_) | Place::Unknown => None,
        };
        self.core.commit(n as u64, copy)?;
        self.reserved -= n;
        Ok(())
    }

    /// Tells the receiver that no more elements come. It still gets those that were committed. Does not wait for it.
    ///
    /// `Ok` does not mean that the elements were read, or will be: it is the result also if the receiver was dropped. A
    /// program that must know lets the receiver answer. If the receiver's end was not used yet, any later waiting call
    /// of the rank tells it, or the rank when it leaves; the slot stays busy until then.
    ///
    /// Errors: this end was never used, and the receiver's elements have another type, or the peer has died or left
    /// without making its end. Where the receiver's memory is not mapped, also: a rank died; the time limit of the rank
    /// ([`Job::set_timeout`](crate::Job::set_timeout)).
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 8)?;
    ///     to.reserve(2)?.copy_from_slice(b"ab");
    ///     to.commit(2)?;
    ///     to.finish()?;
    ///     assert_eq!(from.peek()?, b"ab"); // they still come
    ///     from.release(2)?;
    ///     assert_eq!(from.peek()?, b""); // the end
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn finish(self) -> Result<()> {
        ManuallyDrop::new(self).end()
    }

    /// Ends the channel. Called once; nothing is used afterwards.
    fn end(&mut self) -> Result<()> {
        // SAFETY: this is called once, and the core is not used again.
        let mut core = unsafe { ManuallyDrop::take(&mut self.core) };
        if let Place::Copy(values) = std::mem::replace(&mut self.place, Place::Unknown) {
            core.subtract_bytes(size_of_val(&values[..]) as u64);
        }
        core.retire()
    }
}

impl<T: Pod> Drop for ChannelSender<T> {
    fn drop(&mut self) {
        let _ = self.end(); // the receiver has gone, or gets the error, too
    }
}

/// The receiving end of a channel. Made by [`channel_from`] or [`channel_over`].
///
/// If it is dropped, the sender gets an error when it waits for room, and elements that were not read are lost: a
/// sender that does not wait again learns nothing of it, and its [`finish`](ChannelSender::finish) returns `Ok`. The
/// ring is freed when the sender is closed. A thread that panics does not tell the sender, which learns that this rank
/// has died.
///
/// ```
/// use tasuki::message::{ChannelReceiver, channel_from, channel_to};
/// use tasuki::{Rank, Slot};
/// tasuki::local(2, |job| {
///     if job.rank() == 0 {
///         let mut to = channel_to::<f64>(job.world(), Rank(1), Slot(0))?;
///         for step in 0..100 {
///             to.reserve(1)?[0] = f64::from(step);
///             to.commit(1)?;
///         }
///     } else {
///         let mut from: ChannelReceiver<f64> = channel_from(job.world(), Rank(0), Slot(0), 16)?;
///         let mut sum = 0.0;
///         while let elements @ [_, ..] = from.peek()? {
///             sum += elements.iter().sum::<f64>();
///             let count = elements.len();
///             from.release(count)?;
///         }
///         assert_eq!(sum, 4950.0);
///     }
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct ChannelReceiver<T: Pod, S: 'static = Local> {
    /// Taken when this is dropped.
    core: ManuallyDrop<Receiver>,
    ring: Option<Array<T, S>>,
    elements: Elements<T>,
    /// The ring is closed memory.
    is_closed: bool,
}

/// Where a receiver reads elements.
enum Elements<T> {
    /// In the ring itself.
    InRing(*const T),
    /// In a copy of the ring, and how many elements were copied to it.
    Copied(Vec<T>, u64),
}

impl<T> Elements<T> {
    fn copy_bytes(&self) -> u64 {
        match self {
            Elements::InRing(_) => 0,
            Elements::Copied(values, _) => size_of_val(&values[..]) as u64,
        }
    }
}

// SAFETY: the pointer is to a ring of which the counters give parts to this end alone; T is plain data.
unsafe impl<T: Pod, S> Send for ChannelReceiver<T, S> {}
// SAFETY: shared references give no access to elements.
unsafe impl<T: Pod, S> Sync for ChannelReceiver<T, S> {}

impl<T: Pod, S> fmt::Debug for ChannelReceiver<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelReceiver").field("ring", &self.ring).finish_non_exhaustive()
    }
}

impl<T: Pod, S> ChannelReceiver<T, S> {
    /// Waits until there is an element, and returns all elements that lie in a row until the end of the ring. Returns
    /// no element when the sender has finished and all elements were released.
    ///
    /// Errors: the sender's elements have another type; the peer died, or left without having finished; the time limit,
    /// after which one may call again. Cost: a few instructions. When this end does not know of an element, it reads
    /// the sender's counter, one transfer of a cache line.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 8)?;
    ///     to.reserve(3)?.copy_from_slice(b"abc");
    ///     to.commit(3)?;
    ///     assert_eq!(from.peek()?, b"abc");
    ///     assert_eq!(from.peek()?, b"abc"); // they stay until they are released
    ///     from.release(2)?;
    ///     assert_eq!(from.peek()?, b"c");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)]
    pub fn peek(&mut self) -> Result<&[T]> {
        if self.core.available() == 0 {
            self.core.wait_for_element()?;
        }
        self.elements()
    }

    /// Like [`peek`](ChannelReceiver::peek). Returns `None` if there is no element now, and the sender has not
    /// finished.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 8)?;
    ///     to.reserve(1)?[0] = 7;
    ///     assert_eq!(from.try_peek()?, None); // it was not committed
    ///     to.commit(1)?;
    ///     assert_eq!(from.try_peek()?, Some(&[7][..]));
    ///     from.release(1)?;
    ///     to.finish()?;
    ///     assert_eq!(from.try_peek()?, Some(&[][..])); // the end
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn try_peek(&mut self) -> Result<Option<&[T]>> {
        if self.core.available() == 0 && !self.core.try_element()? {
            return Ok(None);
        }
        self.elements().map(Some)
    }

    /// The moment when a [`peek`](ChannelReceiver::peek) does not wait: a request, and a future.
    ///
    /// ```
    /// use tasuki::message::{channel_from, channel_to};
    /// use tasuki::{Rank, Slot, block_on};
    /// tasuki::local(2, |job| {
    ///     if job.rank() == 0 {
    ///         let mut to = channel_to::<u8>(job.world(), Rank(1), Slot(0))?;
    ///         to.reserve(1)?[0] = 7;
    ///         return to.commit(1);
    ///     }
    ///     block_on(async {
    ///         let mut from = channel_from::<u8>(job.world(), Rank(0), Slot(0), 10)?;
    ///         from.ready().await?;
    ///         assert_eq!(from.peek()?, [7]);
    ///         Ok(())
    ///     })
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ready(&mut self) -> ChannelReady<'_> {
        ChannelReady { end: End::Receiver(&mut self.core), awaited: AwaitedCondition::default() }
    }

    /// Like a poll of [`ready`](ChannelReceiver::ready), whose caller keeps what is awaited.
    pub(crate) fn poll_element(&mut self, awaited: &mut AwaitedCondition, waker: &task::Waker) -> Poll<()> {
        self.core.poll_element(awaited, waker)
    }

    #[inline(always)]
    fn elements(&mut self) -> Result<&[T]> {
        let (first, count) = (self.core.position() as usize, self.core.available() as usize);
        match &self.elements {
            // SAFETY: the elements were committed and not released, and lie in a row in the ring, which this end owns:
            // after it has returned the ring there are none. The sender does not write them before they are released,
            // and this borrow ends before. Nobody else writes them: the ring is closed memory, or the caller of
            // `channel_over` has promised it.
            Elements::InRing(start) => Ok(unsafe { std::slice::from_raw_parts(start.add(first), count) }),
            Elements::Copied(..) => self.copied(first, count),
        }
    }

    /// Copies those of the elements that were not copied yet.
    fn copied(&mut self, first: usize, count: usize) -> Result<&[T]> {
        let (Elements::Copied(values, copied), Some(ring)) = (&mut self.elements, &self.ring) else {
            return Ok(&[]);
        };
        let until = self.core.released() + count as u64;
        let begin = first + count - (until.saturating_sub(*copied) as usize).min(count);
        ring.read(begin, &mut values[begin..first + count])?;
        *copied = until;
        Ok(&values[first..first + count])
    }

    /// Lets the sender use the places of the first `n` elements again. They are gone.
    ///
    /// Errors: fewer are there in a row; a rank died. Cost: three stores into one cache line at the sender.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 2)?;
    ///     to.reserve(2)?.copy_from_slice(b"ab");
    ///     to.commit(2)?;
    ///     assert_eq!(from.peek()?, b"ab");
    ///     from.release(1)?;
    ///     to.reserve(1)?[0] = b'c'; // in the place of the a
    ///     to.commit(1)?;
    ///     assert!(from.release(9).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline(always)]
    pub fn release(&mut self, n: usize) -> Result<()> {
        self.core.release(n as u64)
    }

    /// Ends the channel and returns the ring. Tells the sender that nobody reads any more, as a drop does, and waits
    /// until the sender has finished or was dropped. Elements that were not released are lost. After an error that the peer
    /// has left without having made its end, the ring comes back at once.
    ///
    /// Errors: the peer has left without having finished, or died; the time limit: one may call again; the ring was
    /// returned already.
    ///
    /// ```
    /// use tasuki::Slot;
    /// use tasuki::message::{channel_from, channel_to};
    /// tasuki::local(1, |job| {
    ///     let mut to = channel_to::<u8>(job.world(), job.rank(), Slot(0))?;
    ///     let mut from = channel_from::<u8>(job.world(), job.rank(), Slot(0), 4)?;
    ///     to.reserve(2)?.copy_from_slice(b"ab");
    ///     to.commit(2)?;
    ///     assert_eq!(from.peek()?, b"ab");
    ///     to.finish()?;
    ///     let ring = from.free()?; // an array of this rank
    ///     assert_eq!(ring.to_vec()?, b"ab\0\0");
    ///     assert!(from.free().is_err()); // once
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn free(&mut self) -> Result<Array<T, S>> {
        if self.ring.is_some() {
            self.core.free()?;
        }
        let ring = self.ring.take().ok_or_else(|| self.core.already_freed())?;
        if std::mem::take(&mut self.is_closed) {
            ring.open()?;
        }
        self.core.subtract_bytes(self.elements.copy_bytes());
        self.elements = Elements::Copied(Vec::new(), 0);
        Ok(ring)
    }
}

impl<T: Pod, S> Drop for ChannelReceiver<T, S> {
    fn drop(&mut self) {
        // SAFETY: this is called once, and the core is not used again.
        let core = unsafe { ManuallyDrop::take(&mut self.core) };
        core.retire(self.ring.take().map(|ring| Box::new(ring) as KeptMemory));
    }
}

enum End<'c> {
    Sender(&'c mut Sender),
    Receiver(&'c mut Receiver),
}

/// The moment when an end of a channel can go on. Made by [`ChannelSender::ready`] and [`ChannelReceiver::ready`].
///
/// Errors of a wait: those of [`ChannelSender::reserve`] and [`ChannelReceiver::peek`].
///
/// # Cancel safety
///
/// Dropping it changes nothing: wait again.
///
/// ```
/// use tasuki::engine::AnyRequest;
/// use tasuki::message::{channel_from, channel_to};
/// use tasuki::{Slot, wait_any};
/// tasuki::local(1, |job| {
///     let world = job.world();
///     let mut to = [channel_to::<u8>(world, job.rank(), Slot(0))?, channel_to(world, job.rank(), Slot(1))?];
///     let mut first = channel_from::<u8>(world, job.rank(), Slot(0), 4)?;
///     let mut second = channel_from::<u8>(world, job.rank(), Slot(1), 4)?;
///     to[1].reserve(1)?[0] = 7;
///     to[1].commit(1)?;
///     assert_eq!(wait_any([&mut first.ready() as &mut dyn AnyRequest, &mut second.ready()])?, 1);
///     assert_eq!(second.peek()?, [7]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct ChannelReady<'c> {
    end: End<'c>,
    awaited: AwaitedCondition,
}

impl fmt::Debug for ChannelReady<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelReady").field("awaited", &self.awaited).finish_non_exhaustive()
    }
}

impl Request for ChannelReady<'_> {
    type Value = ();

    fn test(&mut self) -> bool {
        match &mut self.end {
            End::Sender(sender) => sender.room() > 0 || !matches!(sender.try_room(), Ok(false)),
            End::Receiver(receiver) => {
                receiver.available() > 0 || !matches!(receiver.try_element(), Ok(false))
            }
        }
    }

    fn wait(&mut self) -> Result<()> {
        match &mut self.end {
            End::Sender(sender) if sender.room() > 0 => Ok(()),
            End::Sender(sender) => sender.wait_for_room(),
            End::Receiver(receiver) if receiver.available() > 0 => Ok(()),
            End::Receiver(receiver) => receiver.wait_for_element(),
        }
    }

    fn poll_finished(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        match &mut self.end {
            End::Sender(sender) => sender.poll_room(&mut self.awaited, context.waker()),
            End::Receiver(receiver) => receiver.poll_element(&mut self.awaited, context.waker()),
        }
    }
}

future_by_request!(['c] ChannelReady<'c>);
