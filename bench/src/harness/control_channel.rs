//! How the lead of a job speaks with the bench: lines of JSON on its standard output and input.

use crate::result::figure::{Answer, Event, Question};
use std::io::Write;
use tasuki::{Cause, Error};

/// What a rank does with what it has to tell and to ask.
#[derive(Clone, Copy)]
pub(crate) struct Link<'l> {
    /// Tells.
    pub(crate) tell: &'l dyn Fn(Event),
    /// Asks, and waits for the answer. The lead does so only.
    pub(crate) ask: &'l dyn Fn(Question) -> tasuki::Result<Answer>,
}

/// One line of standard output. Nobody to hear it is no reason to fail.
pub(crate) fn tell(event: Event) {
    if let Ok(line) = serde_json::to_string(&event) {
        say(&line);
    }
}

/// A line of standard output.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A line of standard input; an empty one at its end.
pub(crate) fn hear() -> tasuki::Result<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| Error::from_io("standard input", &error))?;
    Ok(line)
}

/// Asks on standard output, and is answered on standard input.
pub(crate) fn call_with_reply(question: Question) -> tasuki::Result<Answer> {
    tell(Event::Ask(question));
    let line = hear()?;
    let wrong = |error| Error::new(Cause::Program(format!("the bench answered {line:?}: {error}")));
    serde_json::from_str(&line).map_err(wrong)
}
