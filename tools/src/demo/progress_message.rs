//! Messages from the ranks of the demonstration to the command that started them: one line of JSON
//! each, on standard output.

use super::report::DemoReport;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// One message.
#[derive(Serialize, Deserialize)]
pub(super) enum ProgressMessage {
    /// A rank has joined; this is its process number.
    Joined(u32),
    /// This many iterations are done.
    Iterated(usize),
    /// This many iterations of the serial run are done.
    Compared(usize),
    /// The demonstration is done.
    Done(DemoReport),
}

impl ProgressMessage {
    /// Writes the message. An error is ignored: if nobody reads, the command is gone and its keeper
    /// ends this process.
    pub(super) fn send(&self) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = std::io::stdout().lock().write_all(&line);
        }
    }

    /// Reads a line. Returns `None` if it is not such a message.
    pub(super) fn parse(line: &[u8]) -> Option<ProgressMessage> {
        serde_json::from_slice(line).ok()
    }
}
