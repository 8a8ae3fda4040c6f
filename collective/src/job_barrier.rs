//! The barrier of the job: of all ranks, before and beside communicators. `job.barrier()`, `job.alloc()` and the
//! registration of handlers use it. It also computes the minimum and the maximum of one value of each rank, by which
//! ranks check that they have given equal values, and of the signatures of their calls. If these differ, nobody has
//! passed the barrier: all ranks exchange lines once more, to find ranks that are in the two calls, and get an error.
//!
//! *After a failure of the world.* A rank whose call was ended because others were in a call of the world has written
//! lines, which others may read in a later barrier. So the barrier of these lines is *void*: a rank that comes to it
//! after it has told its program of the failure says so in its lines. At least one does: the one that was in the call of
//! the world. All ranks read that. Those that have told their program exchange lines once more; the others return, to
//! tell it. So all are in step again.
//!
//! Dissemination: in round k each rank writes a line at the rank 2^k places after it, and waits for a line from the
//! rank 2^k places before it. After ceil(log2 P) rounds each rank has data from all others. The line carries
//! the minima and the maxima known so far. They stay correct if a value is counted twice.
//!
//! Two lines that are used in turn suffice, because the writer of a line is at most one barrier ahead of its reader.
//! The writer finishes barrier n+1 only after the reader has entered it, and the reader reads the line of barrier n
//! before that.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988).

use crate::failure::job_call::JobCallSignature;
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
    /// True if the barrier has not taken place: the world has failed because ranks were in a call of the job, and others
    /// were not. The caller tells the program.
    pub is_void: bool,
}

/// What a line of the barrier carries: what its writer knows of the ranks so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    values: MinMax,
    /// The least and the largest signature. After ranks were found in different calls: the least and the largest rank
    /// in the call with the largest signature; the values are the ranks in that with the least.
    calls: [u64; 2],
}

/// The words of a line.
type Words = [u64; 5];

/// The bits of the last word.
const BUSY: u64 = 1;
const VOID: u64 = 2;

impl Known {
    fn of(value: u64, [busy, is_void]: [bool; 2], call: JobCallSignature) -> Known {
        Known { values: MinMax { least: value, most: value, busy, is_void }, calls: [call.bits(); 2] }
    }

    /// This rank, as one that is in those of the two calls.
    fn of_rank(rank: Rank, is_in: [bool; 2]) -> Known {
        let [(least, most), (call_least, call_most)] =
            is_in.map(|is_in| if is_in { (rank.0 as u64, rank.0 as u64) } else { (u64::MAX, 0) });
        let values = MinMax { least, most, busy: false, is_void: false };
        Known { values, calls: [call_least, call_most] }
    }

    fn with(self, [least, most, call_least, call_most, flags]: Words) -> Known {
        let own = self.values;
        let (busy, is_void) = (own.busy || flags & BUSY != 0, own.is_void || flags & VOID != 0);
        Known {
            values: MinMax { least: own.least.min(least), most: own.most.max(most), busy, is_void },
            calls: [self.calls[0].min(call_least), self.calls[1].max(call_most)],
        }
    }

    /// The same without what says that the barrier is void.
    fn valid(self) -> Known {
        Known { values: MinMax { is_void: false, ..self.values }, ..self }
    }

    fn words(self) -> Words {
        let MinMax { least, most, busy, is_void } = self.values;
        let flags = (u64::from(busy) * BUSY) | (u64::from(is_void) * VOID);
        [least, most, self.calls[0], self.calls[1], flags]
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
    written: Option<(u32, Known)>,
    /// The least and the largest signature, if ranks were in different calls, and have not yet found who.
    different: Option<[u64; 2]>,
    /// True once a barrier was void. The world fails only once.
    was_void: bool,
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

    /// Returns the least and largest value of all ranks when all have called it. `signature` is that of the call, and
    /// `call` names it in errors and in `tasuki ps`. `is_after_failure`: this rank has told its program that the world
    /// has failed because ranks were in a call of the job, and others were not.
    ///
    /// Everything that a rank wrote before its call is visible to every rank after the call. Returns an error on all
    /// ranks if their signatures differ; they are then still in step. Also returns an error if another thread of this
    /// rank is in a barrier, if a rank dies, or if one leaves instead of coming. Costs ceil(log2 P) lines written and as
    /// many waits.
    pub fn agree(
        &self,
        worker: &Worker,
        signature: JobCallSignature,
        value: u64,
        is_after_failure: bool,
        call: &str,
    ) -> Result<MinMax> {
        worker.check().map_err(|cause| worker.fault(cause, || call.into()))?;
        let Ok(mut state) = self.state.try_lock() else {
            return Err(worker.fault(Cause::AnotherCall, || call.into()));
        };
        worker.settle(&|| call.into())?; // the lines of the barrier could overtake earlier puts
        loop {
            if state.different.is_none() {
                let flags = [!worker.is_idle(), is_after_failure && !state.was_void];
                let known = self.exchange(worker, &mut state, Known::of(value, flags, signature), call)?;
                if known.values.is_void {
                    state.was_void = true;
                    if is_after_failure {
                        continue;
                    }
                    return Ok(known.values);
                }
                if known.calls[0] == known.calls[1] {
                    return Ok(known.values);
                }
                state.different = Some(known.calls);
            }
            // Lines of a call that was ended by a failure of the world may differ from all calls that go on now.
            if let Some(found) = self.find_different(worker, &mut state, signature, call)? {
                let member_is_rank = |member| Some(Rank(member));
                return Err(worker.fault(found, || call.into()).of_members(member_is_rank));
            }
        }
    }

    /// Finds ranks that are in the two calls. All ranks do, after their signatures have differed. None: no rank is in
    /// one of them any more.
    #[cold]
    fn find_different(
        &self,
        worker: &Worker,
        state: &mut BarrierState,
        own: JobCallSignature,
        call: &str,
    ) -> Result<Option<Cause>> {
        let calls = state.different.unwrap_or_default().map(JobCallSignature::from_bits);
        let own_part = Known::of_rank(worker.rank(), calls.map(|call| call == own));
        let Known { values, calls: of_largest } = self.exchange(worker, state, own_part, call)?;
        state.different = None;
        let mut ranks = [([values.least, values.most], calls[0]), (of_largest, calls[1])];
        if ranks.iter().any(|([first, last], _)| first > last) {
            return Ok(None);
        }
        ranks.sort_by_key(|([first, _], _)| *first);
        let who = |[first, last]: [u64; 2]| {
            let others = if first == last { "" } else { " and others" };
            format!("rank {first}{others}")
        };
        let [(one, in_one), (other, in_other)] = ranks;
        let here = if calls.contains(&own) { String::new() } else { format!(", this one in {own}") };
        let text = format!(
            "the ranks are in different calls of the job: {} in {in_one}, {} in {in_other}{here}",
            who(one),
            who(other)
        );
        let peer = if in_one == own { other[0] } else { one[0] };
        Ok(Some(Cause::mismatch(Some(peer as usize), text)))
    }

    /// Exchanges lines with all ranks. Returns what all of them have given.
    fn exchange(&self, worker: &Worker, state: &mut BarrierState, own: Known, call: &str) -> Result<Known> {
        let instance = state.finished + 1;
        // What lines that were written before say was not void then, so it counts on no rank, this one included.
        let own = if state.written.is_some() { own.valid() } else { own };
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
        state.finished = instance;
        state.written = None;
        Ok(known.with(own.words()))
    }

    fn send(
        &self,
        worker: &Worker,
        to: Rank,
        signal: u32,
        instance: u64,
        words: Words,
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
    ) -> Result<Words> {
        let waited = worker.wait_signal(cell, instance, Some(from), &|| call.into());
        waited.map_err(|error| error.of_members(|member| Some(Rank(member))))?;
        cell.read_payload(worker.fabric(), instance).ok_or_else(|| {
            worker.fault(
                Cause::Bug("a cache line of the barrier was overwritten before it was read".into()),
                || call.into(),
            )
        })
    }
}
