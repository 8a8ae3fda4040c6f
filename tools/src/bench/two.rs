//! Figures of two ranks: one job that takes all of them in turn.

use super::case::Case;
use super::figure::{Event, Key};
use super::limit::{Copies, SharedFile};
use super::part::Part;
use super::plan::{Effort, Plan};
use super::progress::Progress;
use super::repetition::Series;
use super::row::{Library, Row};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// What came of it.
pub(super) struct Told {
    /// The figures, limits included.
    pub(super) rows: Vec<Row>,
    /// How the hand-over was done.
    pub(super) hand_over_way: Option<String>,
}

/// Runs the job on the first two of `processors`.
pub(super) fn take(
    cases: &[Case],
    sizes: &[u64],
    effort: Effort,
    processors: &[usize],
    progress: &mut Progress,
) -> anyhow::Result<Told> {
    ensure!(processors.len() >= 2, "two processors are needed, this process may use {}", processors.len());
    let has_sizes = cases.iter().any(|case| case.has_sizes());
    let area = if has_sizes { effort.area(sizes) } else { 0 };
    let shared = SharedFile::create(Copies::bytes(area)).context("memory for the limits")?;
    let plan = Plan { cases: cases.to_vec(), sizes: sizes.to_vec(), shared: shared.path(), effort };
    let mut command = Part::Two(plan).job(2, &processors[..2])?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let lines = child.stdout.take().context("no output")?;
    let mut told = Told { rows: Vec::new(), hand_over_way: None };
    for line in BufReader::new(lines).lines() {
        hear(&line?, &mut told, progress)?;
    }
    let bound = format!("--bind {},{}", processors[0], processors[1]);
    for row in told.rows.iter_mut().filter(|row| row.library == Library::Tasuki) {
        row.setting.clone_from(&bound);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the job of two ranks failed ({status})");
    }
    Ok(told)
}

fn hear(line: &str, told: &mut Told, progress: &mut Progress) -> anyhow::Result<()> {
    let event = serde_json::from_str(line).with_context(|| format!("a rank said: {line}"))?;
    match event {
        Event::HandOver(way) => told.hand_over_way = Some(way),
        Event::Progress { what, share } => {
            progress.say(&what);
            progress.share(share);
        }
        Event::Figure(key, series) => told.rows.extend(row(key, &series)),
        Event::Report(..) => {}
    }
    Ok(())
}

fn row(key: Key, series: &Series) -> Option<Row> {
    Some(Row::new(key, 2, series.summary()?))
}
