//! Runs programs for the simulator's own tests: one function for all ranks, called with the rank's worker.

use tasuki_core::base::log::{Level, Log};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Worker;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};
use tasuki_core::segment::{GlobalAddress, layout};
use tasuki_fabric_sim::{Member, Report, Sim, simulate};

/// Runs `app` on every rank, from joining to leaving. An error that it returns is reported to the other ranks.
pub(crate) fn run<R: Send>(sim: &Sim, app: impl Fn(&Worker) -> Result<R> + Sync) -> Report<Result<R>> {
    simulate(sim, |member| one(member, &app)).unwrap()
}

fn one<R>(member: Member, app: &impl Fn(&Worker) -> Result<R>) -> Result<R> {
    let worker = member.join(Log::new("test", Level::Warn))?;
    match app(&worker) {
        Ok(value) => worker.leave().map(|()| value),
        Err(error) => {
            worker.fail(&format!("its program failed: {}", error.headline()), false);
            Err(error)
        }
    }
}

/// Runs `app` on every rank and returns what each rank returned. Panics if a rank fails or a wake-up was missed.
pub(crate) fn run_well<R: Send>(sim: &Sim, app: impl Fn(&Worker) -> Result<R> + Sync) -> Vec<R> {
    let report = run(sim, app);
    assert_eq!(report.missed_wakeups, 0, "a wake-up was missed under {sim:?}");
    let values = report.values().unwrap_or_else(|error| panic!("{error} under {sim:?}"));
    values.into_iter().map(|value| value.unwrap_or_else(|error| panic!("{error} under {sim:?}"))).collect()
}

/// Returns the address of a byte in a rank's bootstrap memory (64 KiB, zero, at an offset that all ranks know).
pub(crate) fn bootstrap_memory(rank: usize, offset: u64) -> GlobalAddress {
    GlobalAddress::new(Rank(rank), layout::BOOTSTRAP_MEMORY + offset)
}

/// Returns the address of a rank's signal.
pub(crate) fn signal(rank: usize, index: u32) -> GlobalAddress {
    GlobalAddress::new(Rank(rank), layout::signal_offset(index))
}

/// Waits until a signal of the calling rank has reached `threshold`.
pub(crate) fn wait(worker: &Worker, index: u32, threshold: u64) -> Result<()> {
    let cell = worker.fabric().own_signal(index)?;
    worker.wait_signal(cell, threshold, None, &|| format!("wait(signal {index} >= {threshold})"))
}

/// Barrier of all ranks: each rank raises signal `index` of every rank. The signal must be at `before * size` on all.
pub(crate) fn barrier(worker: &Worker, index: u32, before: u64) -> Result<()> {
    let size = worker.size() as u64;
    for rank in 0..worker.size() {
        worker.raise(signal(rank, index), 1)?;
    }
    wait(worker, index, (before + 1) * size)
}

/// Returns an atomic operation on a word of eight bytes.
pub(crate) fn change(kind: AtomicKind, operand: u64) -> Atomic {
    Atomic { kind, operand, width: Width::W8 }
}

/// Reads a word of any rank's memory atomically.
pub(crate) fn load(worker: &Worker, at: GlobalAddress) -> Result<u64> {
    worker.atomic(at, change(AtomicKind::Load, 0))
}

/// Returns bytes that differ from those of another seed.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((seed * 31 + i * 7) % 251) as u8 + 1).collect()
}

/// Returns the cause of an error.
pub(crate) fn cause<R: std::fmt::Debug>(result: Result<R>) -> Cause {
    result.unwrap_err().cause().clone()
}
