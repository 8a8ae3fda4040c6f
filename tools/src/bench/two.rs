//! Figures of two ranks: jobs that take all of them in turn.

use super::case::Case;
use super::figure::Event;
use super::group::Groups;
use super::limit::{Copies, SharedFile};
use super::part::Part;
use super::plan::{Effort, Plan};
use super::progress::Progress;
use super::row::{Library, Row};
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// What came of it.
pub(super) struct Told {
    /// The figures, limits included.
    pub(super) rows: Vec<Row>,
    /// How the hand-over was done.
    pub(super) hand_over_way: Option<String>,
}

/// Jobs, one after the other: in every other one the limit takes its memory first. Whoever comes later gets better
/// pages and copies quicker, here by a fifth, which is nobody's merit.
const JOBS: usize = 2;

/// Runs the jobs on the first two of `processors`.
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
    let mut heard = Heard { groups: Groups::default(), hand_over_way: None, jobs_done: 0, progress };
    for number in 0..JOBS {
        let shared = SharedFile::create(Copies::bytes(area)).context("memory for the limits")?;
        let (path, limit_first) = (shared.path(), number % 2 == 0);
        let plan = Plan { cases: cases.to_vec(), sizes: sizes.to_vec(), shared: path, limit_first, effort };
        heard.job(plan, &processors[..2])?;
    }
    let bound = format!("--bind {},{}", processors[0], processors[1]);
    let mut rows = heard.groups.rows(2);
    for row in rows.iter_mut().filter(|row| row.library == Library::Tasuki) {
        row.setting.clone_from(&bound);
    }
    Ok(Told { rows, hand_over_way: heard.hand_over_way })
}

/// What the jobs have said.
struct Heard<'p> {
    groups: Groups,
    hand_over_way: Option<String>,
    jobs_done: usize,
    progress: &'p mut Progress,
}

impl Heard<'_> {
    /// Runs a job and hears it out.
    fn job(&mut self, plan: Plan, processors: &[usize]) -> anyhow::Result<()> {
        let mut command = Part::Two(plan).job(processors.len(), processors)?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = child.stdout.take().context("no output")?;
        for line in BufReader::new(lines).lines() {
            self.line(&line?)?;
        }
        let status = child.wait()?;
        ensure!(status.success(), "the job of two ranks failed ({status})");
        self.jobs_done += 1;
        Ok(())
    }

    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        let event = serde_json::from_str(line).with_context(|| format!("a rank said: {line}"))?;
        match event {
            Event::HandOver(way) => self.hand_over_way = Some(way),
            Event::Progress { what, share } => {
                self.progress.say(&what);
                self.progress.share((self.jobs_done as f64 + share) / JOBS as f64);
            }
            Event::Figure { group, key, series } => self.groups.add(group, key, series),
            Event::Report(..) => {}
        }
        Ok(())
    }
}
