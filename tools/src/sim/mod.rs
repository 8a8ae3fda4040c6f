//! `tasuki sim`: what a collective takes on a network of any size, in virtual time.
//!
//! ```text
//! collective   which there are, by name                 size     numbers and times as they are typed and shown
//! choice       which algorithm, if nobody says          bar      how far it is
//! report       the table and the line of JSON           figure/  a study's broadcasts beside its formulas
//! ```

mod bar;
mod choice;
mod collective;
mod figure;
mod report;
mod size;

use crate::say::{misuse, print};
use anyhow::Context;
use choice::{Choice, Wanted};
use std::io::Write;
use std::path::PathBuf;
use tasuki_core::bootstrap::nearest::nearest;
use tasuki_core::netmodel::{Grid, Network, Time, Topology, WrongTopology};
use tasuki_models::collective::shape::{Operation, Placement, Shape};
use tasuki_models::schedule::{Host, Simulation};

const EXAMPLE: &str = "\
Examples:
  tasuki sim bcast --ranks 1000000 --bytes 8192 --topology torus
  tasuki sim bcast --ranks 48 --per-node 4 --bytes 1G --topology torus:2x2x3 --algorithm 'trinaryx3 two-phase'
  tasuki sim allgather --ranks 64 --bytes 1K --topology fat-tree:8 --json allgather.json
  tasuki sim bcast --ranks 64 --bytes 1M --algorithm pipelined --starts 10 --compute 1ms --in-calls

Topologies: crossbar, fat-tree:ARITY, torus (of three sides that differ little), torus:AxBx.., mesh:AxBx.., \
dragonfly:GROUPSxROUTERSxNODES. Ranks fill one node after the other.

The model is LogGP: a hop takes L = 100 ns, a byte G = 0.104762 ns of an engine, a command g = 1 ns besides; \
nodes have four engines, links carry 12.5 GB/s. No machine is measured.

Exit code: 0; 1 if the schedule gets stuck; 2 for misuse.";

/// Simulate a collective on a network of any size: time, busiest link, memory of a rank.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// What the ranks do together: barrier, bcast, allgather
    #[arg(value_name = "COLLECTIVE", required_unless_present = "figure")]
    collective: Option<String>,
    /// How many take part
    #[arg(short = 'n', long, value_name = "N", value_parser = size::ranks, required_unless_present = "figure")]
    ranks: Option<usize>,
    /// Bytes: the message of a bcast, the block of a rank otherwise, as in 8K, 1M
    #[arg(long, value_name = "B", default_value = "8", value_parser = size::bytes)]
    bytes: u64,
    /// How nodes are linked
    #[arg(long, value_name = "T", default_value = "torus")]
    topology: String,
    /// Which algorithm [default: the quickest of those that fit; among many ranks the usual one]
    #[arg(long, value_name = "A")]
    algorithm: Option<String>,
    /// Into how many pieces it cuts what it cuts [default: by size, 1 up to 32 KiB, 512 for 1 GiB]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=65536))]
    segments: Option<u64>,
    /// Ranks of a node
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=4096))]
    per_node: u32,
    /// The rank that gives
    #[arg(long, value_name = "R", default_value = "0")]
    root: usize,
    /// How often it is started, each rank again when its last start is over
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    starts: u32,
    /// How long each rank computes between starting and waiting, as in 10us, 1ms
    #[arg(long, value_name = "TIME", value_parser = size::time)]
    compute: Option<Time>,
    /// How much longer than that some compute: each a part of it, other ranks in each start
    #[arg(long, value_name = "TIME", value_parser = size::time, requires = "compute")]
    varies: Option<Time>,
    /// Steps begin only while their rank is in a call, not while it computes
    #[arg(long, requires = "compute")]
    in_calls: bool,
    /// Write the figures as JSON, one object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw broadcasts by bucket relay and in two phases beside the formulas of their study
    #[arg(long, value_name = "FILE.svg", exclusive = true)]
    figure: Option<PathBuf>,
}

/// The subcommand; its exit code.
pub(crate) fn command(args: &Args) -> anyhow::Result<u8> {
    if let Some(path) = &args.figure {
        return draw(path);
    }
    let operation = collective::find(args.collective.as_deref().unwrap_or_default())?;
    let ranks = args.ranks.unwrap_or(1);
    let network = network(args, ranks)?;
    if args.root >= ranks {
        return Err(misuse(format!("--root {}: there are ranks 0 to {}", args.root, ranks - 1)));
    }
    let shape = shape(args, ranks, operation, &network);
    let wanted = Wanted {
        shape: &shape,
        network: &network,
        algorithm: args.algorithm.as_deref(),
        segments: args.segments.unwrap_or_else(|| size::usual_segments(args.bytes)),
    };
    let mut json = args.json.as_deref().map(open).transpose()?;
    let choice = Choice::make(&wanted)?;
    let host = Host {
        compute: args.compute.unwrap_or_default(),
        varies: args.varies.unwrap_or_default(),
        offloaded: !args.in_calls,
    };
    let mut bar = bar::Bar::new();
    let simulation = Simulation::new(&choice.schedule, &network).starts(args.starts).host(host);
    let simulated = simulation.watch(|progress| bar.show(progress)).run();
    drop(bar);
    let simulated = simulated.with_context(|| format!("{} cannot be simulated", choice.name))?;
    let report = report::Report { shape: &shape, network: &network, choice: &choice, args, simulated };
    if let Some(file) = &mut json {
        report.write(file).context("the figures could not be written")?;
    }
    print(&report.table())?;
    Ok(0)
}

/// Draws the figure.
fn draw(path: &std::path::Path) -> anyhow::Result<u8> {
    let mut file = open(path)?;
    let svg = figure::svg()?;
    file.write_all(svg.as_bytes()).with_context(|| format!("{} could not be written", path.display()))?;
    print(&format!("wrote {}\n", path.display()))?;
    Ok(0)
}

/// Opens the file before anything is simulated: later would be too late to say that it cannot be written.
fn open(path: &std::path::Path) -> anyhow::Result<std::fs::File> {
    std::fs::File::create(path).with_context(|| format!("{} cannot be written", path.display()))
}

fn network(args: &Args, ranks: usize) -> anyhow::Result<Network> {
    let nodes = ranks.div_ceil(args.per_node as usize) as u64;
    let topology = Topology::parse(&args.topology, nodes).map_err(|wrong| {
        let nearest = match &wrong {
            WrongTopology::Kind(kind) => nearest(kind, Topology::KINDS),
            _ => None,
        };
        let hint = nearest.map(|right| format!("; did you mean {right}?")).unwrap_or_default();
        misuse(format!("--topology {}: {wrong}{hint}", args.topology))
    })?;
    Ok(Network::new(topology, args.per_node.into()))
}

fn shape(args: &Args, ranks: usize, operation: Operation, network: &Network) -> Shape {
    let torus = match &network.topology {
        Topology::Grid(grid) if network.ranks() == ranks as u64 => torus(grid).unwrap_or_default(),
        _ => [0; 3],
    };
    let placement = Placement { per_node: args.per_node as usize, torus };
    Shape { placement, ..Shape::new(operation, ranks, args.root, args.bytes) }
}

/// The three sides of a torus that has no more.
fn torus(grid: &Grid) -> Option<[usize; 3]> {
    let mut sides = [1; 3];
    let fits = grid.is_torus() && grid.sides().len() <= sides.len();
    sides.iter_mut().zip(grid.sides()).for_each(|(side, &given)| *side = given as usize);
    fits.then_some(sides)
}
