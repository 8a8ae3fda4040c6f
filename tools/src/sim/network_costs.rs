//! The options for the costs of the network.

use super::units;
use tasuki_schedule::network::{Parameters, Time};

/// The parameters of the model. The defaults are those of the study.
#[derive(clap::Args)]
#[command(next_help_heading = "Costs of the network")]
pub(super) struct Costs {
    /// L: time of a hop [default: 100ns]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    latency: Option<Time>,
    /// o: processor time of each start; in GOAL text, of each send and each receive [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    overhead: Option<Time>,
    /// g: engine time of each step besides its bytes, at the sender and at the receiver
    /// [default: 1ns]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    gap: Option<Time>,
    /// G: engine time of each byte, at the sender and at the receiver, or the rate, as in 0.1ns or
    /// 9.5GB/s [default: 0.104762ns]
    #[arg(long, value_name = "TIME|RATE", value_parser = units::per_byte)]
    byte_time: Option<Time>,
    /// Engines of a node; each sends one transfer and receives one at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    engines: Option<u32>,
    /// Rate of a link, or link time of each byte, as in 12.5GB/s or 100Gbit/s [default: 12.5GB/s]
    #[arg(long, value_name = "RATE|TIME", value_parser = units::per_byte)]
    link_rate: Option<Time>,
    /// Time to combine a byte with another, or the rate, as in 0.05ns or 20GB/s [default: 0.05ns]
    #[arg(long, value_name = "TIME|RATE", value_parser = units::per_byte)]
    combine_time: Option<Time>,
}

impl Costs {
    /// The parameters, with defaults for those that were not given.
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

/// The parameters as text.
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
