//! The barrier of the job: of all ranks, before and beside communicators. `job.barrier()`, `job.alloc()` and the
//! registration of handlers use it. It also computes the minimum and the maximum of one value of each rank, by which
//! ranks check that they have given equal values.
//!
//! Dissemination: in round k each rank writes a line at the rank 2^k places after it, and waits for a line from the
//! rank 2^k places before it. After ceil(log2 P) rounds each rank has data from all others. The line carries
//! the minimum and the maximum of the values known so far. Both stay correct if a value is counted twice.
//!
//! Two lines that are used in turn suffice, because the writer of a line is at most one barrier ahead of its reader.
//! The writer finishes barrier n+1 only after the reader has entered it, and the reader reads the line of barrier n
//! before that.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

use std::sync::Mutex;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{LinePayload, Refused, SignalCell, SignalLine};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::signal_offset;

/// The values of all ranks at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MinMax {
    /// The least of the ranks' values.
    pub least: u64,
    /// The largest of the ranks' values.
    pub most: u64,
    /// True if any rank had unfinished operations when it entered. These may still access memory that was freed
    /// before the barrier.
    pub busy: bool,
}

impl MinMax {
    fn with(self, [least, most, busy]: [u64; 3]) -> MinMax {
        MinMax { least: self.least.min(least), most: self.most.max(most), busy: self.busy || busy != 0 }
    }

    fn words(self) -> [u64; 3] {
        [self.least, self.most, u64::from(self.busy)]
    }
}

/// The barriers of all ranks, as one rank sees them: their lines, and how many are finished. Memory: two lines of 128
/// bytes a round.
#[derive(Debug)]
pub struct JobBarrier {
    /// Number of the first of `2 * rounds` signals, equal on all ranks.
    first: u32,
    rounds: u32,
    /// How far this rank has come. Locked during a barrier, so that two threads of a rank cannot be in barriers at a
    /// time: the other ranks could not know the order.
    state: Mutex<BarrierState>,
}

#[derive(Debug, Default)]
struct BarrierState {
    /// Number of barriers that this rank has finished.
    finished: u64,
    /// The round of the next barrier in which this rank has written its line, and what it knew, if its wait in that
    /// round has failed. The next call goes on from there, because the other ranks may have read the line.
    written: Option<(u32, MinMax)>,
}

/// The ranks to which a rank writes in a round, and that writes to it.
struct Partners {
    next: Rank,
    before: Rank,
}

impl Partners {
    fn of(worker: &Worker, round: u32) -> Partners {
        let (size, step, me) = (worker.size(), 1 << round, worker.rank().0);
        Partners { next: Rank((me + step) % size), before: Rank((me + size - step) % size) }
    }
}

impl JobBarrier {
    /// Allocates the signals for barriers of all ranks of the job. All ranks must do it at the same point of their
    /// sequence of signals; nothing is communicated.
    pub fn new(worker: &Worker) -> Result<JobBarrier> {
        let rounds = worker.size().next_power_of_two().trailing_zeros();
        let mut first = 0;
        for line in 0..2 * rounds {
            let signal = worker.registry().signal()?;
            first = if line == 0 { signal } else { first };
        }
        Ok(JobBarrier { first, rounds, state: Mutex::default() })
    }

    /// Returns the least and largest value of all ranks when all have called it. `call` names the call in errors and
    /// in `tasuki ps`.
    ///
    /// Everything that a rank wrote before its call is visible to every rank after the call. Returns an error if
    /// another thread of this rank is in a barrier, if a rank dies, or if one leaves instead of coming. Costs
    /// ceil(log2 P) lines written and as many waits.
    pub fn agree(&self, worker: &Worker, value: u64, call: &str) -> Result<MinMax> {
        worker.check().map_err(|cause| worker.fault(cause, || call.into()))?;
        let Ok(mut state) = self.state.try_lock() else {
            return Err(worker.fault(Cause::AnotherCall, || call.into()));
        };
        worker.settle(&|| call.into())?; // the lines of the barrier could overtake earlier puts
        let instance = state.finished + 1;
        let own = MinMax { least: value, most: value, busy: !worker.is_idle() };
        let (first, mut known) = state.written.unwrap_or((0, own));
        for round in first..self.rounds {
            let partners = Partners::of(worker, round);
            let signal = self.first + round * 2 + (instance % 2) as u32;
            if state.written.is_none_or(|(written, _)| written < round) {
                self.send(worker, partners.next, signal, instance, known.words(), call)?;
                state.written = Some((round, known));
            }
            let cell =
                worker.fabric().own_signal(signal).map_err(|cause| worker.fault(cause, || call.into()))?;
            known = known.with(self.receive(worker, cell, partners.before, instance, call)?);
        }
        *state = BarrierState { finished: instance, written: None };
        Ok(known.with(own.words()))
    }

    fn send(
        &self,
        worker: &Worker,
        to: Rank,
        signal: u32,
        instance: u64,
        words: [u64; 3],
        call: &str,
    ) -> Result<()> {
        let at = GlobalAddress::new(to, signal_offset(signal));
        let line = worker.fabric().line(at).map_err(|cause| worker.fault(cause, || call.into()))?;
        let payload = LinePayload::of(&words);
        match line {
            SignalLine::Direct(line) => line.write(payload, instance),
            SignalLine::Via(line) => loop {
                match line.fabric.write_line(line.signal, payload, instance) {
                    Ok(()) => break,
                    Err(Refused::Again | Refused::Relay) => worker.relax(call)?,
                    Err(Refused::Never(cause)) => return Err(worker.fault(*cause, || call.into())),
                }
            },
        }
        Ok(())
    }

    fn receive(
        &self,
        worker: &Worker,
        cell: SignalCell,
        from: Rank,
        instance: u64,
        call: &str,
    ) -> Result<[u64; 3]> {
        worker.wait_signal(cell, instance, Some(from), &|| call.into())?;
        cell.read_payload(worker.fabric(), instance).ok_or_else(|| {
            worker.fault(
                Cause::Bug("a cache line of the barrier was overwritten before it was read".into()),
                || call.into(),
            )
        })
    }
}
