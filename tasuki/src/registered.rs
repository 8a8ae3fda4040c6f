//! Memory of the program's own, made reachable for other ranks.
#![allow(unsafe_code)]
//! Unsafe: a registered buffer is owned and not touched by reference until it is given back, since peers may write
//! it; raw registrations leave that to the caller.

use crate::job::Job;
use crate::{GlobalAddress, GlobalPtr, Pod, Result};
use std::sync::Arc;
use tasuki_core::engine::Machine;
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
    machine: Arc<Machine>,
    offset: u64,
    host: u64,
    bytes: u64,
}

impl Job {
    /// Makes a vector reachable for other ranks; it is given back by [`Registered::unregister`].
    ///
    /// Not collective: send [`Registered::pointer`] to whom it concerns. Errors: it is empty; the table of
    /// registrations is full. Peers reach it by process_vm_readv and process_vm_writev where the kernel permits
    /// (a system call each), else by asking this rank, which answers in its waiting calls.
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
    /// used meanwhile unless the program keeps peers from writing (or, for `&mut`, from reading) it.
    pub unsafe fn register_raw(&self, start: *mut u8, bytes: usize) -> Result<RawRegistration> {
        let call = || format!("register({bytes} bytes)");
        self.machine.check().map_err(|cause| self.machine.fault(cause, call))?;
        let (host, bytes) = (start as u64, bytes as u64);
        let offset = self.machine.registry().register(host, bytes);
        let offset = offset.map_err(|error| error.in_call(call).on_rank(self.rank()))?;
        Ok(RawRegistration { machine: self.machine.clone(), offset, host, bytes })
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
        #[cfg(not(planted_fault = "asan_short_copy"))]
        let mut values = vec![T::zeroed(); self.len()];
        #[cfg(planted_fault = "asan_short_copy")]
        let mut values = vec![T::zeroed(); self.len() / 2];
        // SAFETY: the registered vector is alive and that long; the copy tolerates peers that write meanwhile.
        unsafe {
            copy::copy(self.raw.host as *const u8, values.as_mut_ptr().cast(), self.raw.bytes as usize);
        }
        values
    }

    /// Ends the registration and gives the vector back. Accesses under way are waited for; later ones fail.
    pub fn unregister(mut self) -> Vec<T> {
        self.raw.end();
        self.values.take().expect("only unregister takes it")
    }
}

impl<T: Pod> Drop for Registered<T> {
    fn drop(&mut self) {
        self.raw.end(); // before the vector goes
    }
}

impl RawRegistration {
    /// Where others reach it.
    pub fn address(&self) -> GlobalAddress {
        GlobalAddress::new(self.machine.rank(), self.offset)
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
        Err(self.machine.fault(cause, || "address_of".into()))
    }

    fn end(&mut self) {
        if self.bytes > 0 && !self.machine.life().is_forked() {
            self.bytes = 0;
            let freed = self.machine.registry().free(self.offset);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
    }
}

impl Drop for RawRegistration {
    fn drop(&mut self) {
        self.end();
    }
}
