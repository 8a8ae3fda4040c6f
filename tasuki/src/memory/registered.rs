//! Memory of the program's own, made reachable for other ranks.
#![allow(unsafe_code)]
//! Unsafe: a registered buffer is owned and not touched by reference until it is given back, since peers may write
//! it; raw registrations leave that to the caller.

use crate::job::Job;
use crate::{GlobalAddress, GlobalPtr, Pod, Result};
use std::sync::Arc;
use tasuki_core::base::planted;
use tasuki_core::engine::Worker;
use tasuki_core::os::copy;

/// A vector that peers may reach until it is given back. Made by [`Job::register`].
#[derive(Debug)]
pub struct Registered<T: Pod> {
    raw: RawRegistration,
    values: Option<Vec<T>>,
}

/// A range of this process's memory that peers may reach until this is dropped. Made by [`Job::register_raw`].
#[derive(Debug)]
pub struct RawRegistration {
    worker: Arc<Worker>,
    offset: u64,
    host: u64,
    bytes: u64,
}

impl Job {
    /// Makes a vector reachable for other ranks; it is given back by [`Registered::unregister`].
    ///
    /// Not collective: send [`Registered::pointer`] to whom it concerns. Errors: it is empty; the table of
    /// registrations is full. Peers put and get by process_vm_readv and process_vm_writev where the kernel permits
    /// (a system call each), else by asking this rank, which answers in its waiting calls. Their atomics, loads and
    /// stores of words included, always ask this rank: they wait while it computes and has no helper of its own.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let own = job.register(vec![u64::from(job.rank().0); 4])?;
    ///     let addresses = job.alloc::<tasuki::GlobalAddress>(1)?;    // tell the other one where it is
    ///     let peer = job.rank_after(1);
    ///     job.put(addresses.on(peer), &[own.pointer().address()])?;
    ///     job.barrier()?;
    ///     let there = tasuki::GlobalPtr::<u64>::new(addresses.get(0)?);
    ///     assert_eq!(job.get_value(there.at(3))?, u64::from(peer.0));
    ///     job.barrier()?;                                            // nobody reads any more
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

    /// Makes `bytes` bytes at `start` reachable for other ranks. The same memory may be registered several times.
    ///
    /// # Safety
    /// The memory must stay valid until the registration is dropped, and no reference to plain data in it may be
    /// used meanwhile unless the program keeps peers from writing (or, for `&mut`, from reading) it. After the death
    /// of a rank it must stay valid until this process ends: a rank killed in an access is never seen coming out.
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
    /// Where others reach it.
    pub fn pointer(&self) -> GlobalPtr<T> {
        GlobalPtr::new(self.raw.address())
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.raw.bytes as usize / size_of::<T>()
    }

    /// Never: an empty vector cannot be registered.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// A copy of the values as they are now.
    pub fn to_vec(&self) -> Vec<T> {
        self.copy_of(self.len())
    }

    /// A copy of the first values.
    fn copy_of(&self, count: usize) -> Vec<T> {
        let short = if planted("asan_short_copy") { count / 2 } else { 0 };
        let mut values = vec![T::zeroed(); count - short];
        // SAFETY: the registered vector is alive and that long; the copy tolerates peers that write meanwhile.
        unsafe {
            copy::copy(self.raw.host as *const u8, values.as_mut_ptr().cast(), count * size_of::<T>());
        }
        values
    }

    /// Ends the registration and gives the vector back. Accesses under way are waited for; later ones fail. If a rank
    /// was killed in the middle of one, the job is over and the vector is a copy: the original is never touched again.
    pub fn unregister(mut self) -> Vec<T> {
        let count = self.len();
        let nobody_is_inside = self.raw.end();
        let values = self.values.take().expect("only unregister takes it");
        if nobody_is_inside {
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
    /// Where others reach it.
    pub fn address(&self) -> GlobalAddress {
        GlobalAddress::new(self.worker.rank(), self.offset)
    }

    /// The global address of a byte of this process's memory, if it is registered here.
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

    /// Ends the registration, unless that has been done. False if somebody who was killed may still be inside.
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
