//! A payload signal of another member that only this member writes.

use bytemuck::NoUninit;
use tasuki_core::base::sync::{AtomicU64, Ordering};
use tasuki_core::fabric::{Fabric, LinePayload, Refused, SignalLine};
use tasuki_core::segment::GlobalAddress;

/// The line, as its only writer sees it.
#[derive(Debug)]
pub(crate) struct NoticeLine {
    signal: GlobalAddress,
    /// The present value of its counter.
    count: AtomicU64,
}

impl NoticeLine {
    /// Makes the writer of the line at `signal`, whose counter has the value `initial`.
    pub(crate) fn new(signal: GlobalAddress, initial: u64) -> NoticeLine {
        NoticeLine { signal, count: AtomicU64::new(initial) }
    }

    /// Writes a notice. Returns false if there is no room.
    pub(crate) fn write<T: NoUninit>(&self, fabric: &dyn Fabric, notice: &T) -> bool {
        let count = self.count.load(Ordering::Relaxed) + 1;
        let payload = LinePayload::of(notice);
        match fabric.line(self.signal) {
            Ok(SignalLine::Via(line)) => {
                let written = line.fabric.write_line(line.signal, payload, count);
                if matches!(written, Err(Refused::Again | Refused::Relay)) {
                    return false;
                }
            }
            Ok(SignalLine::Direct(line)) => line.write(payload, count),
            Err(_) => {} // there is no such line, and so no reader
        }
        self.count.store(count, Ordering::Relaxed);
        true
    }
}
