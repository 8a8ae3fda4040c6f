//! How far the bench is, and about how long it will still take: a line on standard error that is written over if that
//! is a terminal, else a new line now and then.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How often it is said on a terminal, and elsewhere.
const OFTEN: Duration = Duration::from_millis(300);
const NOW_AND_THEN: Duration = Duration::from_secs(15);
/// So many seconds of the estimate count like seconds that were measured.
const TRUST: f64 = 10.0;

/// What is done of all.
pub(crate) struct Progress {
    is_terminal: bool,
    start: Instant,
    said: Instant,
    /// Seconds by the estimate: all, those that are over, those of the part that goes on.
    all: f64,
    done: f64,
    part: f64,
    what: String,
}

impl Progress {
    /// Of a run that takes about so many seconds.
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

    /// A part begins that takes about so many seconds.
    pub(crate) fn begin(&mut self, what: String, seconds: f64) {
        self.done += self.part;
        (self.what, self.part) = (what, seconds);
        self.share(0.0);
    }

    /// That share of the part is done.
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

    /// Makes room for other lines.
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
