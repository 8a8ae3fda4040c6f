//! A progress bar for long simulations, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};
use tasuki_schedule::SimulationProgress;

/// Resolution of the bar.
const STEPS: u64 = 1000;
/// The approximate share of the time that making the parts takes.
const MAKING: f64 = 0.3;
/// A simulation that ends sooner gets no bar.
const SOON: Duration = Duration::from_millis(300);

/// The bar.
pub(super) struct Bar {
    bar: Option<ProgressBar>,
    since: Instant,
}

impl Bar {
    /// A bar that is not visible yet.
    pub(super) fn new() -> Bar {
        Bar { bar: None, since: Instant::now() }
    }

    /// Moves the bar.
    pub(super) fn show(&mut self, progress: SimulationProgress) {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let parts = share(progress.made as u64, progress.ranks as u64);
        let whole = MAKING * parts + (1.0 - MAKING) * share(progress.begun, progress.steps) * parts;
        self.show_share(whole, || match progress.begun {
            0 => format!("{} of {} ranks prepared", progress.made, progress.ranks),
            begun => format!("{begun} of {} steps", progress.steps),
        });
    }

    /// Moves the bar to a share of the whole.
    pub(super) fn show_share(&mut self, share: f64, message: impl FnOnce() -> String) {
        if self.since.elapsed() < SOON {
            return;
        }
        let bar = self.bar.get_or_insert_with(made);
        bar.set_position((share * STEPS as f64) as u64);
        bar.set_message(message());
    }
}

fn made() -> ProgressBar {
    let bar = ProgressBar::new(STEPS);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
