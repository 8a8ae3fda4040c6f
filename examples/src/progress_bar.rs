//! Progress bars of ranks. The standard error of a rank is a pipe to its launcher. If the launcher's standard error
//! is a terminal, the variable TASUKI_TERMINAL has its width, and the launcher passes a line that ends with `\r` on
//! at once.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::io::{self, Write, stderr};
use std::sync::{Mutex, PoisonError};

/// More drawings per second are not visible.
const DRAWS_PER_SECOND: u8 = 10;

/// A bar with a template of indicatif, drawn by rank 0 if the launcher has a terminal, and never by other ranks. Its
/// length is not set yet. It must fit into one line, as a bar with `{wide_bar}` does.
pub fn on_first_rank(job: &tasuki::Job, template: &str) -> ProgressBar {
    if job.rank() != 0 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    if let Some(columns) = columns() {
        let target = LauncherTerminal { columns, line: Mutex::default() };
        bar.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(target), DRAWS_PER_SECOND));
    }
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The width of the launcher's terminal.
fn columns() -> Option<u16> {
    std::env::var("TASUKI_TERMINAL").ok()?.parse().ok()
}

/// The launcher's terminal. A bar draws one line, which is sent as a whole.
#[derive(Debug)]
struct LauncherTerminal {
    columns: u16,
    line: Mutex<String>,
}

impl LauncherTerminal {
    fn add(&self, text: &str) -> io::Result<()> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
        Ok(())
    }
}

impl TermLike for LauncherTerminal {
    /// One column less, because a terminal may move to the next line after a full line.
    fn width(&self) -> u16 {
        self.columns.saturating_sub(1).max(1)
    }

    // The cursor is always at the beginning of the only line.
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
        self.add("\x1b[K") // to the end of the line: a label may precede it
    }

    fn flush(&self) -> io::Result<()> {
        let line = std::mem::take(&mut *self.line.lock().unwrap_or_else(PoisonError::into_inner));
        if line.is_empty() { Ok(()) } else { stderr().write_all(format!("{line}\r").as_bytes()) }
    }
}
