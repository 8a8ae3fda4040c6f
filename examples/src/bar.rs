//! Progress bars of ranks. A rank's standard error is a pipe to its launcher; if that goes on to a terminal, the
//! variable TASUKI_TERMINAL tells how wide it is, and a line that ends with `\r` goes out at once.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::io::{self, Write, stderr};
use std::sync::{Mutex, PoisonError};

/// More nobody sees.
const DRAWINGS_A_SECOND: u8 = 10;

/// A bar by a template of indicatif's, drawn where somebody sees it. Its length is not known yet. It must fit in a
/// line, as one with a `{wide_bar}` does.
pub fn shown(template: &str) -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Some(columns) = columns() {
        let target = Launched { columns, line: Mutex::default() };
        bar.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(target), DRAWINGS_A_SECOND));
    }
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A bar that is not drawn: for the other ranks.
pub fn hidden() -> ProgressBar {
    ProgressBar::hidden()
}

/// The width of the launcher's terminal.
fn columns() -> Option<u16> {
    std::env::var("TASUKI_TERMINAL").ok()?.parse().ok()
}

/// The launcher's terminal: what a bar draws is one line, sent whole when it is drawn.
#[derive(Debug)]
struct Launched {
    columns: u16,
    line: Mutex<String>,
}

impl Launched {
    fn add(&self, text: &str) -> io::Result<()> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
        Ok(())
    }
}

impl TermLike for Launched {
    /// One less: a terminal may go to the next line after a full one.
    fn width(&self) -> u16 {
        self.columns.saturating_sub(1).max(1)
    }

    // The cursor stands at the beginning of the only line, always.
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(text)?;
        self.add("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\x1b[K") // behind a label
    }

    fn flush(&self) -> io::Result<()> {
        let line = std::mem::take(&mut *self.line.lock().unwrap_or_else(PoisonError::into_inner));
        if line.is_empty() { Ok(()) } else { stderr().write_all(format!("{line}\r").as_bytes()) }
    }
}
