//! When a figure counts: only while the machine stood still.
//!
//! Two rules. The hand-over directly before and directly after a repetition agree. And all repetitions of a group of
//! figures that are compared with each other were taken in the same state of the machine: under a hypervisor two
//! processors can be neighbours in one minute and far apart in the next, each perfectly steady, and a figure from
//! one state divided by a limit from the other would mean nothing.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far apart the hand-overs directly before and after a repetition may be.
const AGREEMENT: f64 = 1.10;
/// How far apart hand-overs may be that belong to one state of the machine. Its states are farther apart: the same
/// core, the same cache, another one.
const LEVEL_WIDTH: f64 = 1.20;
/// Repetitions that count, of which a figure needs this many.
pub(crate) const NEEDED: usize = 5;

/// One measurement, and the hand-over before and after it in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Repetition {
    /// What was measured, in the unit of its row.
    pub(crate) figure: f64,
    /// Hand-over directly before.
    pub(crate) before: f64,
    /// Hand-over directly after.
    pub(crate) after: f64,
}

impl Repetition {
    /// Returns true if the hand-over took as long after the repetition as before it.
    fn is_still(&self) -> bool {
        self.before.max(self.after) <= AGREEMENT * self.before.min(self.after)
    }

    /// The hand-over around it.
    pub(crate) fn hand_over(&self) -> f64 {
        (self.before + self.after) / 2.0
    }
}

/// The hand-over as a mark of the machine's state: from this one up to [`LEVEL_WIDTH`] times it, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Level(f64);

impl Level {
    fn has(self, repetition: &Repetition) -> bool {
        (self.0..=self.0 * LEVEL_WIDTH).contains(&repetition.hand_over())
    }

    /// The one at which most repetitions were taken among those during which the machine stood still.
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
    /// The level at which a repetition counts; any, if none is named.
    level: Option<Level>,
}

impl Series {
    /// One more.
    pub(crate) fn push(&mut self, repetition: Repetition) {
        self.repetitions.push(repetition);
    }

    /// Only what was taken at that level counts from now on.
    pub(crate) fn only_at(&mut self, level: Option<Level>) {
        self.level = level;
    }

    /// Those of another series, too.
    pub(crate) fn append(&mut self, mut other: Series) {
        self.repetitions.append(&mut other.repetitions);
    }

    /// Every repetition, whether it counts or not.
    pub(crate) fn all(&self) -> &[Repetition] {
        &self.repetitions
    }

    /// Those that count.
    pub(crate) fn counting(&self) -> impl Iterator<Item = &Repetition> {
        let at_level = |repetition: &&Repetition| self.level.is_none_or(|level| level.has(repetition));
        self.repetitions.iter().filter(|repetition| repetition.is_still()).filter(at_level)
    }

    /// How many count.
    pub(crate) fn counted(&self) -> usize {
        self.counting().count()
    }

    /// What the repetitions that count say; if they are too few, what all say, marked as unsteady.
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
    /// The middle one.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
    /// How many it was made of.
    pub(crate) repetitions: usize,
    /// True if enough repetitions counted.
    pub(crate) steady: bool,
}

impl Summary {
    /// Of these figures; `None` of none.
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

/// How long to go on until enough repetitions count.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Patience {
    /// Repetitions that are to count; [`NEEDED`] or more.
    pub(crate) wanted: usize,
    /// No more repetitions than this,
    pub(crate) repetitions_max: usize,
    /// nor any that begins after this time.
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
