//! `tasuki sim incast`: many ranks send to one, by receive tickets and by what other libraries do.
//!
//! ```text
//! question      what is simulated, and the outcome      model         the events
//! busy_node     queues of a node to which many send     share_slots   slots, and checks of the protocol
//! placement     where counters are                      report        the table and the lines of JSON
//! parties       senders, shares and the receiver
//! figure        time to drain over the number of senders
//! ```

mod busy_node;
mod figure;
mod model;
#[cfg(test)]
mod model_tests;
mod parties;
mod placement;
mod question;
mod report;
mod share_slots;

use super::network_costs::Costs;
use super::{parsed_topology, progress_bar, units};
use crate::arguments::bytes;
use anyhow::Context;
use model::IncastModel;
use question::{CounterHome, IncastCosts, IncastProtocol, IncastQuestion, TicketWaiting};
use report::IncastRow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use tasuki_command::{Sink, is_standard_output, misuse, print};
use tasuki_schedule::network::{Network, Time};

const EXAMPLE: &str = "\
Examples:
  tasuki sim incast --senders 10000 --topology torus
  tasuki sim incast --senders 100,1000,10000,100000,1000000 --plot many-to-one.svg
  tasuki sim incast --senders 100000 --shares 16 --atomic-time 20ns --waiting paced --json -

Protocols: receive tickets with counters at the receiver, on another rank, and split; eager messages that are dropped \
when the buffer is full, and that pile up in the network; a rendezvous that the receiver's processor answers. All \
senders begin at once. docs/design/communication/many-to-one.md says what is modelled.";

/// Simulate many ranks that send to one: time to drain, memory, atomics.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct IncastArgs {
    /// Numbers of senders
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values_t = [100, 1000, 10_000],
        value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    senders: Vec<u32>,
    /// Topologies of the network, a rank on each node
    #[arg(long, value_name = "T,..", value_delimiter = ',', default_values_t = ["fat-tree:36".to_string(), "torus".into()])]
    topology: Vec<String>,
    /// Number of messages that each sender sends
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1000))]
    messages: u16,
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", default_value = "64", value_parser = bytes)]
    bytes: u64,
    /// Slots of the receive queue, or buffers of the receiver, for a message each
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=65536))]
    slots: u32,
    /// Numbers of ranks, powers of two, over which counters are split
    #[arg(long, value_name = "G,..", value_delimiter = ',', default_values_t = [4, 16, 64],
        value_parser = clap::value_parser!(u32).range(1..=64))]
    shares: Vec<u32>,
    /// When senders look again whose slot is not free
    #[arg(long, value_name = "W,..", value_enum, value_delimiter = ',', default_values_t = [TicketWaiting::Growing, TicketWaiting::Paced])]
    waiting: Vec<TicketWaiting>,
    /// Time of an atomic operation at a network interface
    #[arg(long, value_name = "TIME", default_value = "100ns", value_parser = units::time)]
    atomic_time: Time,
    /// Time of the receiver's processor to take a message
    #[arg(long, value_name = "TIME", default_value = "50ns", value_parser = units::time)]
    take_time: Time,
    /// Time of the receiver's processor to answer a request of a rendezvous
    #[arg(long, value_name = "TIME", default_value = "200ns", value_parser = units::time)]
    answer_time: Time,
    /// First time-out of a message that was dropped; it is doubled up to six times
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = units::time)]
    timeout: Time,
    /// End a simulation when senders have looked that often; the table then shows a lower bound
    #[arg(long, value_name = "N", default_value = "10000000")]
    polls_max: u64,
    /// The receiver waits for each addition to counters, as the library does
    #[arg(long)]
    wait_for_adds: bool,
    #[command(flatten)]
    network_costs: Costs,
    /// Write the results as JSON, one object per line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the time to drain over the number of senders
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// The subcommand; its exit code.
pub(super) fn command(args: &IncastArgs) -> anyhow::Result<u8> {
    if let Some(shares) = args.shares.iter().find(|shares| !shares.is_power_of_two() || **shares > args.slots)
    {
        return Err(misuse(format!(
            "--shares {shares}: give powers of two, not more than --slots {}",
            args.slots
        )));
    }
    let json = args.json.as_deref().map(Sink::open).transpose()?;
    let plot = args.plot.as_deref().map(Sink::open).transpose()?;
    let rows = simulate(args)?;
    if let Some(sink) = plot {
        sink.replace(&figure::svg(&rows)?)?;
    }
    if let Some(sink) = json {
        sink.replace(&report::lines(&rows)?)?;
    }
    if !args.json.as_deref().is_some_and(is_standard_output) {
        print(&report::table(&rows))?;
    }
    Ok(0)
}

/// Simulates all protocols for all numbers of senders on all networks, each network on a thread of its own.
fn simulate(args: &IncastArgs) -> anyhow::Result<Vec<IncastRow>> {
    let bar = &SharedBar { bar: Mutex::new((progress_bar::Bar::new(), 0)), all: args.all() };
    let found = thread::scope(|scope| {
        let threads: Vec<_> = args
            .topology
            .iter()
            .map(|topology| scope.spawn(move || on_network(args, topology, bar)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    let mut rows = Vec::new();
    for part in found {
        rows.extend(part.map_err(|_| anyhow::anyhow!("a thread of the simulation panicked"))??);
    }
    Ok(rows)
}

/// Simulates all protocols for all numbers of senders on a network.
fn on_network(args: &IncastArgs, topology: &str, bar: &SharedBar) -> anyhow::Result<Vec<IncastRow>> {
    let mut rows = Vec::new();
    for &senders in &args.senders {
        let network = Network {
            parameters: args.network_costs.parameters(),
            ..Network::new(parsed_topology(topology, u64::from(senders) + 1)?, 1)
        };
        for protocol in protocols(args) {
            let question = args.question(&network, protocol, senders);
            let mut known = 0;
            let mut watch = |taken| {
                bar.add(taken - known, || format!("{senders} senders, {protocol}"));
                known = taken;
            };
            let outcome = IncastModel::new(&question).run(&mut watch);
            let outcome = outcome.with_context(|| format!("{protocol}, {senders} senders on {topology}"))?;
            watch(question.all_messages());
            rows.push(IncastRow::new(topology, &question, outcome));
        }
    }
    Ok(rows)
}

/// A progress bar for several threads.
struct SharedBar {
    /// The bar, and how many messages were taken.
    bar: Mutex<(progress_bar::Bar, u64)>,
    all: u64,
}

impl SharedBar {
    fn add(&self, more: u64, message: impl FnOnce() -> String) {
        if let Ok(mut shown) = self.bar.lock() {
            let (bar, taken) = &mut *shown;
            *taken += more;
            bar.show_share(*taken as f64 / self.all as f64, message);
        }
    }
}

fn protocols(args: &IncastArgs) -> Vec<IncastProtocol> {
    let splits = args.shares.iter().map(|&shares| CounterHome::Split(shares));
    let homes: Vec<CounterHome> =
        [CounterHome::Receiver, CounterHome::Split(1)].into_iter().chain(splits).collect();
    let tickets = args
        .waiting
        .iter()
        .flat_map(|&waiting| homes.iter().map(move |&home| IncastProtocol::Tickets(home, waiting)));
    tickets
        .chain([IncastProtocol::EagerDropped, IncastProtocol::EagerPiled, IncastProtocol::Rendezvous])
        .collect()
}

impl IncastArgs {
    /// The messages of all simulations.
    fn all(&self) -> u64 {
        let senders = self.senders.iter().map(|&senders| u64::from(senders)).sum::<u64>();
        senders * u64::from(self.messages) * (self.topology.len() * protocols(self).len()) as u64
    }

    fn question<'n>(
        &self,
        network: &'n Network,
        protocol: IncastProtocol,
        senders: u32,
    ) -> IncastQuestion<'n> {
        IncastQuestion {
            network,
            costs: IncastCosts {
                atomic: self.atomic_time,
                take: self.take_time,
                answer: self.answer_time,
                timeout: self.timeout,
                waits_for_adds: self.wait_for_adds,
            },
            protocol,
            senders,
            messages: self.messages,
            bytes: self.bytes,
            slots: self.slots,
            polls_max: self.polls_max,
        }
    }
}
