//! What the ranks of the demonstration tell the command that started them: a line of JSON each, on standard output.

use super::report::Report;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// One thing told.
#[derive(Serialize, Deserialize)]
pub(super) enum News {
    /// A rank has joined, and this is its process.
    Here(u32),
    /// So many iterations are done.
    Iterated(usize),
    /// So many iterations of the serial run are done.
    Compared(usize),
    /// It is done.
    Done(Report),
}

impl News {
    /// Writes it. If nobody reads it, the command is gone, and its keeper will end us.
    pub(super) fn tell(&self) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = std::io::stdout().lock().write_all(&line);
        }
    }

    /// Reads a line; `None` if it is none of ours.
    pub(super) fn parse(line: &[u8]) -> Option<News> {
        serde_json::from_slice(line).ok()
    }
}
