//! The harness that measures all cases. The ranks of a job and, if the user asked for them, other libraries take turns
//! and make one repetition each. The first two ranks measure the hand-over before and after each repetition. When a
//! group is complete, its rows are compared, printed and written.

use super::process_role::ProcessRole;
use super::program::Program;
use super::progress::Progress;
use super::rank_server::{Group, Plan, Reply};
use super::repetition::{Level, Repetition, Series, Summary};
use super::schedule_of_run::{Stage, Wanted, stages};
use crate::case::{Case, Limit, Played, spread};
use crate::cases::{State, blacs, memory, whole_jobs};
use crate::limit::{Copies, SharedFile};
use crate::machine::{Machine, Others};
use crate::peers::{Opponents, too_bad, version};
use crate::result::comparison::{Field, compare, keep_best};
use crate::result::key::Key;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::result::table;
use crate::result::target::{Bar, With};
use crate::tuning::file::VARIABLE;
use anyhow::{Context, bail, ensure};
use std::time::{Duration, Instant};
use tasuki_command::{Sink, print};

/// How long `idle` observes a job, in a usual run and in a long one.
const IDLE: Duration = Duration::from_secs(1);
const LONG_IDLE: Duration = Duration::from_secs(10);
/// If the hand-over varied by more than this factor, the output says so.
const SPREAD: f64 = 1.25;

/// What produces a figure.
enum Player {
    /// A figure of the measuring job, by its index.
    Ours(usize),
    /// The program of another library, by its index among the opponents.
    Opponent(usize),
    /// The bench itself.
    Bench(whole_jobs::RepeatJob),
}

/// A figure that is measured in turn with others.
struct Entry {
    key: Key,
    ranks: usize,
    player: Player,
    series: Series,
    has_failed: bool,
}

/// The repetitions of the figures of a group, made by one job or by several.
type Taken = Vec<(Key, usize, Series)>;

/// A run of the bench.
pub(crate) struct Run<'m> {
    wanted: Wanted,
    machine: &'m Machine,
    opponents: Opponents,
    progress: Progress,
    /// Where rows are written; `None` if only their values are wanted.
    json: Option<Sink>,
    is_printed: bool,
    /// The variant of the hand-over, once it is known: its index and its description for users.
    way: Option<(usize, String)>,
    has_head: bool,
    pub(crate) rows: Vec<Row>,
    /// Cases without a figure, and the reason.
    pub(crate) failures: Vec<(&'static Case, String)>,
}

impl<'m> Run<'m> {
    pub(crate) fn new(
        wanted: Wanted,
        machine: &'m Machine,
        json: Option<Sink>,
        is_printed: bool,
    ) -> anyhow::Result<Run<'m>> {
        let seconds =
            stages(&wanted).iter().flat_map(|stage| &stage.groups).map(|group| wanted.seconds(group)).sum();
        let processors: Vec<usize> = machine.processors.iter().copied().take(2).collect();
        Ok(Run {
            opponents: Opponents::new(wanted.clone(), processors)?,
            progress: Progress::new(seconds),
            wanted,
            machine,
            json,
            is_printed,
            way: None,
            has_head: false,
            rows: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// Measures all cases that the user asked for.
    pub(crate) fn take(&mut self, tuning: &str) -> anyhow::Result<()> {
        let others = Others::watch();
        if let Some(json) = &mut self.json {
            json.append("")?; // clears the output of an earlier run
        }
        let peers = self.wanted.peers.iter().filter_map(|&peer| version(peer, self.opponents.home()).ok());
        let peers: String = peers.map(|peer| format!("beside {peer}\n")).collect();
        self.say(&format!("{}\nlong messages by {tuning}\n{peers}", self.machine))?;
        for stage in stages(&self.wanted) {
            if let Err(error) = self.stage(&stage) {
                if error.is::<Unwritten>() {
                    return Err(error);
                }
                let has_row = |case: &Case| {
                    self.rows.iter().any(|row| row.case == case && row.ranks == stage.ranks_of_jobs)
                };
                let cases = stage.groups.iter().flat_map(|group| &group.cases);
                let mut missing: Vec<&'static Case> = cases.copied().filter(|case| !has_row(case)).collect();
                missing.dedup();
                let names: Vec<&str> = missing.iter().map(|case| case.name).collect();
                self.say(&format!("{}: no figure: {error:#}\n", names.join(", ")))?;
                self.failures.extend(missing.into_iter().map(|case| (case, format!("{error:#}"))));
            }
        }
        let mut remarks = String::new();
        if self.rows.iter().any(|row| !row.steady) {
            remarks += "\nunsteady: in fewer than five repetitions the hand-over was the same (within 10 %) before and\n\
                        after, and that of the figures compared with. The figure is of all repetitions and compared\n\
                        with nothing. Run it on a quiet machine.\n";
        }
        for off in self.opponents.off() {
            let case = off.case.map(|(case, _)| format!(" in {}", case.name)).unwrap_or_default();
            remarks += &format!("\npeer off: {}{case}: {}\n", off.library, off.why);
        }
        remarks.extend(others.remark().map(|remark| format!("\n{remark}\n")));
        self.say(&remarks)
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        if !self.is_printed || text.is_empty() {
            return Ok(());
        }
        self.progress.clear();
        print(text).map_err(|error| error.context(Unwritten))
    }

    fn stage(&mut self, stage: &Stage) -> anyhow::Result<()> {
        let mut all: Vec<(Taken, Series)> =
            stage.groups.iter().map(|_| (Taken::new(), Series::default())).collect();
        if stage.groups[0].cases[0].played == Played::Memory {
            self.progress.begin(
                format!("memory of {} ranks", stage.ranks_of_jobs),
                self.wanted.seconds(&stage.groups[0]),
            );
            return self.memory(&stage.groups[0], stage.ranks_of_jobs);
        }
        let processors = &self.machine.processors;
        ensure!(
            processors.len() >= 2,
            "two processors are needed, this process may use {}",
            processors.len()
        );
        for number in 0..stage.jobs {
            let area = stage.groups.iter().filter(|group| group.state.is_some());
            let area = area.map(|group| self.wanted.effort().area(group.bytes)).max().unwrap_or(0);
            let file = SharedFile::create(Copies::bytes(area)).context("memory for the limits")?;
            let plan = Plan {
                groups: stage.groups.clone(),
                effort: self.wanted.effort(),
                limits_file: Some(file.path()),
                limits_first: number % 2 == 0,
                way: self.way.as_ref().map(|(way, _)| *way),
            };
            let bound = spread(&self.machine.processors[..2], stage.ranks);
            let mut command = ProcessRole::Measure(plan).job(stage.ranks, &bound)?;
            command.envs(self.wanted.tuning.iter().map(|file| (VARIABLE, file)));
            let what = format!("the job of {} ranks", stage.ranks);
            let (mut job, ready) = Program::start(command, what)?;
            let Reply::Ready { ready, way } = ready else { bail!(job.failed("is not ready")) };
            self.way.get_or_insert((ready, way));
            for (group_number, group) in stage.groups.iter().enumerate() {
                let (taken, hand_overs) = self.group(&mut job, group_number, group, stage)?;
                let (of_group, all_hand_overs) = &mut all[group_number];
                all_hand_overs.append(hand_overs);
                for (key, ranks, series) in taken {
                    match of_group.iter_mut().find(|(known, ..)| *known == key) {
                        Some((.., known)) => known.append(series),
                        None => of_group.push((key, ranks, series)),
                    }
                }
                if number + 1 == stage.jobs {
                    let (taken, hand_overs) = std::mem::take(&mut all[group_number]);
                    self.finish(taken, hand_overs, stage)?;
                }
            }
            job.end()?;
        }
        Ok(())
    }

    /// Measures all figures of a group with one job.
    fn group(
        &mut self,
        job: &mut Program,
        number: usize,
        group: &Group,
        stage: &Stage,
    ) -> anyhow::Result<(Taken, Series)> {
        let names: Vec<&str> = group.cases.iter().map(|case| case.name).collect();
        let state = group
            .state
            .map(|state| format!(" {} {state}", crate::sizes::show(group.bytes)))
            .unwrap_or_default();
        let what = format!("{}{state}, {} ranks", names.join(" "), stage.ranks_of_jobs);
        self.progress.begin(what, self.wanted.seconds(group) / stage.jobs as f64);
        let Reply::Figures { figures } = job.ask(&format!("group {number}"))? else {
            bail!(job.failed("has no figures"))
        };
        let entry =
            |key, ranks, player| Entry { key, ranks, player, series: Series::default(), has_failed: false };
        let ours = |(number, key): (usize, Key)| entry(key, stage.ranks, Player::Ours(number));
        let mut entries: Vec<Entry> = figures.into_iter().enumerate().map(ours).collect();
        let points: Vec<Key> = entries.iter().map(|entry| entry.key.clone()).collect();
        let invited = self.opponents.invite(group, &points, stage.ranks_of_jobs, &self.progress)?;
        entries.extend(
            invited.into_iter().map(|(number, key, ranks)| entry(key, ranks, Player::Opponent(number))),
        );
        for &case in group.cases.iter().filter(|case| case.played == Played::Jobs && case.job.is_none()) {
            if case.name == "blacs" {
                let (ranks, sizes) = (stage.ranks_of_jobs, |operation| self.wanted.sizes_of(operation));
                let figures = blacs::figures(case, ranks, &sizes, &self.wanted.peers, self.opponents.home())?;
                entries.extend(
                    figures.into_iter().map(|(key, repeat)| entry(key, ranks, Player::Bench(repeat))),
                );
                continue;
            }
            let watched = if self.wanted.is_long { LONG_IDLE } else { IDLE };
            for (variant, repeat) in whole_jobs::figures(case.name, stage.ranks_of_jobs, watched) {
                entries.push(entry(Key::ours(case, variant, 0), stage.ranks_of_jobs, Player::Bench(repeat)));
            }
        }
        let hand_overs = self.take_turns(job, &mut entries, group, stage)?;
        Ok((entries.into_iter().map(|entry| (entry.key, entry.ranks, entry.series)).collect(), hand_overs))
    }

    /// Repeats all figures in turn until enough repetitions count. Returns the hand-overs before and after them.
    fn take_turns(
        &mut self,
        job: &mut Program,
        entries: &mut [Entry],
        group: &Group,
        stage: &Stage,
    ) -> anyhow::Result<Series> {
        let (patience, start) = (self.wanted.patience(group, stage.jobs), Instant::now());
        let mut hand_overs = Series::default();
        loop {
            let series = || entries.iter().filter(|entry| !entry.has_failed).map(|entry| &entry.series);
            if !patience.lasts(series(), start.elapsed()) {
                return Ok(hand_overs);
            }
            let least = series().map(Series::counted).min().unwrap_or(0) as f64;
            self.progress.share(least / patience.wanted as f64);
            let mut before = hand_over(job)?;
            for entry in entries.iter_mut().filter(|entry| !entry.has_failed) {
                let (figure, after) = match &mut entry.player {
                    Player::Ours(number) => match job.ask(&format!("go {number}"))? {
                        Reply::Repetition { value, after: Some(after) } => (value, after),
                        _ => bail!(job.failed("gave no figure")),
                    },
                    Player::Opponent(number) => match self.opponents.repeat(*number, &entry.key) {
                        Some(figure) => (figure, hand_over(job)?),
                        None => {
                            entry.has_failed = true;
                            continue;
                        }
                    },
                    Player::Bench(repeat) => (repeat(entry.series.all().len())?, hand_over(job)?),
                };
                entry.series.push(Repetition { figure, before, after });
                hand_overs.push(Repetition { figure: (before + after) / 2.0, before, after });
                before = after;
                self.progress.share(least / patience.wanted as f64);
            }
            let level = Level::prevailing(hand_overs.all());
            entries.iter_mut().for_each(|entry| entry.series.only_at(level));
        }
    }

    /// Makes the rows of a group, and compares, prints and writes them.
    fn finish(&mut self, taken: Taken, mut hand_overs: Series, stage: &Stage) -> anyhow::Result<()> {
        let level = Level::prevailing(hand_overs.all());
        hand_overs.only_at(level);
        let mut rows = Vec::new();
        let clock = Key::limit(Limit::HandOver, State::default(), 8);
        rows.extend(hand_overs.summary().map(|summary| Row::new(clock, 2, summary)));
        for (mut key, ranks, mut series) in taken {
            series.only_at(level);
            key.setting = self.setting(&key, ranks, stage);
            rows.extend(series.summary().map(|summary| Row::new(key, ranks, summary)));
        }
        keep_best(&mut rows);
        self.opponents.note(too_bad(&rows));
        let (asked, off) = (self.wanted.peers.clone(), self.opponents.off().to_vec());
        compare(&mut rows, &Field { asked, off });
        rows.sort_by_key(|row| (row.case.place(), row.variant.clone(), row.bytes));
        self.emit(rows)
    }

    /// Returns how the ranks of a figure were started, and which calls the figure measures.
    fn setting(&self, key: &Key, ranks: usize, stage: &Stage) -> String {
        let options = match key.case.job {
            _ if key.library != Library::Tasuki => return key.setting.clone(),
            Some(options) => options(&self.machine.processors[..2], ranks).join(" "),
            None if key.case.played == Played::Jobs => return "default".into(),
            None => spread(&self.machine.processors[..2], stage.ranks).join(" "),
        };
        if key.setting.is_empty() { options } else { format!("{options}; {}", key.setting) }
    }

    fn memory(&mut self, group: &Group, ranks: usize) -> anyhow::Result<()> {
        let row = |figure: memory::MemoryFigure| {
            let summary = Summary::of(figure.bytes, true).context("no rank")?;
            let key = Key { setting: figure.setting, ..Key::ours(group.cases[0], &figure.variant, 0) };
            let mut row = Row::new(key, ranks, summary);
            row.bars = figure.demands.into_iter().map(|demand| Bar { with: With::Itself, demand }).collect();
            Ok(row)
        };
        let mut rows = memory::figures(ranks)?.into_iter().map(row).collect::<anyhow::Result<Vec<Row>>>()?;
        compare(&mut rows, &Field::default());
        self.emit(rows)
    }

    /// Prints and writes rows. The hand-over is printed as a row only once; later it is mentioned only if it varied.
    fn emit(&mut self, rows: Vec<Row>) -> anyhow::Result<()> {
        let is_clock = |row: &Row| row.variant == "hand_over";
        let had_clock = self.rows.iter().any(is_clock);
        if let Some(clock) = rows.iter().find(|row| is_clock(row)) {
            let way = self.way.as_ref().map_or("", |(_, way)| way);
            let said =
                format!("hand-over {} ({}; {way})", clock.metric.show(clock.median), table::range(clock));
            if !had_clock {
                self.say(&format!("{said}\n"))?;
            } else if clock.max > SPREAD * clock.min {
                self.say(&format!("The machine is not quiet: {said}\n"))?;
            }
        }
        let rows: Vec<Row> = rows.into_iter().filter(|row| !had_clock || !is_clock(row)).collect();
        if !self.has_head {
            self.has_head = true;
            self.say(&format!("\n{}", table::head()))?;
        }
        let limits_too = self.wanted.cases.iter().any(|case| case.name == "limit");
        self.say(&table::lines(&rows, limits_too))?;
        for row in &rows {
            if let Some(json) = &mut self.json {
                json.append(&(serde_json::to_string(row)? + "\n"))
                    .map_err(|error| error.context(Unwritten))?;
            }
        }
        self.rows.extend(rows);
        Ok(())
    }
}

fn hand_over(job: &mut Program) -> anyhow::Result<f64> {
    match job.ask("hand")? {
        Reply::HandOver { hand_over } => Ok(hand_over),
        _ => bail!(job.failed("measured no hand-over")),
    }
}

/// The error that ends the run if the output could not be written.
#[derive(Debug)]
struct Unwritten;

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("writing what was measured")
    }
}
