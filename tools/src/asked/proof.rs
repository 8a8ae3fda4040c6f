//! Whether a plan holds, as far as that can be told with the memory there is.

use crate::say;
use tasuki_core::os::available_memory;
use tasuki_schedule::{CheckReport, Fault, Schedule};

/// What part of the available memory a proof may take.
const SHARE: u64 = 2;
/// Bytes of a proof that is over before anybody looks up.
const QUICK: u64 = 64 << 20;

/// What came out.
pub(crate) enum Outcome {
    Right(CheckReport),
    Wrong(Box<Fault>),
    /// It was not tried: it would take so many bytes, or more.
    TooLarge(u64),
}

/// Bytes that a proof may take.
pub(crate) fn limit() -> u64 {
    available_memory::available().bytes / SHARE
}

/// Tries to prove it with so many bytes.
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

/// Why it was not tried, and what else there is.
pub(crate) fn too_large(bytes: u64) -> String {
    let (needed, limit) = (mib(bytes), mib(limit()));
    format!(
        "a proof would take {needed} MiB or more, and {limit} are to be had: it grows with the square of the number \
         of steps. Take fewer ranks or segments: what holds for all counts up to some 33 seldom breaks above. \
         `tasuki plan show --rank R` and `tasuki plan export --format json` need no proof"
    )
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Warns where what is drawn or simulated is the plan of a file that is wrong, or that nobody knows to be right. A
/// collective of ours is proven by our tests.
pub(crate) fn warn_of_unproven(file: &str, schedule: &Schedule) {
    match prove(schedule, limit().min(QUICK)) {
        Outcome::Right(_) => {}
        Outcome::Wrong(fault) => {
            say::warn(&format!("{file} is wrong: {fault}; `tasuki plan check {file}` shows the commands"));
        }
        Outcome::TooLarge(_) => {
            say::warn(&format!(
                "{file} has not been proven here, as that may take long: `tasuki plan check {file}`"
            ));
        }
    }
}
