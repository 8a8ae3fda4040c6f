//! `tasuki bench`: how fast it is here, beside what the machine can do.
//!
//! ```text
//! case, sizes, run    what is asked for; run takes all of it
//! cases/              what is measured, through the crate `tasuki` only
//! harness/            how it is measured: processes, ranks that take turns, repetitions
//! peers/              other libraries, measured by programs of their own, a repetition at a time
//! limit/              what bare loops reach: these files may go below the library
//! result/             figures, comparisons, rows, tables
//! plot/               the figures as a picture
//! tuning/             which way is quicker here, for later jobs
//! machine, system_info    the machine that was measured
//! ```

mod case;
mod cases;
mod harness;
mod limit;
mod machine;
mod peers;
mod plot;
mod result;
mod run;
mod sizes;
mod system_info;
pub mod tuning;

pub use harness::process_role::{ProcessRoleArgs, SUBCOMMAND, play};

use case::Case;
use clap::ValueEnum;
use machine::Machine;
use peers::Peer;
use run::RunWanted;
use std::path::PathBuf;
use tasuki_command::Sink;
use tasuki_command::print;

const EXAMPLE: &str = "\
Examples:
  tasuki bench                                all cases, about ten minutes
  tasuki bench put_near put get atomic        latencies only
  tasuki bench bandwidth_put --sizes 64K,1M --plot bandwidth.svg
  tasuki bench message rate --against openmpi,ucx
  tasuki bench barrier --ranks 2,16 --against all --plot barrier.svg
  tasuki bench bcast persistent --ranks 4 --sizes 8,8K
  tasuki bench --tune                         how messages and collectives go best here
  tasuki bench limit --json limits.json       what bare loops reach on this machine

Cases for two ranks bind them to the first two processors. A figure is the median of at least five \
repetitions during which the machine stood still: the time to hand a word from one processor to the \
other, taken before and after each, differs by no more than 10 %. `ratio` is the figure divided by \
that of a bare loop which does the same in the same minute. Keep the machine quiet.

Other libraries (--against) play the same loops by small programs of ours, which `cargo xtask peers` \
installs. Each is tried bound and not, and in other settings of its own; the best setting then takes turns \
with Tasuki, a repetition each. One that is absent, fails, or is more than 1.5 times worse than it is known \
to be is said to be off: it makes no bar easier, the bars that it belongs to count as missed. All cases \
against all libraries take about an hour.

Exit code: 0, whether bars are met or missed; 1 if a case has no figure; 2 for misuse.";

/// Measure how fast it is here, beside what the machine can do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// What to measure [default: all]
    #[arg(value_enum, value_name = "CASE", hide_possible_values = true)]
    cases: Vec<Case>,
    /// Other libraries to compare with: mpich, openmpi, intel, ucx, or all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = against)]
    against: Vec<Against>,
    /// Numbers of ranks of collective cases and whole jobs [default: 2,4,8; startup 64, idle, death, memory 4]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ranks)]
    ranks: Vec<usize>,
    /// Sizes of the blocks of bandwidths, limit and collective cases, as in 64K,1M [default: 64K,256K,1M,4M,16M,64M;
    /// bandwidth_own from 4K, bandwidth_stream to 4M, shared_copy from 1M; collective cases 8,8K, some also 1M,8M]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = sizes::parse)]
    sizes: Vec<u64>,
    /// Write the figures to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw latencies, bandwidths and collective calls
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Measure which way long messages go best on this machine, and what things cost by which plans choose their
    /// algorithms, and write it where `tasuki run` finds it: the file that TASUKI_TUNE_FILE names, or
    /// $XDG_CONFIG_HOME/tasuki/tune.json
    #[arg(long, conflicts_with_all = ["cases", "against", "ranks", "sizes", "json", "plot", "list"])]
    tune: bool,
    /// List the cases
    #[arg(long)]
    list: bool,
}

/// What `--against` names: one library, or all.
#[derive(Clone, Debug)]
struct Against(Vec<Peer>);

fn against(text: &str) -> Result<Against, String> {
    if text == "all" {
        return Ok(Against(Peer::ALL.to_vec()));
    }
    let one = Peer::from_str(text, true);
    one.map(|peer| Against(vec![peer])).map_err(|_| "name mpich, openmpi, intel, ucx, or all".into())
}

fn ranks(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|ranks| (1..=4096).contains(ranks)).ok_or_else(|| "give 1 to 4096 ranks".into())
}

/// The subcommand; its exit code.
pub fn command(args: &Args) -> anyhow::Result<u8> {
    if args.list {
        let lines = Case::all().iter().map(|case| format!("{case:16} {}\n", case.text()));
        print(&lines.collect::<String>())?;
        return Ok(0);
    }
    if args.tune {
        return tuning::command::command(&Machine::this()?);
    }
    let wanted = RunWanted::new(args)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
    let (json, plot) = (open(&args.json)?, open(&args.plot)?);
    let machine = Machine::this()?;
    let taken = wanted.take(&machine)?;
    print(&result::table::show(&taken.rows, wanted.cases.contains(&Case::Limit), &taken.around))?;
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
