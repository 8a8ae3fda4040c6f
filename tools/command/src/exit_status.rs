//! What the command itself says, and with which code it ends.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Misuse: wrong options, no such program.
pub const MISUSE: u8 = 2;
/// The reader of standard output went away: 128 + SIGPIPE, as the shell would report it.
pub const CLOSED: u8 = 141;

/// An error that is the user's to mend: it ends the command with [`MISUSE`].
#[derive(Debug)]
pub struct Misuse(pub String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// A misuse as an error of a function that can fail otherwise, too.
pub fn misuse(text: impl Into<String>) -> anyhow::Error {
    Misuse(text.into()).into()
}

/// The exit code of a subcommand, after saying what went wrong.
pub fn outcome(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => code.into(),
        Err(error) if is_closed(&error) => CLOSED.into(),
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "tasuki: error: {error:#}");
            if error.is::<Misuse>() { MISUSE.into() } else { ExitCode::FAILURE }
        }
    }
}

/// Whether the reader of our output went away, which is no error but an end.
fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// A warning, on standard error.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr().lock(), "tasuki: warning: {text}");
}

/// Prints a text and whether that worked.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(not_written)
}

/// Standard output cannot be written: that is the user's to mend, unless its reader went away.
pub fn not_written(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => error.into(),
        _ => misuse(format!("standard output cannot be written: {error}")),
    }
}
