//! Memory that the program owns and makes accessible to other ranks.
#![allow(unsafe_code)]
//! Unsafe: a registered buffer is owned by its registration and not accessed by reference until it is returned,
//! because peers may write it. For raw registrations the caller promises that.

use crate::job::Job;
use crate::onesided::GlobalAddress;
use crate::{GlobalPtr, Pod, Result};
use std::sync::Arc;
use tasuki_core::base::planted;
use tasuki_core::engine::Worker;
use tasuki_core::os::copy;

/// A vector that peers can access until it is unregistered. Made by [`Job::register`].
///
/// ```
/// tasuki::local(2, |job| {
///     let table = job.register(vec![job.rank().index(); 1000])?; // memory of the program
///     let tables = job.world().allgather(&table.pointer())?;
///     assert_eq!(job.get_value(tables[1].at(999))?, 1);
///     job.barrier()?;
///     assert_eq!(table.unregister(), vec![job.rank().index(); 1000]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct Registered<T: Pod> {
    raw: RawRegistration,
    values: Option<Vec<T>>,
}

/// A range of this process's memory that peers can access until this value is dropped. Made by [`Job::register_raw`].
///
/// ```
/// use tasuki::GlobalPtr;
/// tasuki::local(2, |job| {
///     let mut words = Box::new([job.rank().index() as u64; 4]);
///     // SAFETY: the box outlives the registration, and is not used until that has ended.
///     let raw = unsafe { job.register_raw(words.as_mut_ptr().cast(), 32)? };
///     let all = job.world().allgather(&raw.address())?;
///     assert_eq!(job.get_value(GlobalPtr::<u64>::new(all[1]))?, 1);
///     job.barrier()?;
///     drop(raw);
///     assert_eq!(*words, [job.rank().index() as u64; 4]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Debug)]
pub struct RawRegistration {
    worker: Arc<Worker>,
    offset: u64,
    host: u64,
    bytes: u64,
}

impl Job {
    /// Makes a vector accessible to other ranks. [`Registered::unregister`] returns it.
    ///
    /// Not collective: send [`Registered::pointer`] to the ranks that need it. Errors: the vector is empty; the table
    /// of registrations is full. Cost of a put or get by a peer: a system call (process_vm_readv or process_vm_writev)
    /// if the kernel permits it, else a request that this rank answers when it [makes
    /// progress](crate::engine#progress). A peer's atomics, loads and stores of words included, always need such a
    /// request.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let own = job.register(vec![job.rank().0 as u64; 4])?;
    ///     let addresses = job.alloc::<tasuki::onesided::GlobalAddress>(1)?;    // to send the address to the peer
    ///     let peer = job.rank_after(1);
    ///     job.put(addresses.on(peer), &[own.pointer().address()])?;
    ///     job.barrier()?;
    ///     let there = tasuki::GlobalPtr::<u64>::new(addresses.get(0)?);
    ///     assert_eq!(job.get_value(there.at(3))?, peer.0 as u64);
    ///     job.barrier()?;                                            // all reads have ended
    ///     assert_eq!(own.unregister().len(), 4);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn register<T: Pod>(&self, mut values: Vec<T>) -> Result<Registered<T>> {
        let bytes = size_of_val(&values[..]);
        // SAFETY: the vector is owned by the registration, not touched until that has ended, and never grows.
        let raw = unsafe { self.register_raw(values.as_mut_ptr().cast(), bytes)? };
        Ok(Registered { raw, values: Some(values) })
    }

    /// Makes `bytes` bytes at `start` accessible to other ranks. The same memory may be registered several times.
    ///
    /// ```
    /// use tasuki::GlobalPtr;
    /// tasuki::local(2, |job| {
    ///     let mut row = vec![0.0_f64; 8];
    ///     let bytes = size_of_val(&row[..]);
    ///     // SAFETY: the vector outlives the registration, and is not used until that has ended.
    ///     let raw = unsafe { job.register_raw(row.as_mut_ptr().cast(), bytes)? };
    ///     let all = job.world().allgather(&raw.address())?;
    ///     let at_peer = GlobalPtr::<f64>::new(all[job.rank_after(1).index()]);
    ///     job.put(at_peer.at(4), &[0.5; 4])?;
    ///     job.barrier()?; // all puts have ended
    ///     drop(raw);
    ///     assert_eq!(row, [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// # Safety
    /// The memory must stay valid until the registration is dropped. Until then no reference to plain data in it may
    /// be used, unless the program keeps peers from writing it (or, for `&mut`, from reading it). After the death of
    /// a rank the memory must stay valid until this process ends: if a rank was killed during an access, its access
    /// is never seen to end.
    pub unsafe fn register_raw(&self, start: *mut u8, bytes: usize) -> Result<RawRegistration> {
        let call = || format!("register({bytes} bytes)");
        self.worker.check().map_err(|cause| self.worker.fault(cause, call))?;
        let (host, bytes) = (start as u64, bytes as u64);
        let offset = self.worker.registry().register(host, bytes);
        let offset = offset.map_err(|error| error.in_call(call).on_rank(self.rank()))?;
        Ok(RawRegistration { worker: self.worker.clone(), offset, host, bytes })
    }
}

impl<T: Pod> Registered<T> {
    /// The address with which other ranks access it.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.register(vec![0_u64; 8])?;
    ///     let tables = job.world().allgather(&table.pointer())?;
    ///     job.put(tables[job.rank_after(1).index()].at(3), &[7])?;
    ///     job.barrier()?;
    ///     assert_eq!(table.to_vec()[3], 7);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn pointer(&self) -> GlobalPtr<T> {
        GlobalPtr::new(self.raw.address())
    }

    /// The number of values.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.register(vec![1.5_f64; 8])?;
    ///     assert_eq!(job.get_vec(table.pointer(), table.len())?, [1.5; 8]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.raw.bytes as usize / size_of::<T>()
    }

    /// Returns false: an empty vector cannot be registered.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     assert!(!job.register(vec![0_u8])?.is_empty());
    ///     assert!(job.register(Vec::<u8>::new()).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns a copy of the values as they are now.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.register(vec![0_u64; 3])?;
    ///     job.put(table.pointer().at(1), &[7])?;
    ///     assert_eq!(table.to_vec(), [0, 7, 0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn to_vec(&self) -> Vec<T> {
        self.copy_of(self.len())
    }

    /// Returns a copy of the first `count` values.
    fn copy_of(&self, count: usize) -> Vec<T> {
        let short = if planted("asan_short_copy") { count / 2 } else { 0 };
        let mut values = vec![T::zeroed(); count - short];
        // SAFETY: the registered vector is alive and that long; the copy tolerates peers that write meanwhile.
        unsafe {
            copy::copy(self.raw.host as *const u8, values.as_mut_ptr().cast(), count * size_of::<T>());
        }
        values
    }

    /// Ends the registration and returns the vector. Waits for accesses in flight; later accesses fail. If a rank was
    /// killed during an access, the job is over and the returned vector is a copy: the original is never used again.
    ///
    /// ```
    /// tasuki::local(1, |job| {
    ///     let table = job.register(vec![0_u64; 3])?;
    ///     let at = table.pointer();
    ///     job.put(at.at(1), &[7])?;
    ///     assert_eq!(table.unregister(), [0, 7, 0]);
    ///     assert!(job.get_value(at).is_err()); // its address names nothing any more
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn unregister(mut self) -> Vec<T> {
        let count = self.len();
        let no_access_is_left = self.raw.end();
        let values = self.values.take().expect("only unregister takes it");
        if no_access_is_left {
            return values;
        }
        let copy = self.copy_of(count);
        std::mem::forget(values);
        copy
    }
}

impl<T: Pod> Drop for Registered<T> {
    fn drop(&mut self) {
        if !self.raw.end() {
            std::mem::forget(self.values.take());
        }
    }
}

impl RawRegistration {
    /// The address with which other ranks access it.
    ///
    /// ```
    /// use tasuki::GlobalPtr;
    /// tasuki::local(1, |job| {
    ///     let mut words = [0_u32; 4];
    ///     // SAFETY: the array outlives the registration, and is not used until that has ended.
    ///     let raw = unsafe { job.register_raw(words.as_mut_ptr().cast(), 16)? };
    ///     job.put(GlobalPtr::new(raw.address()).at(2), &[7_u32])?;
    ///     drop(raw);
    ///     assert_eq!(words, [0, 0, 7, 0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn address(&self) -> GlobalAddress {
        GlobalAddress::new(self.worker.rank(), self.offset)
    }

    /// The global address of a byte of this process's memory, if this registration contains the byte.
    ///
    /// ```
    /// use tasuki::GlobalPtr;
    /// tasuki::local(1, |job| {
    ///     let mut values = vec![1_u64, 2, 3];
    ///     // SAFETY: the vector outlives the registration, and nobody else uses its memory meanwhile.
    ///     let raw = unsafe { job.register_raw(values.as_mut_ptr().cast(), 24) }?;
    ///     let third = raw.address_of(values[2..].as_ptr().cast())?;
    ///     assert_eq!(job.get_value(GlobalPtr::<u64>::new(third))?, 3);
    ///     drop(raw);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn address_of(&self, byte: *const u8) -> Result<GlobalAddress> {
        let inside = (byte as u64).wrapping_sub(self.host);
        if inside < self.bytes {
            return Ok(self.address().add(inside));
        }
        let cause = tasuki_core::base::Cause::Argument(format!(
            "{byte:p} is not one of the {} bytes registered from {:#x} on",
            self.bytes, self.host
        ));
        Err(self.worker.fault(cause, || "address_of".into()))
    }

    /// Ends the registration, unless it has ended already. Returns false if a killed rank may still be accessing the
    /// memory.
    fn end(&mut self) -> bool {
        if self.bytes == 0 || self.worker.fork_guard().is_forked() {
            return true;
        }
        self.bytes = 0;
        let freed = self.worker.registry().free_unless(self.offset, &|| self.worker.death());
        debug_assert!(freed.is_ok() || self.worker.node_state().is_over(), "{freed:?}");
        freed.is_ok()
    }
}

impl Drop for RawRegistration {
    fn drop(&mut self) {
        self.end();
    }
}
