//! `tasuki bench`: measures how fast Tasuki is on this machine, and compares that with the limits of the machine.
//!
//! ```text
//! case        the table of cases
//! cases/      what one repetition of each case does; uses the crate `tasuki` only
//! harness/    how all cases are measured
//! limit/      what loops without any library reach: these files may use interfaces below the library
//! peers/      other libraries, measured by separate programs in turn with Tasuki
//! result/     figures, comparisons, rows, the table for users
//! plot/       the figures as a picture
//! tuning/     which variants are faster on this machine, for later jobs
//! machine, sizes
//! ```

mod case;
mod cases;
mod harness;
mod limit;
mod machine;
mod peers;
mod plot;
mod result;
mod sizes;
pub mod tuning;

pub use harness::process_role::SUBCOMMAND;
pub use harness::role_player::{ProcessRoleArgs, play};

use case::{CASES, Case, Played, named};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use harness::run::Run;
use harness::schedule_of_run::Wanted;
use machine::Machine;
use result::library::Library;
use std::path::PathBuf;
use tasuki_command::{Sink, misuse, print, warn};
use tuning::file::Tuning;

const EXAMPLE: &str = "\
Examples:
  tasuki bench                                all cases, in about two minutes
  tasuki bench put_near put get atomic        latencies only
  tasuki bench bandwidth_put --sizes 64K,1M --plot bandwidth.svg
  tasuki bench message rate --against openmpi,ucx
  tasuki bench barrier --ranks 2,16 --against all --plot barrier.svg
  tasuki bench --long --json all.json         more sizes and ranks: about fifteen minutes
  tasuki bench --tune                         how messages and collectives go best here
  tasuki bench limit --json limits.json       what bare loops reach on this machine

Each figure is printed and written as soon as it is measured: a run that is interrupted keeps what it had.

Cases for two ranks bind them to the first two processors. A figure is the median of at least five \
repetitions during which the machine stood still: the time to hand a word from one processor to the \
other, taken before and after each, differs by no more than 10 %. `ratio` is the figure divided by \
that of a bare loop which does the same in the same minute. Keep the machine quiet.

Other libraries (--against) play the same loops by small programs of ours, which `cargo xtask peers` \
installs. Each is tried bound and not, and in other settings of its own; the best setting then takes turns \
with Tasuki, a repetition each. One that is absent, fails, or is more than 1.5 times worse than it is known \
to be is said to be off: it makes no bar easier, the bars that it belongs to count as missed. All cases \
against all libraries take about half an hour, with --long more than one.

Exit code: 0, whether bars are met or missed; 1 if a case has no figure; 2 for misuse.";

/// Measure how fast it is here, beside what the machine can do.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// What to measure [default: all]
    #[arg(value_name = "CASE", hide_possible_values = true, value_parser = case())]
    cases: Vec<&'static Case>,
    /// Other libraries to compare with: mpich, openmpi, intel, ucx, or all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = against)]
    against: Vec<Against>,
    /// Numbers of ranks of collective cases and whole jobs [default: 2,4; startup 64, idle, death 4, footprint 4,64]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ranks)]
    ranks: Vec<usize>,
    /// Sizes of the blocks of bandwidths, limit and collective cases [default: 64K,1M,16M; bandwidth_own from 4K,
    /// bandwidth_stream to 1M, shared_copy from 1M; collective cases 8,8K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = sizes::parse)]
    sizes: Vec<u64>,
    /// Take more sizes (64K,256K,1M,4M,16M,64M; collective cases also 1M,8M) and ranks (2,4,8; footprint 1024), and longer
    /// repetitions
    #[arg(long)]
    long: bool,
    /// Write the figures to this file, one JSON object a line, each as soon as it is measured
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw latencies, bandwidths and collective calls
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Measure which way long messages go best on this machine, and what things cost by which plans choose their
    /// algorithms, and write it where `tasuki run` finds it: the file that TASUKI_TUNE_FILE names, or
    /// $XDG_CONFIG_HOME/tasuki/tune.json
    #[arg(long, conflicts_with_all = ["cases", "against", "ranks", "sizes", "long", "json", "plot", "list"])]
    tune: bool,
    /// List the cases
    #[arg(long)]
    list: bool,
}

/// The value of `--against`: one library, or all.
#[derive(Clone, Debug)]
struct Against(Vec<Library>);

fn case() -> impl TypedValueParser<Value = &'static Case> {
    PossibleValuesParser::new(CASES.iter().map(|case| case.name)).map(|name| named(&name))
}

fn against(text: &str) -> Result<Against, String> {
    if text == "all" {
        return Ok(Against(Library::PEERS.to_vec()));
    }
    let one = Library::from_str(text, true);
    one.map(|peer| Against(vec![peer])).map_err(|_| "name mpich, openmpi, intel, ucx, or all".into())
}

fn ranks(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|ranks| (1..=4096).contains(ranks)).ok_or_else(|| "give 1 to 4096 ranks".into())
}

/// Runs the subcommand and returns its exit code.
pub fn command(args: &Args) -> anyhow::Result<u8> {
    if args.list {
        let lines = CASES.iter().map(|case| format!("{:16} {}\n", case.name, case.text));
        return print(&lines.collect::<String>()).map(|()| 0);
    }
    let machine = Machine::this()?;
    if args.tune {
        return tuning::command::command(&machine);
    }
    let wanted = wanted(args);
    check(args, &wanted)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
    let (json, plot) = (open(&args.json)?, open(&args.plot)?);
    let tuning = Tuning::here()?;
    tuning.remark().iter().for_each(|remark| warn(remark));
    let mut run = Run::new(wanted, &machine, json, true)?;
    run.take(&tuning.to_string())?;
    if let Some(plot) = plot {
        match plot::draw(&run.rows, &machine.to_string())? {
            Some(picture) => plot.replace(&picture)?,
            None => return Err(anyhow::anyhow!("there is no figure to draw")),
        }
    }
    Ok(u8::from(!run.failures.is_empty()))
}

/// Returns what the user asked for, in order and without duplicates.
fn wanted(args: &Args) -> Wanted {
    let asked = |library: &Library| args.against.iter().any(|against| against.0.contains(library));
    let (mut ranks, mut sizes) = (args.ranks.clone(), args.sizes.clone());
    ranks.sort_unstable();
    ranks.dedup();
    sizes.sort_unstable();
    sizes.dedup();
    Wanted {
        cases: CASES.iter().filter(|case| args.cases.is_empty() || args.cases.contains(case)).collect(),
        ranks,
        sizes,
        peers: Library::PEERS.into_iter().filter(asked).collect(),
        is_long: args.long,
        tuning: None,
    }
}

fn check(args: &Args, wanted: &Wanted) -> anyhow::Result<()> {
    let any = |has: &dyn Fn(&Case) -> bool| wanted.cases.iter().any(|case| has(case));
    let is_svg = |plot: &PathBuf| plot.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("svg"));
    let plot = args.plot.as_ref();
    let refused = if !wanted.ranks.is_empty() && !any(&Case::has_ranks) {
        "--ranks has a meaning for collective cases, startup, idle, death and memory only".into()
    } else if wanted.ranks.contains(&1) && any(&|case| case.played == Played::Collective) {
        "--ranks 1: collective cases need two ranks, of which each has a processor".into()
    } else if !wanted.sizes.is_empty() && !any(&Case::has_sizes) {
        "--sizes has a meaning for bandwidths, limit and collective cases only".into()
    } else if !wanted.peers.is_empty() && !any(&Case::is_shown_beside) {
        "--against has a meaning for messages, their bandwidths, handlers, commands, blacs and collective cases only"
            .into()
    } else if let Some(plot) = plot.filter(|plot| !is_svg(plot)) {
        format!("--plot {}: plots are SVG, name the file so", plot.display())
    } else if plot.is_some() && !any(&|case| plot::draws(case.played)) {
        "--plot draws latencies, bandwidths and collective cases only".into()
    } else {
        return Ok(());
    };
    Err(misuse(refused))
}
