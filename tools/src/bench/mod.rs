//! `tasuki bench`: how fast it is here, beside what the machine can do.
//!
//! ```text
//! case, plan, sizes      what is asked for                  bar            what it should be
//! two, whole             take the figures of two ranks, and of whole jobs
//! part                   what the processes are that they start: this program with a hidden subcommand
//! pair, turns, measure   two ranks take figures in turn     repetition     which of them count
//! latency, remote, bandwidth, startup, waiting, idle, death, memory        the cases
//! peers/                 other libraries, measured by programs of their own, a repetition at a time
//! limit/                 what bare loops reach: the only files that may go below the library
//! figure, group, row     what was measured                  table, plot/, sink    what is shown and written
//! ```

mod bandwidth;
mod bar;
mod case;
mod chain;
mod clock;
mod death;
mod figure;
mod group;
mod idle;
mod latency;
mod limit;
mod machine;
mod measure;
mod memory;
mod pair;
mod part;
#[cfg_attr(not(test), expect(dead_code, reason = "nothing asks for a comparison yet"))]
mod peers;
mod plan;
mod plot;
mod processes;
mod progress;
mod remote;
mod repetition;
mod row;
mod sink;
mod sizes;
mod startup;
mod state;
mod table;
mod turns;
mod two;
mod waiting;
mod whole;

pub(crate) use part::{PartArgs, SUBCOMMAND, play};

use crate::say::{misuse, print};
use case::Case;
use machine::{Machine, Others};
use plan::Effort;
use progress::Progress;
use row::Row;
use sink::Sink;
use std::path::PathBuf;
use table::Circumstances;
use whole::Whole;

const EXAMPLE: &str = "\
Examples:
  tasuki bench                                all cases, about three minutes
  tasuki bench put_near put get atomic        latencies only
  tasuki bench bandwidth_put --sizes 64K,1M --plot bandwidth.svg
  tasuki bench limit --json limits.json       what bare loops reach on this machine

Cases for two ranks bind them to the first two processors. A figure is the median of at least five \
repetitions during which the machine stood still: the time to hand a word from one processor to the \
other, taken before and after each, differs by no more than 10 %. `x limit` is the figure divided by \
that of a bare loop which does the same in the same minute. Keep the machine quiet.

Exit code: 0, whether bars are met or missed; 1 if a case has no figure; 2 for misuse.";

/// Measure how fast it is here, beside what the machine can do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// What to measure [default: all]
    #[arg(value_enum, value_name = "CASE", hide_possible_values = true)]
    cases: Vec<Case>,
    /// Ranks of the cases startup, idle, death, memory [default: 64, 4, 4, 4]
    #[arg(long, value_name = "N", value_parser = ranks)]
    ranks: Option<usize>,
    /// Sizes of the blocks of bandwidth_put and limit, as in 64K,1M [default: 64K,256K,1M,4M,16M,64M]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = sizes::parse)]
    sizes: Vec<u64>,
    /// Write the figures to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw latencies and bandwidths
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// List the cases
    #[arg(long)]
    list: bool,
}

fn ranks(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|ranks| (1..=4096).contains(ranks)).ok_or_else(|| "give 1 to 4096 ranks".into())
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    if args.list {
        let lines = Case::all().iter().map(|case| format!("{case:14} {}\n", case.text()));
        print(&lines.collect::<String>())?;
        return Ok(0);
    }
    let wanted = Wanted::new(args)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
    let (json, plot) = (open(&args.json)?, open(&args.plot)?);
    let machine = Machine::this()?;
    let taken = wanted.take(&machine);
    print(&table::show(&taken.rows, wanted.cases.contains(&Case::Limit), &taken.around))?;
    if let Some(json) = json {
        let lines: Result<Vec<String>, _> = taken.rows.iter().map(serde_json::to_string).collect();
        json.replace(&lines?.into_iter().map(|line| line + "\n").collect::<String>())?;
    }
    if let Some(plot) = plot {
        match plot::draw(&taken.rows, &taken.around.machine)? {
            Some(picture) => plot.replace(&picture)?,
            None => return Err(anyhow::anyhow!("there is no figure to draw")),
        }
    }
    Ok(u8::from(!taken.around.failures.is_empty()))
}

/// What is asked for, checked.
struct Wanted {
    cases: Vec<Case>,
    ranks: Option<usize>,
    sizes: Vec<u64>,
}

/// What came of it.
struct Taken {
    rows: Vec<Row>,
    around: Circumstances,
}

impl Wanted {
    fn new(args: &Args) -> anyhow::Result<Wanted> {
        let mut cases = if args.cases.is_empty() { Case::all().to_vec() } else { args.cases.clone() };
        cases.sort_unstable();
        cases.dedup();
        let mut sizes = if args.sizes.is_empty() { sizes::DEFAULT.to_vec() } else { args.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        if args.ranks.is_some() && cases.iter().all(|case| case.is_for_two()) {
            return Err(misuse("--ranks has a meaning for startup, idle, death and memory only"));
        }
        if !args.sizes.is_empty() && !cases.iter().any(|case| case.has_sizes()) {
            return Err(misuse("--sizes has a meaning for bandwidth_put and limit only"));
        }
        let is_drawn = |case: &Case| case.is_for_two() && *case != Case::Limit;
        let is_svg = |plot: &PathBuf| plot.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("svg"));
        if let Some(plot) = args.plot.as_ref().filter(|plot| !is_svg(plot)) {
            return Err(misuse(format!("--plot {}: plots are SVG, name the file so", plot.display())));
        }
        if args.plot.is_some() && !cases.iter().any(is_drawn) {
            return Err(misuse("--plot draws put_near, put, get, atomic and bandwidth_put only"));
        }
        Ok(Wanted { cases, ranks: args.ranks, sizes })
    }

    /// Roughly how many seconds a case takes, for the progress bar.
    fn seconds(&self, case: Case) -> f64 {
        match case {
            Case::BandwidthPut | Case::Limit => 4.0 * self.sizes.len() as f64,
            Case::PutNear | Case::Put | Case::Get | Case::Atomic | Case::Memory => 1.0,
            Case::Startup | Case::Death => 5.0,
            Case::Idle => 60.0,
        }
    }

    fn take(&self, machine: &Machine) -> Taken {
        let (for_two, whole): (Vec<Case>, Vec<Case>) = self.cases.iter().partition(|case| case.is_for_two());
        let others = Others::watch();
        let mut progress = Progress::new(self.cases.iter().map(|&case| self.seconds(case)).sum());
        let around = Circumstances {
            machine: machine.to_string(),
            hand_over_way: None,
            failures: Vec::new(),
            remarks: Vec::new(),
        };
        let mut taken = Taken { rows: Vec::new(), around };
        if !for_two.is_empty() {
            progress.begin("two ranks", for_two.iter().map(|&case| self.seconds(case)).sum());
            match two::take(&for_two, &self.sizes, Effort::FULL, &machine.processors, &mut progress) {
                Ok(told) => {
                    taken.rows.extend(told.rows);
                    taken.around.hand_over_way = told.hand_over_way;
                }
                Err(error) => {
                    let why = format!("{error:#}");
                    taken.around.failures.extend(for_two.iter().map(|&case| (case, why.clone())));
                }
            }
        }
        let mut jobs = Whole::new(&machine.processors, Effort::FULL.hand_over);
        for case in whole {
            progress.begin(&case.to_string(), self.seconds(case));
            let ranks = self.ranks.or(case.ranks()).unwrap_or(2);
            match jobs.take(case, ranks, &mut progress) {
                Ok(rows) => taken.rows.extend(rows),
                Err(error) => taken.around.failures.push((case, format!("{error:#}"))),
            }
        }
        taken.rows.sort_by_key(Row::key);
        row::relate(&mut taken.rows);
        taken.around.remarks.extend(others.remark());
        taken
    }
}
