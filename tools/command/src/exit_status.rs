//! The command's error messages and exit codes.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// The exit code for misuse, such as wrong options or an unknown program.
pub const MISUSE: u8 = 2;
/// The exit code if the reader of standard output went away: 128 + SIGPIPE, as a shell reports it.
pub const CLOSED: u8 = 141;

/// An error that the user can correct. The command exits with [`MISUSE`].
#[derive(Debug)]
pub struct Misuse(pub String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// Makes a misuse from a message, for functions that can also fail in other ways.
pub fn misuse(text: impl Into<String>) -> anyhow::Error {
    Misuse(text.into()).into()
}

/// Prints the error of a subcommand, if there is one, and returns the exit code.
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

/// Returns true if the error is that the reader of standard output went away. This is a normal end.
fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Prints a warning on standard error.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr().lock(), "tasuki: warning: {text}");
}

/// Prints a text on standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(not_written)
}

/// Makes an error from a failed write to standard output: misuse, unless the reader went away.
pub fn not_written(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => error.into(),
        _ => misuse(format!("standard output cannot be written: {error}")),
    }
}
