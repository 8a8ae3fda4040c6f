//! When a figure counts: only if the machine was in one unchanged state while the figure was measured.
//!
//! There are two rules. First, the hand-overs directly before and directly after a repetition agree. Second, all
//! repetitions of a group of figures that are compared with each other were made in the same state of the machine.
//! Under a hypervisor two processors can be neighbours in one minute and far apart in the next, and the hand-over is
//! steady in both. A figure from one of these states, divided by a limit from the other, would mean nothing.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The hand-overs directly before and after a repetition agree if they differ by at most this factor.
const AGREEMENT: f64 = 1.10;
/// The hand-overs of one state of the machine differ by at most this factor. Those of different states (two processors
/// on the same core, with the same cache, or without a common cache) differ by more.
const LEVEL_WIDTH: f64 = 1.20;
/// The number of repetitions that must count for a figure to be steady.
pub(crate) const NEEDED: usize = 5;

/// One measurement, and the hand-over before and after it in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Repetition {
    /// The measured value, in the unit of its row.
    pub(crate) figure: f64,
    /// The hand-over directly before.
    pub(crate) before: f64,
    /// The hand-over directly after.
    pub(crate) after: f64,
}

impl Repetition {
    /// Returns true if the hand-overs before and after the repetition agree.
    fn is_still(&self) -> bool {
        self.before.max(self.after) <= AGREEMENT * self.before.min(self.after)
    }

    /// Returns the mean of the hand-overs before and after the repetition.
    pub(crate) fn hand_over(&self) -> f64 {
        (self.before + self.after) / 2.0
    }
}

/// A range of hand-overs that identifies a state of the machine: from this value up to [`LEVEL_WIDTH`] times it, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Level(f64);

impl Level {
    fn has(self, repetition: &Repetition) -> bool {
        (self.0..=self.0 * LEVEL_WIDTH).contains(&repetition.hand_over())
    }

    /// Returns the level that contains most of the repetitions during which the state of the machine did not change.
    pub(crate) fn prevailing(repetitions: &[Repetition]) -> Option<Level> {
        let still = || repetitions.iter().filter(|repetition| repetition.is_still());
        let levels = still().map(|repetition| Level(repetition.hand_over()));
        levels.max_by_key(|level| still().filter(|repetition| level.has(repetition)).count())
    }
}

/// All repetitions of a figure.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Series {
    repetitions: Vec<Repetition>,
    /// The level at which a repetition must be to count. Without a level, a repetition may be at any.
    level: Option<Level>,
}

impl Series {
    /// Adds a repetition.
    pub(crate) fn push(&mut self, repetition: Repetition) {
        self.repetitions.push(repetition);
    }

    /// From now on, only repetitions at this level count.
    pub(crate) fn only_at(&mut self, level: Option<Level>) {
        self.level = level;
    }

    /// Adds the repetitions of another series.
    pub(crate) fn append(&mut self, mut other: Series) {
        self.repetitions.append(&mut other.repetitions);
    }

    /// Returns all repetitions, including those that do not count.
    pub(crate) fn all(&self) -> &[Repetition] {
        &self.repetitions
    }

    /// Returns the repetitions that count.
    pub(crate) fn counting(&self) -> impl Iterator<Item = &Repetition> {
        let at_level = |repetition: &&Repetition| self.level.is_none_or(|level| level.has(repetition));
        self.repetitions.iter().filter(|repetition| repetition.is_still()).filter(at_level)
    }

    /// Returns the number of repetitions that count.
    pub(crate) fn counted(&self) -> usize {
        self.counting().count()
    }

    /// Returns the summary of the repetitions that count. If these are too few, returns the summary of all repetitions,
    /// marked as unsteady.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let steady = self.counted() >= NEEDED;
        let counting = self.counting().map(|repetition| repetition.figure);
        let all = self.repetitions.iter().map(|repetition| repetition.figure);
        Summary::of(if steady { counting.collect() } else { all.collect() }, steady)
    }
}

/// A figure as it is printed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Summary {
    /// The median of the repetitions.
    pub(crate) median: f64,
    /// The smallest repetition.
    pub(crate) min: f64,
    /// The largest repetition.
    pub(crate) max: f64,
    /// The number of repetitions.
    pub(crate) repetitions: usize,
    /// True if enough repetitions counted.
    pub(crate) steady: bool,
}

impl Summary {
    /// Returns the summary of these figures, or `None` if there are none.
    pub(crate) fn of(mut figures: Vec<f64>, steady: bool) -> Option<Summary> {
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = match figures.len() % 2 {
            0 => (figures[middle - 1] + figures[middle]) / 2.0,
            _ => figures[middle],
        };
        Some(Summary { median, min, max, repetitions: figures.len(), steady })
    }
}

/// When to stop repeating a figure, even if too few repetitions count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Patience {
    /// The number of repetitions that are to count.
    pub(crate) wanted: usize,
    /// The largest number of repetitions.
    pub(crate) repetitions_max: usize,
    /// No repetition begins after this time.
    pub(crate) time_max: Duration,
}

impl Patience {
    /// Returns true if these figures need more repetitions. `elapsed` is the time since their first repetition began.
    pub(crate) fn lasts<'s>(
        &self,
        mut series: impl Iterator<Item = &'s Series> + Clone,
        elapsed: Duration,
    ) -> bool {
        let most = series.clone().map(|one| one.all().len()).max().unwrap_or(0);
        let wanting = series.any(|one| one.counted() < self.wanted);
        wanting && most < self.repetitions_max && elapsed < self.time_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(figures: &[(f64, f64)]) -> Series {
        let repetition = |&(figure, after)| Repetition { figure, before: 100.0, after };
        Series { repetitions: figures.iter().map(repetition).collect(), level: None }
    }

    #[test]
    fn only_what_was_measured_on_a_quiet_machine_counts() {
        let quiet = [(3.0, 100.0), (1.0, 109.0), (2.0, 91.0), (9.0, 100.0), (4.0, 105.0)];
        let mut steady = series(&quiet);
        steady.push(Repetition { figure: 1000.0, before: 100.0, after: 111.0 });
        let summary = Summary { median: 3.0, min: 1.0, max: 9.0, repetitions: 5, steady: true };
        assert_eq!(steady.summary(), Some(summary));
        let unsteady = series(&[(1.0, 100.0), (2.0, 150.0)]).summary().unwrap();
        assert_eq!((unsteady.steady, unsteady.median, unsteady.repetitions), (false, 1.5, 2));
        assert_eq!(Series::default().summary(), None);
    }

    #[test]
    fn figures_of_one_group_come_from_one_state_of_the_machine() {
        let at =
            |hand_over: f64| Repetition { figure: hand_over, before: hand_over, after: hand_over * 1.01 };
        let mut series = Series::default();
        for hand_over in [20.0, 50.0, 21.0, 55.0, 52.0, 51.0, 22.0, 50.5] {
            series.push(at(hand_over));
        }
        let level = Level::prevailing(series.all());
        assert_eq!(series.counted(), 8);
        series.only_at(level);
        let summary = series.summary().unwrap();
        assert_eq!((summary.min, summary.max, summary.repetitions), (50.0, 55.0, 5));
        assert_eq!(Level::prevailing(&[]), None);
        assert_eq!(Level::prevailing(&[Repetition { figure: 1.0, before: 1.0, after: 2.0 }]), None);
    }

    #[test]
    fn patience_ends_by_success_number_or_time() {
        let patience = Patience { wanted: 2, repetitions_max: 3, time_max: Duration::from_secs(1) };
        let lasts = |list: &[Series], elapsed| patience.lasts(list.iter(), Duration::from_millis(elapsed));
        let (good, bad) = (series(&[(1.0, 100.0); 2]), series(&[(1.0, 200.0); 2]));
        assert!(!lasts(std::slice::from_ref(&good), 0));
        assert!(lasts(&[good.clone(), bad.clone()], 0));
        assert!(!lasts(&[good, bad], 1000));
        assert!(!lasts(&[series(&[(1.0, 200.0); 3])], 0));
    }
}
