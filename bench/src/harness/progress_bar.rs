//! How far the bench is, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Steps of the bar.
const STEPS: u64 = 1000;

/// A bar over parts of different length. It moves only when it is told to: nothing draws while ranks measure.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Seconds that all parts may take, the parts before the present one, and the present one.
    whole: f64,
    done: f64,
    part: f64,
}

impl Progress {
    /// A bar for parts of `whole` seconds in all, roughly.
    pub(crate) fn new(whole: f64) -> Progress {
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar, whole, done: 0.0, part: 0.0 }
    }

    /// The next part begins and takes about `seconds`.
    pub(crate) fn begin(&mut self, what: &str, seconds: f64) {
        self.done += self.part;
        self.part = seconds;
        self.say(what);
        self.share(0.0);
    }

    /// What is being done.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    /// How much of the present part is done, 0 to 1.
    pub(crate) fn share(&mut self, share: f64) {
        let at = (self.done + self.part * share.clamp(0.0, 1.0)) / self.whole;
        self.bar.set_position((at * STEPS as f64) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
