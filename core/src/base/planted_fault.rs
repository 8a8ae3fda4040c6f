//! Faults that are planted on purpose, one at a time, to show that models and sanitizers see them.
//!
//! They are there only in builds of the checkers', with `--cfg planted_faults`, as `cargo xtask test "planted faults"`
//! makes them. In every other the question is answered when it is compiled.

use super::sync::Ordering;

/// Whether the fault of that name is planted: never.
#[cfg(not(planted_faults))]
#[inline(always)]
pub const fn planted(_: &str) -> bool {
    false
}

/// Whether the fault of that name is planted in this process.
#[cfg(planted_faults)]
pub fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("TASUKI_PLANTED_FAULT").ok()).as_deref() == Some(name)
}

/// That order, or none if the fault of that name is planted.
#[inline(always)]
pub fn relaxed_if_planted(name: &str, order: Ordering) -> Ordering {
    if planted(name) { Ordering::Relaxed } else { order }
}
