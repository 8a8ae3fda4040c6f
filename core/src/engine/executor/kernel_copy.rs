//! Steps that copy between this rank's own memory and what another rank shows of its own.
#![allow(unsafe_code)]
//! Unsafe: a look at another process's memory, into bytes of ours.

use super::exposed_buffer::{ExposedBuffer, PeerBuffer};
use super::{CallBuffers, Operand, StepAction};
use crate::base::{Cause, Rank};
use crate::engine::worker::Worker;
use crate::segment::GlobalAddress;

/// Such a step: of so many bytes of that buffer of the call's, from there on.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelCopy {
    peer_buffer: PeerBuffer,
    here: (usize, u64),
    len: usize,
    /// Whether into what is shown, or from there.
    is_into: bool,
}

impl KernelCopy {
    /// The step that does that, if it is one.
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

    /// Does it, in a call that goes that way. Error: it could not be done.
    #[inline(never)]
    pub(super) fn run(&self, worker: &Worker, variant: u64, lent: &CallBuffers<'_>) -> Result<(), Cause> {
        let &KernelCopy { peer_buffer, here: (buffer, at), len, is_into } = self;
        match is_into {
            false => peer_buffer.copy_from(worker, variant, lent.own_mut(buffer, at, len)),
            true => peer_buffer.copy_into(worker, variant, lent.own(buffer, at, len)),
        }
    }
}

/// What others look for in this process's memory.
static PROBE: u64 = 0x7461_7375_6b69_2121;

impl Worker {
    /// Where another rank may try whether it reaches the memory of this one's process.
    pub fn probe(&self) -> u64 {
        &raw const PROBE as u64
    }

    /// Whether this rank reaches the memory of that one's process, which has its probe there.
    pub fn finds_probe(&self, of: Rank, there: u64) -> bool {
        let mut found = [0; size_of::<u64>()];
        // SAFETY: bytes of ours; the other process's stay as they are.
        let copied = unsafe { self.fabric().copy_exposed(of, there, found.as_mut_ptr(), found.len(), false) };
        copied.is_ok() && u64::from_ne_bytes(found) == PROBE
    }

    /// Whether that rank's process is there no more.
    pub(super) fn is_process_gone(&self, rank: Rank) -> bool {
        let mut nothing = [0];
        // SAFETY: a byte of ours. Nothing lies at address 0, and a process that is there says so.
        let looked =
            unsafe { self.fabric().copy_exposed(rank, 0, nothing.as_mut_ptr(), nothing.len(), false) };
        matches!(looked, Err(Cause::PeerDied { .. } | Cause::PeerLeft { .. }))
    }

    fn peer_buffer(&self, (word, at): (GlobalAddress, u64)) -> Result<PeerBuffer, Cause> {
        let of = word.rank();
        Ok(PeerBuffer { word: self.exposed_buffer_at(word)?, of, at })
    }

    /// The word at that address by which its rank shows something.
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
