//! The log of a rank: lines on standard error, by level. A successful job writes none by default.

use crate::base::sync::{AtomicU32, Ordering};
use std::fmt;
use std::io::Write;

/// The log level. Each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Level {
    /// Only errors that end the job.
    Error = 0,
    /// Misuse that does not end the job, such as an unknown environment variable. The default.
    Warn = 1,
    /// Choices made once per job: wake mode, path for own memory, fabric.
    Info = 2,
    /// Every use of a slow path.
    Debug = 3,
}

impl Level {
    /// Returns the level with this name, as in `TASUKI_LOG=info`.
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

/// The log of one rank or tool: prefix and level. There is no global logger.
#[derive(Debug)]
pub struct Log {
    level: AtomicU32,
    who: String,
}

impl Log {
    /// Makes a log whose lines name `who`, e.g. `rank 3`.
    pub fn new(who: impl Into<String>, level: Level) -> Log {
        Log { level: AtomicU32::new(level as u32), who: who.into() }
    }

    /// Returns true if lines of this level are written.
    pub fn is_enabled(&self, level: Level) -> bool {
        level as u32 <= self.level.load(Ordering::Relaxed)
    }

    /// Writes one line if the level is enabled. Ignores errors: standard error may be closed.
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
