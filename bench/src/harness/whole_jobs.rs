//! Figures of whole jobs, with the hand-over taken by the bench itself before and after each repetition.

use crate::case::Case;
use crate::cases::memory::message_memory;
use crate::cases::memory::plan_memory;
use crate::cases::memory::rank_memory;
use crate::cases::overlap::collective_overlap;
use crate::cases::whole_job::idle_time;
use crate::cases::whole_job::kill_time::{self, Victim};
use crate::cases::whole_job::startup;
use crate::harness::process_role::ProcessRole;
use crate::harness::progress_bar::Progress;
use crate::harness::repetition::{NEEDED, Patience, Repetition, Series, Summary};
use crate::limit::{Probe, Rounds};
use crate::result::figure::Key;
use crate::result::row::Row;
use crate::result::target::{Bar, Demand, With};
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};

/// Takes the cases that are made of whole jobs.
pub(crate) struct Whole {
    probe: Option<Probe>,
    rounds: Rounds,
    processors: Vec<usize>,
}

/// A job of milliseconds is repeated more often than one of ten seconds.
const SHORT: Patience =
    Patience { wanted: NEEDED + 2, repetitions_max: 30, time_max: Duration::from_secs(40) };
const LONG: Patience = Patience { wanted: NEEDED, repetitions_max: 8, time_max: Duration::from_secs(90) };

impl Whole {
    /// Nothing is started before the first case.
    pub(crate) fn new(processors: &[usize], rounds: Rounds) -> Whole {
        Whole { probe: None, rounds, processors: processors.to_vec() }
    }

    /// The rows of a case with `ranks` ranks.
    pub(crate) fn take(
        &mut self,
        case: Case,
        ranks: usize,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<Row>> {
        let one = |variant: &str, summary| vec![Row::new(key(case, variant), ranks, summary)];
        match case {
            Case::Startup => Ok(one("", self.repeat(SHORT, progress, &mut |_| startup::time(ranks))?)),
            Case::Idle => Ok(one(
                "signal_wait",
                self.repeat(LONG, progress, &mut |_| idle_time::time(ranks, idle_time::TIME))?,
            )),
            Case::Death => {
                let rank = self.repeat(SHORT, progress, &mut |n| kill_time::time(ranks, Victim::Rank(n)))?;
                let launcher =
                    self.repeat(SHORT, progress, &mut |_| kill_time::time(ranks, Victim::Launcher))?;
                Ok([one("rank", rank), one("launcher", launcher)].concat())
            }
            Case::OverlapColl => self.overlaps(ranks, progress),
            Case::Memory => Ok([memory_rows(ranks)?, talking_rows(ranks)?, planned_rows(ranks)?].concat()),
            _ => Ok(Vec::new()),
        }
    }

    /// Repeats until enough repetitions count.
    fn repeat(
        &mut self,
        patience: Patience,
        progress: &mut Progress,
        body: &mut dyn FnMut(usize) -> anyhow::Result<f64>,
    ) -> anyhow::Result<Summary> {
        let (mut series, start) = (Series::default(), Instant::now());
        let mut before = self.hand_over()?;
        while patience.lasts(std::iter::once(&series), start.elapsed()) {
            let figure = body(series.all().len())?;
            let after = self.hand_over()?;
            series.push(Repetition { figure, before, after });
            before = after;
            progress.share(series.counted() as f64 / patience.wanted as f64);
        }
        series.summary().context("no repetition")
    }

    /// Several figures of each job, repeated alike.
    fn overlaps(&mut self, ranks: usize, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
        let (mut all, start): (Vec<(Key, Series)>, _) = (Vec::new(), Instant::now());
        let setting = collective_overlap::options(&self.processors)?.join(" ");
        let mut before = self.hand_over()?;
        while all.is_empty() || SHORT.lasts(all.iter().map(|(_, series)| series), start.elapsed()) {
            let told = collective_overlap::take(&self.processors, collective_overlap::OverlapEffort::FULL)?;
            let after = self.hand_over()?;
            for collective_overlap::OverlapFigure { variant, bytes, ns } in told {
                let key = Key { bytes, ..key(Case::OverlapColl, &variant).by(&setting) };
                let at = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                    all.push((key, Series::default()));
                    all.len() - 1
                });
                all[at].1.push(Repetition { figure: ns, before, after });
            }
            before = after;
            let least = all.iter().map(|(_, series)| series.counted()).min().unwrap_or(0);
            progress.share(least as f64 / SHORT.wanted as f64);
        }
        let row = |(key, series): (Key, Series)| {
            Ok(Row::new(key, ranks, series.summary().context("no repetition")?))
        };
        all.into_iter().map(row).collect()
    }

    fn hand_over(&mut self) -> anyhow::Result<f64> {
        let mut probe = match self.probe.take() {
            Some(probe) => probe,
            None => self.start_probe()?,
        };
        let time = probe.measure();
        self.probe = Some(probe);
        Ok(time?)
    }

    fn start_probe(&self) -> anyhow::Result<Probe> {
        ensure!(self.processors.len() >= 2, "the hand-over needs two processors");
        let command = ProcessRole::Probe(self.processors[1], self.rounds).alone()?;
        Probe::start(command, self.processors[0], self.rounds).context("the hand-over cannot be measured")
    }
}

/// A row for each step. Bytes depend on no clock: every rank's count is a repetition that counts.
fn memory_rows(ranks: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    if ranks > message_memory::PROCESSES_MAX {
        return Ok(rows);
    }
    for (step, bytes) in rank_memory::look(ranks)? {
        ensure!(bytes.len() == ranks, "{} of {ranks} ranks told their memory", bytes.len());
        let formula = step.formula(ranks as u64);
        let setting = format!("by formula {formula}");
        let summary = Summary::of(bytes, true).context("no rank")?;
        let mut row = Row::new(Key { setting, ..key(Case::Memory, &step.to_string()) }, ranks, summary);
        row.bars = vec![Bar { with: With::Itself, demand: Demand::Exactly(formula as f64) }];
        rows.push(row);
    }
    Ok(rows)
}

/// Rows of a rank that exchanges messages with one peer, and with all.
fn talking_rows(ranks: usize) -> anyhow::Result<Vec<Row>> {
    if ranks < 3 {
        return Ok(Vec::new());
    }
    let (told, formula) =
        (message_memory::look(ranks)?, message_memory::MessageMemory::formula(ranks as u64));
    let row = |variant: &str, bytes: f64, setting: String, demands: &[Demand]| {
        let summary = Summary::of(vec![bytes], true).context("no figure")?;
        let mut row = Row::new(Key { setting, ..key(Case::Memory, variant) }, ranks, summary);
        row.bars = demands.iter().map(|&demand| Bar { with: With::Itself, demand }).collect();
        Ok::<Row, anyhow::Error>(row)
    };
    let by = |bytes: u64| (format!("by formula {bytes}"), Demand::Exactly(bytes as f64));
    let ((one, exactly_one), (all, exactly_all)) = (by(formula.one), by(formula.all));
    let each = told.each(ranks as u64);
    Ok(vec![
        row("messages_1_peer", told.one as f64, one, &[exactly_one, Demand::BytesBelow(1 << 20)])?,
        row("messages_all", told.all as f64, all, &[exactly_all])?,
        row("messages_each", each, "a peer beyond the first".into(), &[Demand::BytesBelow(10 << 10)])?,
    ])
}

/// Rows of plans: a rank's bytes, from the least to the most; and those that are left of all when they are dropped.
fn planned_rows(ranks: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    if !plan_memory::RANKS.contains(&ranks) {
        return Ok(rows);
    }
    for plan_memory::PlanMemory { variant, bytes, formula } in plan_memory::look(ranks)? {
        let median = |bytes| Summary::of(bytes, true).context("no rank");
        let (summary, formula) = (median(bytes)?, median(formula)?.median);
        let setting = format!("by formula {formula}");
        let mut row = Row::new(Key { setting, ..key(Case::Memory, &variant) }, ranks, summary);
        row.bars = vec![Bar { with: With::Itself, demand: Demand::Exactly(formula) }];
        rows.push(row);
    }
    Ok(rows)
}

fn key(case: Case, variant: &str) -> Key {
    Key::ours(case, variant, 0).by("default")
}
