//! Reports how much of the run is done and estimates the remaining time. On a terminal the report is one line on
//! standard error that is overwritten; elsewhere it is a new line at longer intervals.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The intervals between two reports, on a terminal and elsewhere.
const OFTEN: Duration = Duration::from_millis(300);
const NOW_AND_THEN: Duration = Duration::from_secs(15);
/// This many seconds of the estimate have the same weight as seconds that were measured.
const TRUST: f64 = 10.0;

/// The finished part of a run, and its estimated total time.
pub(crate) struct Progress {
    is_terminal: bool,
    start: Instant,
    said: Instant,
    /// Seconds by the estimate: of the whole run, of the finished parts, and of the current part.
    all: f64,
    done: f64,
    part: f64,
    what: String,
}

impl Progress {
    /// Begins a run that takes about this many seconds.
    pub(crate) fn new(seconds: f64) -> Progress {
        let (start, what) = (Instant::now(), String::new());
        Progress {
            is_terminal: stderr().is_terminal(),
            start,
            said: start,
            all: seconds,
            done: 0.0,
            part: 0.0,
            what,
        }
    }

    /// Begins a part that takes about this many seconds.
    pub(crate) fn begin(&mut self, what: String, seconds: f64) {
        self.done += self.part;
        (self.what, self.part) = (what, seconds);
        self.share(0.0);
    }

    /// Reports that this share of the current part is done.
    pub(crate) fn share(&mut self, share: f64) {
        if self.said.elapsed() < if self.is_terminal { OFTEN } else { NOW_AND_THEN } {
            return;
        }
        self.said = Instant::now();
        let line = self.line(self.done + self.part * share.min(1.0));
        let _ = match self.is_terminal {
            true => write!(stderr(), "\r\x1b[K{line}"),
            false => writeln!(stderr(), "tasuki bench: {line}"),
        };
    }

    fn line(&self, done: f64) -> String {
        let slower = (self.start.elapsed().as_secs_f64() + TRUST) / (done + TRUST);
        let left = ((self.all - done).max(0.0) * slower).ceil() as u64;
        let left = if left < 60 { format!("{left} s") } else { format!("{} min {} s", left / 60, left % 60) };
        format!("{:>3.0} %, about {left} left: {}", (done / self.all * 100.0).min(100.0), self.what)
    }

    /// Clears the line, so that other lines can be written.
    pub(crate) fn clear(&self) {
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn the_time_left_is_shown() {
        let mut progress = Progress::new(200.0);
        progress.begin("rate".into(), 100.0);
        assert_eq!(progress.line(199.0), "100 %, about 1 s left: rate");
        assert!(progress.line(0.0).starts_with("  0 %, about 3 min "), "{}", progress.line(0.0));
    }
}
