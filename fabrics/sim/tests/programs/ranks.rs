//! Programs for the simulator's own tests: one function for all ranks, given the machine.

use tasuki_core::base::log::{Level, Log};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::Machine;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};
use tasuki_core::segment::{GlobalAddress, layout};
use tasuki_fabric_sim::{Member, Report, Sim, simulate};

/// Runs `app` on every rank, from joining to leaving. An error that it returns is told to the others.
pub(crate) fn run<R: Send>(sim: &Sim, app: impl Fn(&Machine) -> Result<R> + Sync) -> Report<Result<R>> {
    simulate(sim, |member| one(member, &app)).unwrap()
}

fn one<R>(member: Member, app: &impl Fn(&Machine) -> Result<R>) -> Result<R> {
    let machine = member.join(Log::new("test", Level::Warn))?;
    match app(&machine) {
        Ok(value) => machine.leave().map(|()| value),
        Err(error) => {
            machine.fail(&format!("its program failed: {}", error.headline()));
            Err(error)
        }
    }
}

/// The same where every rank must succeed; what each returned.
pub(crate) fn run_well<R: Send>(sim: &Sim, app: impl Fn(&Machine) -> Result<R> + Sync) -> Vec<R> {
    let report = run(sim, app);
    assert_eq!(report.rescues, 0, "a wake-up was missing under {sim:?}");
    let values = report.values().unwrap_or_else(|error| panic!("{error} under {sim:?}"));
    values.into_iter().map(|value| value.unwrap_or_else(|error| panic!("{error} under {sim:?}"))).collect()
}

/// A byte of a rank's starter memory: 64 KiB, zero, known to all.
pub(crate) fn starter(rank: u32, offset: u64) -> GlobalAddress {
    GlobalAddress::new(Rank(rank), layout::STARTER + offset)
}

/// A rank's signal.
pub(crate) fn signal(rank: u32, index: u32) -> GlobalAddress {
    GlobalAddress::new(Rank(rank), layout::signal_offset(index))
}

/// Waits until the own signal has reached a value.
pub(crate) fn wait(machine: &Machine, index: u32, threshold: u64) -> Result<()> {
    let cell = machine.fabric().own_signal(index)?;
    machine.wait_signal(cell, threshold, None, None, &|| format!("wait(signal {index} >= {threshold})"))
}

/// All ranks meet: everyone raises everyone's signal `index`, which must be at `before * size` on all.
pub(crate) fn meet(machine: &Machine, index: u32, before: u64) -> Result<()> {
    let size = machine.size() as u64;
    for rank in 0..size as u32 {
        machine.raise(signal(rank, index), 1)?;
    }
    wait(machine, index, (before + 1) * size)
}

/// A change of a word of eight bytes.
pub(crate) fn change(kind: AtomicKind, operand: u64) -> Atomic {
    Atomic { kind, operand, width: Width::W8 }
}

/// A word of some rank's memory, read in one piece.
pub(crate) fn load(machine: &Machine, at: GlobalAddress) -> Result<u64> {
    machine.atomic(at, change(AtomicKind::Load, 0))
}

/// Bytes that can be told from others.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((seed * 31 + i * 7) % 251) as u8 + 1).collect()
}

/// The cause of an error.
pub(crate) fn cause<R: std::fmt::Debug>(result: Result<R>) -> Cause {
    result.unwrap_err().cause().clone()
}
