//! Moving bytes: by the issuer's processor, by the kernel, or by a request to the owner.
#![allow(unsafe_code)]
//! Unsafe: copies between a buffer that the caller keeps valid and a place that `Peers::resolve` found; calls of
//! process_vm, whose remote side the kernel checks.

use crate::ShmFabric;
use crate::owner_requests::{PendingRequest, RequestKind};
use crate::peer_memory::Target;
use std::ptr::NonNull;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{Accept, Accepted, Atomic, Fabric, Refused, check_same_rank};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::os::copy;
use tasuki_core::os::process_vm::{self, CopyRefusal, Direction};
use tasuki_core::segment::{ExtentLocation, GlobalAddress, MappedRange};

/// Bytes of the buffer for copies between registered program memory of two peers.
const BOUNCE: usize = 64 * 1024;

impl ShmFabric {
    /// # Safety
    /// As for [`Fabric::put`].
    #[inline(always)]
    pub(crate) unsafe fn put_bytes(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
    ) -> Result<Accepted, Refused> {
        if let Some(place) = self.peers.mapped(to, len) {
            // SAFETY: the caller keeps `from` readable; `mapped` has just found `len` mapped bytes at `place`.
            unsafe { copy_and_fence(from, place.as_ptr(), len) };
            return Ok(Accepted::Done(0));
        }
        // SAFETY: the caller keeps `from .. from + len` readable until the operation has ended, and a put only reads
        // `local`.
        unsafe {
            self.bytes(
                accept,
                PendingRequest { kind: RequestKind::Put, local: from.cast_mut(), at: to, len, then: None },
            )
        }
    }

    /// # Safety
    /// As for [`Fabric::get`].
    #[inline(always)]
    pub(crate) unsafe fn get_bytes(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: *mut u8,
        len: u64,
    ) -> Result<Accepted, Refused> {
        if let Some(place) = self.peers.mapped(from, len) {
            // SAFETY: the caller keeps `to` writable; `mapped` has just found `len` mapped bytes at `place`.
            unsafe { copy_and_fence(place.as_ptr(), to, len) };
            return Ok(Accepted::Done(0));
        }
        // SAFETY: the caller keeps `to .. to + len` writable until the operation has ended.
        unsafe {
            self.bytes(
                accept,
                PendingRequest { kind: RequestKind::Get, local: to, at: from, len, then: None },
            )
        }
    }

    /// A put with a signal that [`Peers::mapped_with_signal`](crate::peer_memory::Peers) does not
    /// handle: without bytes, to memory that is not mapped yet or is not job memory, or with a
    /// wrong address.
    ///
    /// # Safety
    /// As for [`Fabric::put_signal`].
    #[cold]
    pub(crate) unsafe fn put_signal_anywhere(
        &self,
        accept: Accept<'_>,
        to: GlobalAddress,
        from: *const u8,
        len: u64,
        signal: GlobalAddress,
        amount: u64,
    ) -> Result<Accepted, Refused> {
        if len > 0 && signal.rank() != to.rank() {
            self.check(to, len)?; // if the address is wrong altogether, report that first
            check_same_rank(to, signal)?;
        }
        self.peers.find_signal(signal)?;
        let request = PendingRequest {
            kind: RequestKind::Put,
            local: from.cast_mut(),
            at: to,
            len,
            then: Some((signal, amount)),
        };
        // SAFETY: the caller keeps `from .. from + len` readable until the operation has ended, and a put only reads
        // `local`.
        match unsafe { self.bytes(accept, request)? } {
            Accepted::Started => Ok(Accepted::Started),
            Accepted::Done(_) => self.raise(accept, signal, amount),
        }
    }

    /// Moves bytes of any memory: job memory that is not mapped yet, or registered program memory of a rank.
    ///
    /// # Safety
    /// `request.local` is valid until the operation has ended, for reading or writing depending on the direction.
    #[cold]
    unsafe fn bytes(&self, accept: Accept<'_>, request: PendingRequest) -> Result<Accepted, Refused> {
        let PendingRequest { kind, local, at, len, .. } = request;
        if len == 0 {
            return Ok(Accepted::Done(0));
        }
        match self.peers.resolve(at, len)? {
            Target::Mapped(place) => {
                let place = place.as_ptr();
                let (from, to) = if kind == RequestKind::Get { (place, local) } else { (local, place) };
                // SAFETY: the caller keeps `local` valid; `resolve` has just found `len` mapped bytes at `place`.
                unsafe { copy_and_fence(from, to, len) };
                Ok(Accepted::Done(0))
            }
            // SAFETY: the caller keeps `request.local` valid for the direction until the operation has ended.
            program => unsafe { self.program_bytes(accept, program, request) },
        }
    }

    /// Moves bytes of registered program memory of a rank.
    ///
    /// # Safety
    /// As for [`ShmFabric::bytes`].
    unsafe fn program_bytes(
        &self,
        accept: Accept<'_>,
        target: Target<'_>,
        request: PendingRequest,
    ) -> Result<Accepted, Refused> {
        let Target::Program { range, place, host } = target else {
            unreachable!("`bytes` has copied mapped memory itself")
        };
        let PendingRequest { kind, local, at, len, .. } = request;
        // SAFETY: the caller keeps `len` bytes at `local` valid for the direction of `kind`.
        match unsafe { self.by_kernel(kind.direction(), range, &place, local, at, host, len) } {
            Ok(()) => Ok(Accepted::Done(0)),
            Err(KernelRefusal::Failed(cause)) => Err(cause.into()),
            Err(KernelRefusal::Forbidden) => self.post_request(accept, request),
        }
    }

    /// Copies between `local` and registered program memory of rank `at.rank()`.
    ///
    /// # Safety
    /// `local .. local + len` must be valid for the direction.
    #[allow(clippy::too_many_arguments)]
    unsafe fn by_kernel(
        &self,
        direction: Direction,
        range: &MappedRange,
        place: &ExtentLocation,
        local: *mut u8,
        at: GlobalAddress,
        host: u64,
        len: u64,
    ) -> Result<(), KernelRefusal> {
        let is_own = at.rank() == self.rank;
        let pid = if is_own { None } else { Some(self.reachable(at.rank())?) };
        let extents =
            range.extent_table().map_err(crate::peer_memory::cause).map_err(KernelRefusal::Failed)?;
        let section = extents.enter(place, at.offset(), len, at.bits()).map_err(KernelRefusal::Failed)?;
        let Some(pid) = pid else {
            let host = host as *mut u8;
            let (from, to) = if direction == Direction::Read {
                (host.cast_const(), local)
            } else {
                (local.cast_const(), host)
            };
            // SAFETY: `host` lies in this rank's registered memory, which the section keeps registered; the caller
            // keeps `len` bytes at `local` valid for the direction.
            unsafe { copy_and_fence(from, to, len) };
            return Ok(());
        };
        // SAFETY: the caller keeps `len` bytes at `local` valid for the direction.
        let done =
            unsafe { process_vm::copy(direction, pid, local, host, len as usize, self.options.disabled) };
        drop(section);
        match done {
            Ok(()) => Ok(()),
            Err(CopyRefusal::Permission) => {
                self.processes.refuse(at.rank());
                Err(KernelRefusal::Forbidden)
            }
            Err(CopyRefusal::Fault) => Err(KernelRefusal::Failed(Cause::OutOfRange {
                address: at.bits(),
                bytes: len,
                registration: None,
            })),
            Err(CopyRefusal::Gone) => Err(KernelRefusal::Failed(self.gone(at.rank()))),
        }
    }

    /// Returns the number of a peer's process, if the kernel may copy from and to it.
    fn reachable(&self, peer: Rank) -> Result<u32, KernelRefusal> {
        self.processes.pid(&self.node_state, peer).map_err(|refusal| match refusal {
            CopyRefusal::Gone => KernelRefusal::Failed(self.gone(peer)),
            CopyRefusal::Permission | CopyRefusal::Fault => KernelRefusal::Forbidden,
        })
    }
    /// Copies between `here` and an address in a rank's process, which keeps that memory valid.
    ///
    /// # Safety
    /// `len` bytes at `here` may be read or written, depending on the direction.
    pub(crate) unsafe fn copy_by_kernel(
        &self,
        rank: Rank,
        there: u64,
        here: *mut u8,
        len: usize,
        direction: Direction,
    ) -> Result<(), Cause> {
        let refused = || {
            Cause::Unsupported(format!(
                "the kernel does not let this process access the memory of rank {rank}"
            ))
        };
        let copied = self.processes.pid(&self.node_state, rank).and_then(|pid| {
            // SAFETY: the caller keeps `len` bytes at `here` valid for the direction; the kernel checks the other side.
            unsafe { process_vm::copy(direction, pid, here, there, len, self.options.disabled) }
        });
        match copied {
            Ok(()) => Ok(()),
            Err(CopyRefusal::Permission) => Err(refused()),
            Err(CopyRefusal::Fault) => {
                let text = format!("rank {rank} passed memory to the call that the kernel does not copy");
                Err(Cause::Unsupported(text))
            }
            Err(CopyRefusal::Gone) => Err(self.gone(rank)),
        }
    }
    /// Returns the cause for a rank whose process is gone: it left, or it died and the launcher has
    /// not reported it yet.
    #[cold]
    fn gone(&self, peer: Rank) -> Cause {
        if self.node_state.rank_state(peer).stage() >= RankStage::Leaving {
            return Cause::PeerLeft { peer };
        }
        Cause::PeerDied { peer, how: "its process is gone".into(), ago: std::time::Duration::ZERO }
    }

    pub(crate) fn copy_bytes(
        &self,
        accept: Accept<'_>,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
    ) -> Result<Accepted, Refused> {
        if len == 0 {
            return Ok(Accepted::Done(0));
        }
        let (source, target) = (self.peers.resolve(from, len)?, self.peers.resolve(to, len)?);
        let both_program = matches!((&source, &target), (Target::Program { .. }, Target::Program { .. }));
        let moved = match (source, target) {
            (Target::Mapped(source), Target::Mapped(target)) => {
                // SAFETY: `resolve` has just found `len` mapped bytes at both places.
                unsafe { copy_and_fence(source.as_ptr(), target.as_ptr(), len) };
                return Ok(Accepted::Done(0));
            }
            // SAFETY: `resolve` has just found the mapped side; `by_kernel` checks the other.
            (Target::Program { range, place, host }, Target::Mapped(to)) => unsafe {
                self.by_kernel(Direction::Read, range, &place, to.as_ptr(), from, host, len)
            },
            // SAFETY: `resolve` has just found `len` mapped bytes at `source`; `by_kernel` checks the target.
            (Target::Mapped(source), Target::Program { range, place, host }) => unsafe {
                self.by_kernel(Direction::Write, range, &place, source.as_ptr(), to, host, len)
            },
            (Target::Program { host: source, .. }, Target::Program { host: target, .. }) => {
                // Overlap is determined from the owner's addresses, because the memory may have been registered twice.
                let upwards = from.rank() == to.rank() && source < target && target - source < len;
                self.bounce(from, to, len, upwards)
            }
        };
        match moved {
            Ok(()) => Ok(Accepted::Done(0)),
            Err(KernelRefusal::Failed(cause)) => Err(cause.into()),
            Err(KernelRefusal::Forbidden) if from.rank() == to.rank() && both_program => {
                let (kind, local) = (RequestKind::Copy { to: to.offset() }, std::ptr::null_mut());
                self.post_request(accept, PendingRequest { kind, local, at: from, len, then: None })
            }
            Err(KernelRefusal::Forbidden) => Err(Refused::Relay),
        }
    }

    /// Copies between registered program memory of two ranks through a buffer; from the end if the
    /// target overlaps the source upwards.
    fn bounce(
        &self,
        from: GlobalAddress,
        to: GlobalAddress,
        len: u64,
        upwards: bool,
    ) -> Result<(), KernelRefusal> {
        let mut buffer = vec![0_u8; BOUNCE.min(len as usize)];
        let pieces = len.div_ceil(buffer.len() as u64);
        for piece in 0..pieces {
            let at = (if upwards { pieces - 1 - piece } else { piece }) * buffer.len() as u64;
            let size = (len - at).min(buffer.len() as u64);
            for (direction, address) in [(Direction::Read, from.add(at)), (Direction::Write, to.add(at))] {
                let Target::Program { range, place, host } =
                    self.peers.resolve(address, size).map_err(KernelRefusal::Failed)?
                else {
                    return Err(KernelRefusal::Failed(Cause::Stale { address: address.bits() }));
                };
                // SAFETY: the buffer belongs to this call and holds at least `size` bytes.
                unsafe {
                    self.by_kernel(direction, range, &place, buffer.as_mut_ptr(), address, host, size)?
                };
            }
        }
        Ok(())
    }

    pub(crate) fn change_word(
        &self,
        accept: Accept<'_>,
        at: GlobalAddress,
        atomic: &Atomic,
    ) -> Result<Accepted, Refused> {
        let bytes = atomic.width.bytes();
        let target = self.peers.resolve(at, bytes)?;
        if !at.offset().is_multiple_of(bytes) {
            return Err(Cause::Misaligned { address: at.bits(), align: bytes as usize }.into());
        }
        match target {
            // SAFETY: `resolve` has just found the word, and it is aligned.
            Target::Mapped(place) => Ok(Accepted::Done(unsafe { atomic.apply(place) })),
            Target::Program { host, .. } if at.rank() == self.rank => {
                let place = NonNull::new(host as *mut u8).ok_or(Cause::NullAddress)?;
                // SAFETY: own registered memory; the registration keeps the alignment of its addresses.
                Ok(Accepted::Done(unsafe { atomic.apply(place) }))
            }
            Target::Program { .. } => {
                let local = std::ptr::null_mut();
                self.post_request(
                    accept,
                    PendingRequest { kind: RequestKind::Atomic(*atomic), local, at, len: bytes, then: None },
                )
            }
        }
    }
}

/// Why the kernel did not copy.
enum KernelRefusal {
    /// The kernel does not permit it: send a request to the owner.
    Forbidden,
    /// The access is wrong.
    Failed(Cause),
}

/// # Safety
/// Both ranges hold `len` bytes and are mapped.
#[inline]
pub(crate) unsafe fn copy_and_fence(from: *const u8, to: *mut u8, len: u64) {
    // SAFETY: the caller promises `len` mapped bytes at both addresses, which is what `copy` needs.
    unsafe { copy::copy(from, to, len as usize) };
    copy::fence_after_copy(len as usize);
}
