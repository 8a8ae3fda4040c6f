//! A collective of the program's own: a broadcast along two trees, each of which carries half of the bytes. The
//! program proves it, draws it, simulates it on a torus of 100,000 ranks, and runs it. docs/guide/schedules.md explains
//! it.

use clap::Parser;
use std::error::Error;
use std::path::PathBuf;
use tasuki::prelude::*;
use tasuki::schedule::{BYTES_MAX, Builder, CollectiveKind, Network, Shape, Topology, View, picture};

/// Prove, draw, simulate and run a broadcast that is written in twelve lines.
#[derive(Parser)]
#[command(name = "schedule", after_help = "Example: tasuki run -n 4 schedule --bytes 64000")]
struct Options {
    /// Bytes of the broadcast
    #[arg(long, default_value_t = 8192, value_parser = clap::value_parser!(u64).range(..=BYTES_MAX))]
    bytes: u64,
    /// Ranks of the simulation, which takes about 4 KB for each
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..=SIMULATED_MAX))]
    simulated: u64,
    /// Where rank 0 writes the picture
    #[arg(long, default_value = "schedule.svg")]
    output: PathBuf,
}

/// The largest number of simulated ranks.
const SIMULATED_MAX: u64 = 1_000_000;
/// The number of ranks in the picture.
const DRAWN: usize = 8;
/// The number of starts of the plan.
const STARTS: u8 = 3;

fn two_trees(b: &mut Builder) {
    let (data, half) = (b.buffer("data", b.bytes()), b.bytes() / 2);
    let mut ranks = b.ranks(); // the root comes first
    for bytes in [0..half, half..b.bytes()] {
        let mut arrived = vec![None]; // the root has its bytes already
        for child in 1..ranks.len() {
            let parent = (child - 1) / 2;
            let [from, to] = [parent, child].map(|place| data.on(ranks[place]).part(bytes.clone()));
            arrived.push(Some(b.copy(from, to).after(arrived[parent]).id()));
        }
        ranks[1..].reverse(); // in the second tree the leaves of the first stand in front
    }
}

fn app(job: &Job, options: &Options) -> tasuki::Result<()> {
    let shape = |ranks| Shape::new(CollectiveKind::Bcast, ranks, 0, options.bytes);
    if job.rank() == 0 {
        study(options, shape)?;
    }
    let mut plan = job.world().plan(&shape(job.size()).build("two trees", two_trees))?; // proven here, too
    for start in 0..STARTS {
        let message: Vec<u8> = (0..options.bytes).map(|place| (place % 251) as u8 ^ start).collect();
        if job.rank() == 0 {
            plan.input()?.copy_from_slice(&message);
        }
        plan.start()?;
        plan.wait()?;
        if plan.result()? != message {
            return Err("the received bytes differ from those that were sent".into());
        }
    }
    println!("rank {}: {} bytes as they were sent, {STARTS} times", job.rank(), options.bytes);
    Ok(())
}

/// Proves, draws and simulates the schedule, which needs no run.
fn study(options: &Options, shape: impl Fn(usize) -> Shape) -> Result<(), Box<dyn Error + Send + Sync>> {
    let schedule = shape(DRAWN).build("two trees", two_trees);
    let proven = schedule.check()?;
    println!(
        "proven for {DRAWN} ranks: {} steps, {} moves one after the other, {} bytes of the busiest rank",
        proven.steps, proven.depth, proven.busiest_bytes
    );
    let title = format!("two trees among {DRAWN} ranks, {} bytes", options.bytes);
    let (picture, file) = (picture::draw(&schedule, &title, View::Time)?, options.output.display());
    std::fs::write(&options.output, picture).map_err(|error| format!("cannot write {file}: {error}"))?;
    println!("drawn: {file}");
    let network = Network::new(Topology::parse("torus", options.simulated)?, 1);
    let simulated = shape(options.simulated as usize).build("two trees", two_trees).simulate(&network)?;
    println!("simulated on {} ranks of a {}: {}", options.simulated, network.topology, simulated.time);
    Ok(())
}

fn main() -> std::process::ExitCode {
    let options = Options::parse();
    tasuki::main(|job| app(job, &options))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_documentation_quotes_this_schedule() {
        let (program, chapter) =
            (include_str!("schedule.rs"), include_str!("../../../docs/guide/schedules.md"));
        let begin = program.find("fn two_trees").expect("the function");
        let lines = program[begin..].split_inclusive("\n}\n").next().expect("its end");
        assert!(chapter.contains(lines), "{lines}");
    }
}
