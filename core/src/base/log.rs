//! What a rank says on standard error, by level. Nothing is said on success.

use crate::base::sync::{AtomicU32, Ordering};
use std::fmt;
use std::io::Write;

/// How much is said; each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Level {
    /// Nothing but what ends the job.
    Error = 0,
    /// Misuse that the job survives, such as an unknown variable. The default.
    Warn = 1,
    /// Decisions taken once per job: wake mode, own-memory path, fabric.
    Info = 2,
    /// Every slow path taken.
    Debug = 3,
}

impl Level {
    /// The level of that name, as in `TASUKI_LOG=info`.
    pub fn named(name: &str) -> Option<Level> {
        match name {
            "error" => Some(Level::Error),
            "warn" => Some(Level::Warn),
            "info" => Some(Level::Info),
            "debug" => Some(Level::Debug),
            _ => None,
        }
    }
}

/// A rank's voice: prefix and level. Cheap to clone; there is no global logger.
#[derive(Debug)]
pub struct Log {
    level: AtomicU32,
    who: String,
}

impl Log {
    /// A voice that names itself `who`, e.g. `rank 3`.
    pub fn new(who: impl Into<String>, level: Level) -> Log {
        Log { level: AtomicU32::new(level as u32), who: who.into() }
    }

    /// Whether a remark of that level would be heard.
    pub fn is_enabled(&self, level: Level) -> bool {
        level as u32 <= self.level.load(Ordering::Relaxed)
    }

    /// Says one line, if the level is heard. A closed standard error is no reason to fail.
    pub fn say(&self, level: Level, text: fmt::Arguments<'_>) {
        if self.is_enabled(level) {
            let word = match level {
                Level::Error => "error",
                Level::Warn => "warning",
                Level::Info => "info",
                Level::Debug => "debug",
            };
            let _ = writeln!(std::io::stderr().lock(), "tasuki: {word}: {}: {text}", self.who);
        }
    }
}
