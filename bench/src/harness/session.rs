//! What the ranks of a job do all along: they take groups of figures and tell them.

use crate::harness::control_channel::Link;
use crate::harness::interleave::{Entry, Player, TurnFigures, Turns};
use crate::harness::measure::{side, wrong};
use crate::harness::measurement_plan::Plan;
use crate::harness::repetition::Series;
use crate::limit::{HandOver, Shared};
use crate::result::figure::{Answer, Event, Key, Point, Question};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tasuki::{Error, Job, Rank};

/// How often progress is told at most.
const TELL_EVERY: Duration = Duration::from_millis(300);
/// Whoever is told needs a processor to hear it, and the two that there may be are ours: it gets this time.
const HEARD_AFTER: Duration = Duration::from_millis(3);

/// A rank's part in taking figures.
pub(crate) struct Session<'j> {
    pub(crate) job: &'j Job,
    pub(crate) plan: &'j Plan,
    link: Link<'j>,
    /// The limit's memory.
    pub(crate) shared: Arc<Shared>,
    turns: Turns<'j>,
    /// Groups of figures that have been taken, and how many there are.
    done: usize,
    groups: usize,
}

impl<'j> Session<'j> {
    /// Collective, of two ranks or more.
    pub(crate) fn new(
        job: &'j Job,
        plan: &'j Plan,
        link: Link<'j>,
        groups: usize,
    ) -> tasuki::Result<Session<'j>> {
        let shared =
            Shared::open(&plan.shared).map_err(|error| Error::from_io("the limit's memory", &error))?;
        let shared = Arc::new(shared);
        let is_of_two = job.rank() <= Rank(1);
        let hand_over = is_of_two.then(|| HandOver::new(shared.clone(), side(job), plan.effort.hand_over));
        if let Some(hand_over) = &hand_over {
            (link.tell)(Event::HandOver(hand_over.variant().to_string()));
        }
        let turns = Turns::new(job, hand_over, plan.effort.patience)?;
        Ok(Session { job, plan, link, shared, turns, done: 0, groups })
    }

    /// Whoever else has these figures, for the lead; nobody for the others, who need not know.
    pub(crate) fn others<'m>(&self, points: &[Point]) -> tasuki::Result<Vec<Entry<'m>>> {
        if points.is_empty() || self.job.rank() != Rank(0) {
            return Ok(Vec::new());
        }
        match (self.link.ask)(Question::Who(points.to_vec()))? {
            Answer::Ready(keys) => {
                let entry = |(number, key)| (key, Player::Other(number));
                Ok(keys.into_iter().enumerate().map(entry).collect())
            }
            Answer::Figure(_) => Err(wrong("an answer of the bench")),
        }
    }

    /// How many repetitions of the next figures are to count.
    pub(crate) fn want(&mut self, repetitions: usize) {
        self.turns.want(repetitions);
    }

    /// Takes figures in turn and tells them as part of a group; the hand-overs around them.
    pub(crate) fn take(
        &mut self,
        group: &str,
        what: &str,
        mut entries: Vec<Entry<'_>>,
    ) -> tasuki::Result<Series> {
        let (link, done, groups) = (self.link, self.done as f64, self.groups as f64);
        let wanted = self.plan.effort.patience.wanted as f64;
        let mut told: Option<Instant> = None;
        let TurnFigures { series, hand_overs } = self.turns.take(&mut entries, &link, &mut |series| {
            if told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
                return;
            }
            let least = series.iter().map(Series::counted).min().unwrap_or(0) as f64 / wanted;
            let share = (done + least.min(1.0)) / groups;
            (link.tell)(Event::Progress { what: what.to_string(), share });
            told = Some(Instant::now());
            std::thread::sleep(HEARD_AFTER);
        })?;
        self.done += 1;
        for ((key, _), series) in entries.into_iter().zip(series) {
            self.tell(group, key, series);
        }
        Ok(hand_overs)
    }

    /// Tells all repetitions of a figure.
    pub(crate) fn tell(&self, group: &str, key: Key, series: Series) {
        (self.link.tell)(Event::Figure { group: group.into(), key, series });
    }
}
