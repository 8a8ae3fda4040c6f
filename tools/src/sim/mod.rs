//! `tasuki sim`: simulates a collective on a network of any size, in virtual time.
//!
//! ```text
//! algorithm_choice   which algorithm to simulate       units          times, sizes and rates
//! network_costs      the options for costs             workload       what is simulated, in words
//! report             the table and the line of JSON    progress_bar   how far the simulation is
//! broadcast_figure/      a study's broadcasts beside its formulas
//! single_driver_figure   collectives driven by one rank beside those driven by all
//! incast/                many ranks that send to one
//! ```

mod algorithm_choice;
mod broadcast_figure;
mod incast;
mod network_costs;
mod progress_bar;
mod report;
mod single_driver_figure;
mod units;
mod workload;

use crate::arguments::proof::warn_of_unproven;
use crate::arguments::{CollectiveArgs, is_file, read, segments_to_simulate, text};
use algorithm_choice::{Choice, ChoiceWanted};
use anyhow::Context;
use network_costs::Costs;
use std::path::PathBuf;
use tasuki_command::Sink;
use tasuki_command::{is_standard_output, misuse, print};
use tasuki_core::bootstrap::did_you_mean::nearest;
use tasuki_core::os::available_memory;
use tasuki_schedule::goal;
use tasuki_schedule::network::{Network, Time, Topology, WrongTopology};
use tasuki_schedule::shape::Shape;
use tasuki_schedule::{HostModel, Simulation};
use workload::Workload;

const EXAMPLE: &str = "\
Examples:
  tasuki sim bcast --ranks 1000000 --bytes 8192 --topology torus
  tasuki sim bcast --ranks 48 --per-node 4 --bytes 1G --topology torus:2x2x3 --algorithm 'trinaryx3 two-phase'
  tasuki sim allgather --ranks 64 --bytes 1K --topology fat-tree:8 --json allgather.json
  tasuki sim gatherv --ranks 4 --counts 8K,0,1M,64
  tasuki sim neighbours --ranks 4096 --grid 64x64 --periodic --bytes 64K
  tasuki sim bcast --ranks 64 --bytes 1M --algorithm pipelined --starts 10 --compute 1ms --in-calls
  tasuki sim mine.json --topology fat-tree:4
  tasuki sim mine.goal --topology crossbar --overhead 200ns
  tasuki sim gather --ranks 33 --bytes 1M --topology crossbar --latency 1us --byte-time 12GB/s --engines 1
  tasuki sim bcast --ranks 100000 --bytes 8K --algorithm binary --driven-by 0
  tasuki sim incast --senders 100,1000,10000 --plot incast.svg

Topologies: crossbar, fat-tree:ARITY, torus (of three sides that differ little), torus:AxBx.., mesh:AxBx.., \
dragonfly:GROUPSxROUTERSxNODES. Ranks fill one node after the other.

The model is LogGP: a hop takes L; a transfer takes m G + g of an engine at the sender, and of one at the \
receiver; links are taken one transfer at a time. In GOAL text, calc N takes N ns of its rank's processor, and a send \
or recv takes o. No machine is measured. Without options, L = 100 ns, o = 0, g = 1 ns, G = 0.104762 ns; nodes have \
four engines, links carry 12.5 GB/s, to combine a byte takes 0.05 ns.

Exit code: 0; 1 if the schedule gets stuck; 2 for misuse.";

/// Simulate a collective on a network of any size: time, busiest link, memory of a rank.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    other: Option<OtherSimulation>,
    /// Collective: barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall,
    /// reduce_scatter, scan, exscan, neighbours, or, with blocks of different sizes, gatherv,
    /// scatterv, allgatherv, alltoallv. Or a file that `tasuki plan export` wrote: JSON, or GOAL
    /// text if its name ends in .goal
    #[arg(value_name = "COLLECTIVE|FILE", required_unless_present_any = ["figure", "figure_lists"])]
    collective: Option<String>,
    #[command(flatten)]
    asked: CollectiveArgs,
    /// Topology of the network
    #[arg(long, value_name = "T", default_value = "torus")]
    topology: String,
    /// Algorithm [default: the one that plans choose, or the usual one if that may have too many
    /// steps]
    #[arg(long, value_name = "A")]
    algorithm: Option<String>,
    /// Number of segments of a message [default: by size, 1 up to 32 KiB, 512 for 1 GiB]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=65536))]
    segments: Option<u64>,
    /// This rank drives the collective: it runs the steps of all ranks, in one list
    #[arg(long, value_name = "RANK")]
    driven_by: Option<usize>,
    /// Number of starts; each rank starts again when its previous start is over
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    starts: u32,
    /// Time that each rank computes between start and wait, as in 10us, 1ms
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    compute: Option<Time>,
    /// Largest additional computing time; each rank gets a random part of it in each start
    #[arg(long, value_name = "TIME", value_parser = units::time, requires = "compute")]
    varies: Option<Time>,
    /// Begin steps only while their rank is in a call, not while it computes
    #[arg(long, requires = "compute")]
    in_calls: bool,
    #[command(flatten)]
    costs: Costs,
    /// Write the results as JSON, one object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw bucket-relay and two-phase broadcasts beside the formulas of their study
    #[arg(long, value_name = "FILE.svg", exclusive = true)]
    figure: Option<PathBuf>,
    /// Draw collectives driven by one rank beside those driven by all, for 100 to 1,000,000 ranks;
    /// takes about a minute
    #[arg(long, value_name = "FILE.svg", exclusive = true)]
    figure_lists: Option<PathBuf>,
}

/// What is simulated that is no collective.
#[derive(clap::Subcommand)]
enum OtherSimulation {
    Incast(Box<incast::IncastArgs>),
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    if let Some(OtherSimulation::Incast(args)) = &args.other {
        return incast::command(args);
    }
    if let Some(path) = &args.figure {
        return draw(path, broadcast_figure::svg);
    }
    if let Some(path) = &args.figure_lists {
        return draw(path, || single_driver_figure::svg(single_driver_figure::RANKS_MAX));
    }
    let what = args.collective.as_deref().unwrap_or_default();
    let json = args.json.as_deref().map(Sink::open).transpose()?;
    if what.ends_with(".goal") {
        return goal_text(args, what, json);
    }
    let (workload, network, mut choice) = if is_file(what) { plan(args, what)? } else { chosen(args, what)? };
    if let Some(by) = args.driven_by {
        let last = workload.ranks - 1;
        if by > last {
            return Err(misuse(format!("--driven-by {by}: the last of {} ranks is {last}", workload.ranks)));
        }
        choice.schedule = choice.schedule.driven_by(by);
    }
    let host = HostModel {
        compute: args.compute.unwrap_or_default(),
        varies: args.varies.unwrap_or_default(),
        offloaded: !args.in_calls,
    };
    let mut bar = progress_bar::Bar::new();
    let simulation = Simulation::new(&choice.schedule, &network).starts(args.starts).host(host);
    let simulated = simulation.watch(|progress| bar.show(progress)).run();
    drop(bar);
    let simulated = simulated.with_context(|| format!("{} cannot be simulated", choice.name))?;
    let Choice { name, reason, segments, .. } = &choice;
    let (workload, network, segments) = (&workload, &network, *segments);
    write_report(&report::SimReport { workload, network, name, reason, segments, args, simulated }, json)
}

fn write_report(report: &report::SimReport<'_>, json: Option<Sink>) -> anyhow::Result<u8> {
    if report.simulated.time == Time::MAX {
        return Err(misuse(
            "it takes longer than 5 h of simulated time, beyond which `sim` does not count: give fewer starts or \
             bytes, or shorter times",
        ));
    }
    if let Some(sink) = json {
        sink.replace(&report.line()?)?;
    }
    if !report.args.json.as_deref().is_some_and(is_standard_output) {
        print(&report.table())?;
    }
    Ok(0)
}

/// Simulates the messages of a GOAL text.
fn goal_text(args: &Args, file: &str, json: Option<Sink>) -> anyhow::Result<u8> {
    let options = [
        (args.algorithm.is_some(), "--algorithm"),
        (args.segments.is_some(), "--segments"),
        (args.driven_by.is_some(), "--driven-by"),
        (args.starts != 1, "--starts"),
        (args.compute.is_some(), "--compute"),
    ];
    let others = options.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option);
    if let Some(option) = args.asked.given().filter(|option| *option != "--per-node").chain(others).next() {
        return Err(misuse(format!(
            "{option} is not for GOAL text, which lists the messages of one start: leave it out"
        )));
    }
    let goal = goal::parse(&text(file)?).map_err(|why| misuse(format!("{file}: {why}")))?;
    let workload = Workload::goal(&goal, file);
    let network = network(args, workload.ranks, args.asked.per_node())?;
    memory_for(goal.simulation_bytes())?;
    let simulated = goal.simulate(&network).with_context(|| format!("{file} cannot be simulated"))?;
    let (workload, network, reason) = (&workload, &network, "as the file says");
    write_report(
        &report::SimReport { workload, network, name: "goal", reason, segments: None, args, simulated },
        json,
    )
}

/// Refuses a simulation that needs more memory than is available.
fn memory_for(needed: u64) -> anyhow::Result<()> {
    let there = available_memory::available().bytes;
    if needed <= there {
        return Ok(());
    }
    let (needed, there) = (units::show(needed), units::show(there));
    Err(misuse(format!(
        "this would take about {needed} of memory, and {there} are available: give fewer ranks"
    )))
}

/// What is simulated, on which network, with which schedule.
type Question = (Workload, Network, Choice);

/// A plan from a file.
fn plan(args: &Args, file: &str) -> anyhow::Result<Question> {
    let others = [(args.algorithm.is_some(), "--algorithm"), (args.segments.is_some(), "--segments")];
    let others = others.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option);
    // A plan does not say how ranks are placed on nodes, so `--per-node` is allowed.
    let given = args.asked.given().filter(|option| *option != "--per-node").chain(others);
    let schedule = read(file, given)?;
    warn_of_unproven(file, &schedule);
    let workload = Workload::plan(&schedule, file);
    let network = network(args, workload.ranks, args.asked.per_node())?;
    memory_for(algorithm_choice::bytes_of_file(&schedule))?;
    let name = schedule.name().to_string();
    Ok((workload, network, Choice { schedule, name, reason: "as the file says".into(), segments: None }))
}

/// A collective, with the requested or a chosen algorithm.
fn chosen(args: &Args, what: &str) -> anyhow::Result<Question> {
    let mut shape = args.asked.shape("tasuki sim", what)?;
    let network = network(args, shape.ranks, shape.placement.per_node)?;
    shape.placement.torus = torus(&shape, &network);
    let wanted = ChoiceWanted {
        shape: &shape,
        network: &network,
        algorithm: args.algorithm.as_deref(),
        segments: args.segments.unwrap_or_else(|| segments_to_simulate(&shape)),
        memory: available_memory::available().bytes,
    };
    let choice = Choice::make(&wanted)?;
    Ok((Workload::collective(&shape), network, choice))
}

/// Draws a figure into a file.
fn draw(path: &std::path::Path, svg: impl Fn() -> anyhow::Result<String>) -> anyhow::Result<u8> {
    let sink = Sink::open(path)?;
    sink.replace(&svg()?)?;
    print(&format!("wrote {}\n", path.display()))?;
    Ok(0)
}

fn network(args: &Args, ranks: usize, per_node: usize) -> anyhow::Result<Network> {
    let topology = parsed_topology(&args.topology, ranks.div_ceil(per_node) as u64)?;
    Ok(Network { parameters: args.costs.parameters(), ..Network::new(topology, per_node as u64) })
}

/// The topology of that name for so many nodes.
fn parsed_topology(text: &str, nodes: u64) -> anyhow::Result<Topology> {
    Topology::parse(text, nodes).map_err(|wrong| {
        let nearest = match &wrong {
            WrongTopology::Kind(kind) => nearest(kind, Topology::KINDS),
            _ => None,
        };
        let hint = nearest.map(|right| format!("; did you mean {right}?")).unwrap_or_default();
        misuse(format!("--topology {text}: {wrong}{hint}"))
    })
}

/// The sides of a torus that has at most three and whose nodes are full; otherwise zeros.
fn torus(shape: &Shape, network: &Network) -> [usize; 3] {
    let mut torus = [1; 3];
    match &network.topology {
        Topology::Grid(grid)
            if grid.is_torus()
                && grid.sides().len() <= torus.len()
                && network.ranks() == shape.ranks as u64 =>
        {
            torus.iter_mut().zip(grid.sides()).for_each(|(side, &given)| *side = given as usize);
            torus
        }
        _ => [0; 3],
    }
}
