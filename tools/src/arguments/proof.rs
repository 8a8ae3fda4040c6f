//! Proves plans, as far as the available memory allows.

use tasuki_command::warn;
use tasuki_core::os::available_memory;
use tasuki_schedule::{CheckReport, Fault, Schedule};

/// A proof may take this fraction of the available memory: one half.
const SHARE: u64 = 2;
/// Bytes of a proof that takes no noticeable time.
const QUICK: u64 = 64 << 20;

/// The outcome of a proof.
pub(crate) enum Outcome {
    Right(CheckReport),
    Wrong(Box<Fault>),
    /// The proof was not tried: it would take at least this number of bytes.
    TooLarge(u64),
}

/// The number of bytes that a proof may take.
pub(crate) fn limit() -> u64 {
    available_memory::available().bytes / SHARE
}

/// Proves `schedule` unless that takes more than `limit` bytes.
pub(crate) fn prove(schedule: &Schedule, limit: u64) -> Outcome {
    let bytes = schedule.check_bytes(limit);
    if bytes > limit {
        return Outcome::TooLarge(bytes);
    }
    match schedule.check() {
        Ok(checked) => Outcome::Right(checked),
        Err(fault) => Outcome::Wrong(fault),
    }
}

/// Explains why the proof was not tried, and names alternatives.
pub(crate) fn too_large(bytes: u64) -> String {
    let (needed, limit) = (mib(bytes), mib(limit()));
    format!(
        "a proof would take {needed} MiB or more, and {limit} are available: it grows with the square of the number \
         of steps. Take fewer ranks or segments: a plan that holds for all counts up to about 33 seldom fails above. \
         `tasuki plan show --rank R` and `tasuki plan export --format json` need no proof"
    )
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Warns if the plan of a file, which is to be drawn or simulated, is wrong or unproven. The tests
/// prove the built-in collectives.
pub(crate) fn warn_of_unproven(file: &str, schedule: &Schedule) {
    match prove(schedule, limit().min(QUICK)) {
        Outcome::Right(_) => {}
        Outcome::Wrong(fault) => {
            warn(&format!("{file} is wrong: {fault}; `tasuki plan check {file}` shows the commands"));
        }
        Outcome::TooLarge(_) => {
            warn(&format!(
                "{file} was not proven, because that may take long; to prove it: `tasuki plan check {file}`"
            ));
        }
    }
}
