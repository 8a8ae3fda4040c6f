//! Job memory as typed values: this rank's part of an allocation, and the addresses of all parts.
#![allow(unsafe_code)]
//! Unsafe: copies between borrowed slices and this rank's own registered memory; the bounds are checked right before.
//! References to the memory are returned only by unsafe calls, because peers may write it at any time.

use crate::collective::Data;
use crate::message::Peer;
use crate::onesided::GlobalAddress;
use crate::{GlobalPtr, Pod, Rank, Result};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;
use tasuki_core::os::copy;
use tasuki_message::Context;

/// Marks an [`Array`] that has a part on every rank of the job.
///
/// ```
/// use tasuki::onesided::Symmetric;
/// use tasuki::{Array, Job};
/// /// Returns what the next rank has in its first place.
/// fn of_next(job: &Job, table: &Array<u64, Symmetric>) -> tasuki::Result<u64> {
///     job.get_value(table.on(job.rank_after(1)))
/// }
/// tasuki::local(2, |job| {
///     let table = job.alloc::<u64>(8)?;
///     table.fill(job.rank().index() as u64)?;
///     job.barrier()?;
///     assert_eq!(of_next(job, &table)?, job.rank_after(1).index() as u64);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub enum Symmetric {}

/// Marks an [`Array`] that has a part on every member of a communicator.
///
/// ```
/// use tasuki::onesided::OfMembers;
/// use tasuki::{Array, Job, Member};
/// /// Returns what the first member has in its first place.
/// fn of_first(job: &Job, table: &Array<u64, OfMembers>) -> tasuki::Result<u64> {
///     job.get_value(table.on(Member(0)))
/// }
/// tasuki::local(4, |job| {
///     let half = job.world().split(job.rank().index() % 2)?;
///     let table = job.alloc_on::<u64>(&half, 8)?;
///     table.fill(job.rank().index() as u64)?;
///     half.barrier()?;
///     assert_eq!(of_first(job, &table)?, job.rank().index() as u64 % 2);
///     half.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub enum OfMembers {}

/// Marks an [`Array`] on this rank alone.
///
/// ```
/// use tasuki::onesided::{Local, LocalArray};
/// use tasuki::{Array, GlobalPtr};
/// /// What a rank tells others of its own table.
/// fn name_of(table: &Array<u64, Local>) -> GlobalPtr<u64> {
///     table.pointer() // there is no `on`: other ranks have no part of it
/// }
/// tasuki::local(2, |job| {
///     let table: LocalArray<u64> = job.alloc_local(8)?;
///     table.set(0, job.rank().index() as u64)?;
///     let names = job.world().allgather(&name_of(&table))?;
///     assert_eq!(job.get_value(names[1])?, 1);
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub enum Local {}

/// Memory on this rank alone. Made by [`Job::alloc_local`](crate::Job::alloc_local).
///
/// Other ranks access it through its [`pointer`](Array::pointer), which may be sent to them. It has no part on another
/// rank, so a call of `on` does not compile:
///
/// ```compile_fail,E0599
/// # tasuki::local(2, |job| {
/// let own = job.alloc_local::<u64>(4)?;
/// job.put(own.on(tasuki::Rank(1)), &[1])
/// # })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub type LocalArray<T> = Array<T, Local>;

/// Memory with a part on every member of a communicator. Made by [`Job::alloc_on`](crate::Job::alloc_on).
///
/// ```
/// use tasuki::onesided::MemberArray;
/// tasuki::local(3, |job| {
///     let reversed = job.world().split((0, -(job.rank().index() as isize)))?;
///     let table: MemberArray<u64> = job.alloc_on(&reversed, 4)?;
///     job.put(table.on(reversed.members().after(1)), &[7])?; // a member; a rank of the job would do, too
///     reversed.barrier()?;
///     assert_eq!(table.get(0)?, 7);
///     reversed.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub type MemberArray<T> = Array<T, OfMembers>;

/// Memory of `len` values on this rank. Memory of [`Job::alloc`](crate::Job::alloc) also has a part of that size on
/// every other rank, memory of [`Job::alloc_on`](crate::Job::alloc_on) on every member of a communicator, and a
/// [`LocalArray`](crate::onesided::LocalArray) on no other rank.
///
/// Peers read and write it by its address. The rank itself uses the methods below, which copy. Dropping the array
/// frees this rank's part. Synchronise before that (by a barrier or a signal), so that no access is in flight; later
/// accesses fail with a stale address.
///
/// ```
/// tasuki::local(2, |job| {
///     let table = job.alloc::<i32>(10)?;
///     table.write(2, &[7, 8, 9])?;                        // this rank's part
///     job.barrier()?;
///     let peer = job.rank_after(1);
///     assert_eq!(job.get_value(table.on(peer).at(3))?, 8); // the peer's part
///     job.barrier()
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
pub struct Array<T, S = Symmetric> {
    worker: Arc<Worker>,
    offset: u64,
    len: usize,
    start: *mut u8,
    /// The parts of an array of a communicator. Those of an array of the job are on all ranks, at the same offset.
    parts: Option<Arc<Parts>>,
    of: PhantomData<(T, S)>,
}

/// Where the parts of an array of a communicator are.
struct Parts {
    context: Arc<Context>,
    /// By member.
    starts: Box<[GlobalAddress]>,
}

// SAFETY: the pointer is to shared memory that is only ever copied; T is plain data.
unsafe impl<T: Pod, S> Send for Array<T, S> {}
// SAFETY: the pointer is to shared memory that is only ever copied; T is plain data.
unsafe impl<T: Pod, S> Sync for Array<T, S> {}

impl<T, S> std::fmt::Debug for Array<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({} x {} bytes at offset {:#x})", self.len, size_of::<T>(), self.offset)
    }
}

impl<T: Pod> Array<T> {
    /// The part of a rank. If there is no such rank, every access refuses the address.
    ///
    /// A [`Member`](crate::Member) is none of the job, so this does not take one: a member of a grid, for example, may
    /// have another number than its rank. Its communicator's [`members`](crate::Communicator::members) know its rank; or
    /// allocate on that communicator ([`Job::alloc_on`](crate::Job::alloc_on)).
    ///
    /// An address keeps no memory alive: an array that is a temporary, as in `job.alloc::<u64>(1)?.on(peer)`, is freed
    /// at the end of the statement.
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let table = job.alloc::<u64>(10)?;
    ///     job.put(table.on(job.rank_after(1)).at(4), &[7, 8])?;
    ///     job.barrier()?;
    ///     assert_eq!((table.get(4)?, table.get(5)?), (7, 8));
    ///     assert!(job.put(table.on(tasuki::Rank(3)), &[0]).is_err()); // there is no rank 3
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn on(&self, rank: Rank) -> GlobalPtr<T> {
        GlobalPtr::new(GlobalAddress::new(rank, self.offset))
    }
}

impl<T: Pod> MemberArray<T> {
    /// Makes this the array of a communicator. `starts`: the address of each member's part.
    pub(crate) fn with_parts(
        mut self,
        context: &Arc<Context>,
        starts: Box<[GlobalAddress]>,
    ) -> MemberArray<T> {
        self.parts = Some(Arc::new(Parts { context: context.clone(), starts }));
        self
    }

    /// The part of a member of the array's communicator, named by its number there or by its rank. If there is no such
    /// part, every access refuses the address.
    ///
    /// ```
    /// use tasuki::{Member, Rank};
    /// tasuki::local(4, |job| {
    ///     let odd = job.world().split(job.rank().index() % 2)?; // ranks 0 and 2, ranks 1 and 3
    ///     let table = job.alloc_on::<u64>(&odd, 10)?;
    ///     let rank = Rank(2 + job.rank().index() % 2);
    ///     assert_eq!(table.on(Member(1)), table.on(rank));
    ///     assert!(table.on(Member(2)).is_null() && table.on(job.rank_after(1)).is_null());
    ///     odd.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn on(&self, peer: impl Peer) -> GlobalPtr<T> {
        GlobalPtr::new(self.parts.as_ref().map_or(GlobalAddress::NULL, |parts| parts.of(peer)))
    }
}

impl Parts {
    fn of(&self, peer: impl Peer) -> GlobalAddress {
        let member = peer.member(&self.context).ok().flatten();
        member.and_then(|member| self.starts.get(member.index()).copied()).unwrap_or(GlobalAddress::NULL)
    }
}

impl<T: Pod, S> Array<T, S> {
    pub(crate) fn new(worker: Arc<Worker>, offset: u64, len: usize) -> Array<T, S> {
        let own = GlobalAddress::new(worker.rank(), offset);
        let start =
            worker.own_place(own, (len * size_of::<T>()) as u64).expect("it was allocated and mapped");
        Array { worker, offset, len, start, parts: None, of: PhantomData }
    }

    /// Local memory that is closed: no method may be called before it was opened. `start`: where it is in this process.
    pub(crate) fn closed(worker: Arc<Worker>, offset: u64, len: usize, start: NonNull<u8>) -> Array<T, S> {
        Array { worker, offset, len, start: start.as_ptr(), parts: None, of: PhantomData }
    }

    /// Makes closed memory usual memory.
    pub(crate) fn open(&self) -> Result<()> {
        self.worker.registry().open(self.offset)
    }

    /// This rank's part, as an address that may be sent to any rank.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc_local::<u64>(4)?;
    ///     table.fill(job.rank().index() as u64)?;
    ///     let tables = job.world().allgather(&table.pointer())?; // addresses are plain values
    ///     assert_eq!(job.get_value(tables[1].at(3))?, 1);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn pointer(&self) -> GlobalPtr<T> {
        GlobalPtr::new(GlobalAddress::new(self.worker.rank(), self.offset))
    }

    /// The number of the worker of its rank.
    pub(crate) fn serial(&self) -> u64 {
        self.worker.serial()
    }

    /// Where this rank's part is in this process.
    pub(crate) fn place(&self) -> *mut T {
        self.start.cast()
    }

    /// The number of values in each part.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<f64>(10)?;
    ///     let mut copy = vec![0.0; table.len()];
    ///     job.get(table.on(job.rank_after(1)), &mut copy)?;
    ///     assert_eq!(copy, [0.0; 10]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns false: an allocation has at least one value.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     assert!(!job.alloc::<f64>(1)?.is_empty());
    ///     assert!(job.alloc::<f64>(0).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Copies values of this rank's part, from index `first` on, into `to`. If a peer writes a value meanwhile, the
    /// copy may mix its old and new bytes.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.alloc::<u64>(10)?;
    ///     table.fill(7)?;
    ///     let mut three = [0; 3];
    ///     table.read(5, &mut three)?;
    ///     assert_eq!(three, [7; 3]);
    ///     assert!(table.read(8, &mut three).is_err()); // it would end behind the array
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn read<D: Data<Value = T> + ?Sized>(&self, first: usize, to: &mut D) -> Result<()> {
        self.read_in(first, to.values_mut(), "read")
    }

    #[inline]
    fn read_in(&self, first: usize, to: &mut [T], call: &str) -> Result<()> {
        let from = self.span(first, to.len(), call)?;
        // SAFETY: `span` has checked that the values lie in this rank's part; `to` is borrowed mutably and as long.
        unsafe { copy::copy(from, to.as_mut_ptr().cast(), size_of_val(to)) };
        Ok(())
    }

    /// Copies `from` into this rank's part, from index `first` on.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.alloc::<u64>(4)?;
    ///     table.write(1, &[7, 8])?;
    ///     assert_eq!(table.to_vec()?, [0, 7, 8, 0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn write<D: Data<Value = T> + ?Sized>(&self, first: usize, from: &D) -> Result<()> {
        self.write_in(first, from.values(), "write")
    }

    #[inline]
    fn write_in(&self, first: usize, from: &[T], call: &str) -> Result<()> {
        let to = self.span(first, from.len(), call)?;
        // SAFETY: `span` has checked that the values lie in this rank's part; `from` is borrowed and as long.
        unsafe { copy::copy(from.as_ptr().cast(), to, size_of_val(from)) };
        Ok(())
    }

    /// Returns one value of this rank's part.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(4)?;
    ///     job.put(table.on(job.rank_after(1)).at(2), &[7])?;
    ///     job.barrier()?;
    ///     assert_eq!(table.get(2)?, 7);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn get(&self, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.read_in(index, std::slice::from_mut(&mut value), "get")?;
        Ok(value)
    }

    /// Sets one value of this rank's part.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(4)?;
    ///     table.set(2, job.rank().index() as u64)?;
    ///     job.barrier()?;
    ///     let peer = job.rank_after(1);
    ///     assert_eq!(job.get_value(table.on(peer).at(2))?, peer.index() as u64);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn set(&self, index: usize, value: T) -> Result<()> {
        self.write_in(index, &[value], "set")
    }

    /// Sets all values of this rank's part.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.alloc::<f32>(4)?;
    ///     table.fill(0.5)?;
    ///     assert_eq!(table.to_vec()?, [0.5; 4]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn fill(&self, value: T) -> Result<()> {
        let block = vec![value; self.len.min((64 * 1024 / size_of::<T>()).max(1))];
        for first in (0..self.len).step_by(block.len()) {
            self.write(first, &block[..block.len().min(self.len - first)])?;
        }
        Ok(())
    }

    /// Returns a copy of this rank's part.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u8>(5)?;
    ///     job.put(table.on(job.rank_after(1)), b"hello")?;
    ///     job.barrier()?;
    ///     assert_eq!(table.to_vec()?, b"hello");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.len];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// This rank's part as a slice.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(4)?;
    ///     job.put(table.on(job.rank_after(1)), &[1, 2, 3, 4])?;
    ///     job.barrier()?;
    ///     // SAFETY: no rank writes to the array any more.
    ///     let sum: u64 = unsafe { table.as_slice() }.iter().sum();
    ///     assert_eq!(sum, 10);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// # Safety
    /// No thread and no peer, this rank included, writes to the part while the slice lives.
    pub unsafe fn as_slice(&self) -> &[T] {
        // SAFETY: the part is mapped while the array lives, aligned to 64 KiB, initialised (zeroed), and T is
        // plain data; the caller keeps writers out.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.len) }
    }

    /// This rank's part as a mutable slice.
    ///
    /// # Safety
    /// Neither a peer nor another thread of this rank reads or writes the part while the slice lives.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let own = job.alloc_local::<f64>(1000)?;
    ///     // SAFETY: nobody else has the address of the array.
    ///     let values = unsafe { own.as_mut_slice() };
    ///     values.iter_mut().enumerate().for_each(|(index, value)| *value = index as f64);
    ///     // SAFETY: nobody writes to the array while the slice lives.
    ///     assert_eq!(unsafe { own.as_slice() }.iter().sum::<f64>(), 499_500.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice(&self) -> &mut [T] {
        // SAFETY: the part is mapped while the array lives, aligned to 64 KiB, initialised (zeroed), and T is plain
        // data; the caller keeps all other readers and writers out.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.len) }
    }

    /// The address of `count` values from index `first` on, if this rank's part contains them.
    #[inline]
    fn span(&self, first: usize, count: usize, call: &str) -> Result<*mut u8> {
        if first <= self.len && count <= self.len - first && !self.worker.fork_guard().is_forked() {
            return Ok(self.start.wrapping_add(first * size_of::<T>()));
        }
        Err(self.out_of_bounds(first, count, call))
    }

    #[cold]
    fn out_of_bounds(&self, first: usize, count: usize, call: &str) -> crate::Error {
        if self.worker.fork_guard().is_forked() {
            return self.worker.fault(Cause::Forked, || format!("Array::{call}"));
        }
        let text = format!("{count} values from index {first} on exceed the array of {} values", self.len);
        self.worker.fault(Cause::Argument(text), || format!("Array::{call}"))
    }
}

impl<T, S> Drop for Array<T, S> {
    fn drop(&mut self) {
        // A forked child must not free the rank's memory.
        if !self.worker.fork_guard().is_forked() {
            let freed = self.worker.registry().free(self.offset);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
    }
}
