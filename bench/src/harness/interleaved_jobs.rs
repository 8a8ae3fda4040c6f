//! Figures of ranks that take turns: jobs that are started, heard out, and told what other libraries measure.

use crate::case::Case;
use crate::cases::oversubscription;
use crate::harness::measurement_plan::{Effort, Plan};
use crate::harness::process_role::ProcessRole;
use crate::harness::progress_bar::Progress;
use crate::limit::{Copies, SharedFile};
use crate::peers::Opponents;
use crate::result::comparison::{self, Off};
use crate::result::figure::{Answer, Event, Question};
use crate::result::figure_groups::Groups;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::sizes;
use crate::tuning::file::VARIABLE;
use anyhow::{Context, ensure};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};

/// What came of it.
pub(crate) struct JobFigures {
    /// The figures, limits included.
    pub(crate) rows: Vec<Row>,
    /// How the hand-over was done.
    pub(crate) hand_over_way: Option<String>,
    /// Other libraries that have no figure.
    pub(crate) off: Vec<Off>,
}

/// Jobs of two ranks, one after the other: in every other one the limit takes its memory first. Whoever comes later
/// gets better pages and copies quicker, here by a fifth, which is nobody's merit.
const JOBS: usize = 2;

/// What is to be taken.
pub(crate) struct JobsWanted<'w> {
    /// The cases: all for two ranks, or all collective.
    pub(crate) cases: &'w [Case],
    /// Sizes of blocks, if they are not to be the usual ones.
    pub(crate) sizes: &'w [u64],
    /// How many ranks.
    pub(crate) ranks: usize,
    /// How much of everything.
    pub(crate) effort: Effort,
    /// The processors; ranks go to the first two in turn.
    pub(crate) processors: &'w [usize],
    /// What holds for the jobs instead of what was measured on the machine, if anything.
    pub(crate) tune: Option<PathBuf>,
}

/// Takes the figures, beside these other libraries.
pub(crate) fn take(
    wanted: &JobsWanted<'_>,
    opponents: Opponents,
    progress: &mut Progress,
) -> anyhow::Result<JobFigures> {
    let JobsWanted { cases, sizes, ranks, effort, processors, ref tune } = *wanted;
    ensure!(processors.len() >= 2, "two processors are needed, this process may use {}", processors.len());
    let for_two = cases.iter().all(|case| case.is_for_two());
    let area = if for_two { effort.area(&sizes::of_all(cases, sizes)) } else { 0 };
    let bound: Vec<usize> = (0..ranks).map(|rank| processors[rank % 2]).collect();
    let jobs = if for_two { JOBS } else { 1 };
    let effort = effort.in_jobs(jobs);
    let (groups, hand_over_way) = (Groups::default(), None);
    let mut heard = Heard { groups, hand_over_way, opponents, jobs, jobs_done: 0, tune, progress };
    for number in 0..jobs {
        let shared = SharedFile::create(Copies::bytes(area)).context("memory for the limits")?;
        let (path, limit_first) = (shared.path(), number % 2 == 0);
        let (cases, sizes, has_peers) = (cases.to_vec(), sizes.to_vec(), heard.opponents.are_there());
        let plan = Plan { cases, sizes, shared: path, limit_first, has_peers, effort };
        heard.job(if for_two { ProcessRole::Pair(plan) } else { ProcessRole::Group(plan) }, &bound)?;
    }
    let mut rows = heard.groups.rows(ranks);
    name_settings(&mut rows, &bound);
    comparison::keep_best(&mut rows);
    Ok(JobFigures { rows, hand_over_way: heard.hand_over_way, off: heard.opponents.off() })
}

/// Says of our rows where ranks were bound, and by which calls they did it.
fn name_settings(rows: &mut [Row], bound: &[usize]) {
    let list: Vec<String> = bound.iter().map(ToString::to_string).collect();
    let bound = format!("--bind {}", list.join(","));
    for row in rows.iter_mut().filter(|row| row.library == Library::Tasuki) {
        if row.case == Case::Oversubscribed {
            row.ranks = oversubscription::RANKS;
        }
        let by = std::mem::take(&mut row.setting);
        row.setting = if by.is_empty() { bound.clone() } else { format!("{bound}; {by}") };
    }
}

/// What the jobs have said.
struct Heard<'p> {
    groups: Groups,
    hand_over_way: Option<String>,
    opponents: Opponents,
    jobs: usize,
    jobs_done: usize,
    tune: &'p Option<PathBuf>,
    progress: &'p mut Progress,
}

impl Heard<'_> {
    /// Runs a job and hears it out.
    fn job(&mut self, part: ProcessRole, processors: &[usize]) -> anyhow::Result<()> {
        let mut command = part.job(processors.len(), processors)?;
        if let Some(tune) = self.tune {
            command.env(VARIABLE, tune);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let lines = child.stdout.take().context("no output")?;
        let mut answers = child.stdin.take().context("no input")?;
        for line in BufReader::new(lines).lines() {
            self.line(&line?, &mut answers)?;
        }
        let status = child.wait()?;
        self.opponents.end();
        ensure!(status.success(), "the job of {} ranks failed ({status})", processors.len());
        self.jobs_done += 1;
        Ok(())
    }

    fn line(&mut self, line: &str, answers: &mut ChildStdin) -> anyhow::Result<()> {
        let event = serde_json::from_str(line).with_context(|| format!("a rank said: {line}"))?;
        match event {
            Event::HandOver(way) => self.hand_over_way = Some(way),
            Event::Progress { what, share } => {
                self.progress.say(&what);
                self.progress.share((self.jobs_done as f64 + share) / self.jobs as f64);
            }
            Event::Figure { group, key, series } => self.groups.add(group, key, series),
            Event::Ask(question) => {
                let answer = match question {
                    Question::Who(points) => Answer::Ready(self.opponents.who(&points, self.progress)),
                    Question::Measure(number) => Answer::Figure(self.opponents.measure(number)),
                };
                // A rank that hears nothing any more has ended, and how says its exit code.
                let _ = writeln!(answers, "{}", serde_json::to_string(&answer)?);
            }
            Event::Report(..) => {}
        }
        Ok(())
    }
}
