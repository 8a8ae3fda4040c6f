//! Planted faults: code that is wrong on purpose, one fault at a time, to show that models and sanitizers find it.
//!
//! Only builds with `--cfg planted_faults` contain them; `cargo xtask test "planted faults"` makes such builds. In all
//! other builds [`planted`] is a constant.

use super::sync::Ordering;

/// Returns false: this build contains no planted faults.
#[cfg(not(planted_faults))]
#[inline(always)]
pub const fn planted(_: &str) -> bool {
    false
}

/// Returns true if the fault with this name is planted in this process.
#[cfg(planted_faults)]
pub fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("TASUKI_PLANTED_FAULT").ok()).as_deref() == Some(name)
}

/// Returns `order`, or `Relaxed` if the fault with this name is planted.
#[inline(always)]
pub fn relaxed_if_planted(name: &str, order: Ordering) -> Ordering {
    if planted(name) { Ordering::Relaxed } else { order }
}
