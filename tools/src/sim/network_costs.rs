//! What the parts of the network cost, as the command line says it.

use super::units;
use tasuki_schedule::network::{Parameters, Time};

/// The parameters of the model. What is not given has the value of the study.
#[derive(clap::Args)]
#[command(next_help_heading = "Costs of the network")]
pub(super) struct Costs {
    /// L: what a hop takes [default: 100ns]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    latency: Option<Time>,
    /// o: what a start takes of its rank's time; of GOAL text, each send and each receive [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    overhead: Option<Time>,
    /// g: what a command takes of its engine besides its bytes, and a transfer of the receiver's [default: 1ns]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    gap: Option<Time>,
    /// G: what a byte takes of its engine and of the receiver's, or their rate, as in 0.1ns or 9.5GB/s
    /// [default: 0.104762ns]
    #[arg(long, value_name = "TIME|RATE", value_parser = units::per_byte)]
    byte_time: Option<Time>,
    /// Engines of a node, each of which sends one transfer at a time and receives one [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    engines: Option<u32>,
    /// What a link carries, or what a byte takes of it, as in 12.5GB/s or 100Gbit/s [default: 12.5GB/s]
    #[arg(long, value_name = "RATE|TIME", value_parser = units::per_byte)]
    link_rate: Option<Time>,
    /// What it takes to combine a byte with another, or the rate, as in 0.05ns or 20GB/s [default: 0.05ns]
    #[arg(long, value_name = "TIME|RATE", value_parser = units::per_byte)]
    combine_time: Option<Time>,
}

impl Costs {
    /// With what is not given.
    pub(super) fn parameters(&self) -> Parameters {
        let usual = Parameters::default();
        let byte = self.byte_time.unwrap_or(usual.byte);
        Parameters {
            latency: self.latency.unwrap_or(usual.latency),
            byte,
            byte_inside: byte,
            gap: self.gap.unwrap_or(usual.gap),
            overhead: self.overhead.unwrap_or(usual.overhead),
            link_byte: self.link_rate.unwrap_or(usual.link_byte),
            reduce_byte: self.combine_time.unwrap_or(usual.reduce_byte),
            engines: self.engines.unwrap_or(usual.engines),
        }
    }
}

/// The parameters for people.
pub(super) fn shown(costs: &Parameters) -> String {
    let Parameters { latency, overhead, gap, byte, engines, link_byte, reduce_byte, .. } = costs;
    let engine = if *engines == 1 { "1 engine".into() } else { format!("{engines} engines") };
    let link = match link_byte.as_seconds() {
        0.0 => "links of any rate".into(),
        seconds => format!("links of {}", units::rate(1.0 / seconds)),
    };
    format!(
        "L {latency}, o {overhead}, g {gap}, G {byte}, {engine} a node, {link}, combining {reduce_byte} a byte"
    )
}
