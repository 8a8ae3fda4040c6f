//! The counters of a channel: signals with one writer, which stores their values.

use tasuki_core::base::{Cause, Error, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{DirectCell, DirectLine, LinePayload, Refused, SignalCell, SignalLine};
use tasuki_core::node::park::WakeMode;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// A counter of this rank, which only the peer raises. Values count from the one that its signal had at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnCounter {
    pub(super) signal: u32,
    pub(super) cell: SignalCell,
    pub(super) base: u64,
}

impl OwnCounter {
    /// Bytes of a signal.
    pub(super) const BYTES: u64 = tasuki_core::segment::layout::SIGNAL_STRIDE;

    pub(super) fn new(worker: &Worker) -> Result<OwnCounter> {
        let signal = worker.registry().private_signals(1)?;
        let cell = worker.fabric().own_signal(signal)?;
        Ok(OwnCounter { signal, cell, base: cell.read(worker.fabric()) })
    }

    /// Returns the value. What its writer did before the raise is visible.
    #[inline(always)]
    pub(super) fn read(&self, worker: &Worker) -> u64 {
        self.cell.read(worker.fabric()).wrapping_sub(self.base)
    }

    /// Returns what came with the first raise. The writer never changes it, but it is read between two raises.
    /// Error: the job is over, so the writer may have died between the two stores of a raise.
    pub(super) fn payload<T: bytemuck::AnyBitPattern>(&self, worker: &Worker) -> Result<T, Cause> {
        loop {
            let fabric = worker.fabric();
            if let Some(payload) = self.cell.read_payload(fabric, self.cell.read(fabric)) {
                return Ok(payload);
            }
            worker.check()?;
            std::hint::spin_loop();
        }
    }

    /// Frees the signal. Its writer must have raised it for the last time.
    pub(super) fn free(&self, worker: &Worker) {
        worker.registry().free_signals(self.signal, 1);
    }
}

/// A counter of the peer, which only this rank raises.
#[derive(Debug)]
pub(super) struct PeerCounter {
    at: GlobalAddress,
    base: u64,
    /// Where it is, if stores reach it.
    direct: Option<(DirectCell, WakeMode)>,
    /// What the first raise brings. A raise through the fabric brings it again, because it may overtake the first one.
    payload: LinePayload,
}

impl PeerCounter {
    pub(super) fn new(
        worker: &Worker,
        peer: Rank,
        (signal, base): (u32, u64),
        payload: LinePayload,
    ) -> Result<PeerCounter, Cause> {
        let at = GlobalAddress::new(peer, signal_offset(signal));
        let direct = match worker.fabric().line(at)? {
            SignalLine::Direct(line) => Some((line.cell(), line.mode())),
            SignalLine::Via(_) => None,
        };
        Ok(PeerCounter { at, base, direct, payload })
    }

    /// Returns true if stores reach it.
    pub(super) fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// Raises it for the first time.
    pub(super) fn begin(&self, worker: &Worker, value: u64, call: &dyn Fn() -> String) -> Result<()> {
        match self.direct {
            Some((cell, mode)) => self.write_direct(worker, cell, mode, self.payload, value),
            None => return self.write_by_fabric(worker, value, call),
        }
        Ok(())
    }

    /// Raises it to that value. What this thread did before is visible to a rank that sees it.
    #[inline(always)]
    pub(super) fn write(&self, worker: &Worker, value: u64, call: &dyn Fn() -> String) -> Result<()> {
        match self.direct {
            Some((cell, mode)) => self.write_direct(worker, cell, mode, LinePayload::default(), value),
            None => return self.write_by_fabric(worker, value, call),
        }
        Ok(())
    }

    #[inline(always)]
    fn write_direct(
        &self,
        worker: &Worker,
        cell: DirectCell,
        mode: WakeMode,
        payload: LinePayload,
        value: u64,
    ) {
        let owner = worker.node_state().rank_state(self.at.rank());
        DirectLine::new(cell, owner, mode).write(payload, self.base.wrapping_add(value));
    }

    /// Several writes may overtake each other: the fabric keeps the greatest value.
    #[cold]
    fn write_by_fabric(&self, worker: &Worker, value: u64, call: &dyn Fn() -> String) -> Result<()> {
        let value = self.base.wrapping_add(value);
        loop {
            match worker.fabric().write_line(self.at, self.payload, value) {
                Ok(()) => return Ok(()),
                Err(Refused::Again | Refused::Relay) => worker.relax(&call())?,
                Err(Refused::Never(cause)) => return Err(worker.fault(*cause, call)),
            }
        }
    }
}

/// The error of a counter that cannot be made.
pub(super) fn not_made(error: Error, worker: &Worker, call: String) -> Error {
    error.in_call(|| call).on_rank(worker.rank())
}
