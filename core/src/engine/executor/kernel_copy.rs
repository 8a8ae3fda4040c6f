//! Steps that copy between a buffer of the call and a buffer that another rank exposes. The kernel does the copy,
//! between two processes.
#![allow(unsafe_code)]
//! Unsafe: copies from another process's memory into memory of this process. The latter is a local variable in each
//! case.

use super::exposed_buffer::{ExposedBuffer, PeerBuffer};
use super::{CallBuffers, Operand, StepAction};
use crate::base::{Cause, Rank};
use crate::engine::worker::Worker;
use crate::segment::GlobalAddress;

/// A copy of `len` bytes between an exposed buffer and a buffer of the call.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct KernelCopy {
    peer_buffer: PeerBuffer,
    /// The buffer of the call, and the offset in it.
    here: (usize, u64),
    len: usize,
    /// True if the copy goes into the exposed buffer, false if it comes from there.
    is_into: bool,
}

impl KernelCopy {
    /// Resolves an action that is such a copy. Returns `None` for other actions.
    pub(super) fn of(worker: &Worker, action: StepAction) -> Result<Option<KernelCopy>, Cause> {
        let (exposed, here, len, is_into) = match action {
            StepAction::Copy(Operand::ExposedBuffer(word, at), Operand::CallBuffers(buffer, to), len) => {
                ((word, at), (buffer, to), len, false)
            }
            StepAction::Copy(Operand::CallBuffers(buffer, from), Operand::ExposedBuffer(word, at), len) => {
                ((word, at), (buffer, from), len, true)
            }
            _ => return Ok(None),
        };
        let peer_buffer = worker.peer_buffer(exposed)?;
        Ok(Some(KernelCopy { peer_buffer, here, len: len as usize, is_into }))
    }

    /// Runs the copy, in a call that uses `variant`. Fails if the copy could not be done.
    #[inline(never)]
    pub(super) fn run(
        &self,
        worker: &Worker,
        variant: u64,
        call_buffers: &CallBuffers<'_>,
    ) -> Result<(), Cause> {
        let &KernelCopy { peer_buffer, here: (buffer, at), len, is_into } = self;
        match is_into {
            false => peer_buffer.copy_from(worker, variant, call_buffers.own_mut(buffer, at, len)),
            true => peer_buffer.copy_into(worker, variant, call_buffers.own(buffer, at, len)),
        }
    }
}

/// A value that other ranks try to read in this process's memory.
static PROBE: u64 = 0x7461_7375_6b69_2121;

impl Worker {
    /// Returns the address in this process that another rank reads to find out if it reaches the memory of this
    /// process.
    pub fn probe(&self) -> u64 {
        &raw const PROBE as u64
    }

    /// Returns true if this rank reaches the memory of the process of rank `of`, whose probe is at address `there`.
    pub fn finds_probe(&self, of: Rank, there: u64) -> bool {
        let mut found = [0; size_of::<u64>()];
        // SAFETY: the copy writes `found`, a local variable, and only reads in the other process.
        let copied = unsafe { self.fabric().copy_exposed(of, there, found.as_mut_ptr(), found.len(), false) };
        copied.is_ok() && u64::from_ne_bytes(found) == PROBE
    }

    /// Returns true if the process of `rank` no longer exists.
    pub(super) fn is_process_gone(&self, rank: Rank) -> bool {
        let mut nothing = [0];
        // SAFETY: the copy can write only `nothing`, a local variable. Nothing is mapped at address 0, so in a
        // process that exists the copy fails with another error.
        let looked =
            unsafe { self.fabric().copy_exposed(rank, 0, nothing.as_mut_ptr(), nothing.len(), false) };
        matches!(looked, Err(Cause::PeerDied { .. } | Cause::PeerLeft { .. }))
    }

    fn peer_buffer(&self, (word, at): (GlobalAddress, u64)) -> Result<PeerBuffer, Cause> {
        let of = word.rank();
        Ok(PeerBuffer { word: self.exposed_buffer_at(word)?, of, at })
    }

    /// Returns the [`ExposedBuffer`] at an address, which belongs to the rank that the address names.
    pub(super) fn exposed_buffer_at(
        &self,
        word: GlobalAddress,
    ) -> Result<std::ptr::NonNull<ExposedBuffer>, Cause> {
        let place =
            self.place(word, size_of::<ExposedBuffer>() as u64).map(|place| place.cast::<ExposedBuffer>());
        let place = place.filter(|place| place.is_aligned());
        place.ok_or_else(|| Cause::Bug("an exposed buffer outside of mapped memory".into()))
    }
}
