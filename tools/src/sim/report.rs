//! The result of a simulation, as a table and as a line of JSON.

use super::network_costs;
use super::workload::Workload;
use super::{Args, units};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use tasuki_schedule::SimulationReport;
use tasuki_schedule::network::{Network, Time};

/// What the report contains.
pub(super) struct SimReport<'r> {
    pub(super) workload: &'r Workload,
    pub(super) network: &'r Network,
    /// The algorithm, the reason for it, and the number of segments unless the schedule is from a
    /// file.
    pub(super) name: &'r str,
    pub(super) reason: &'r str,
    pub(super) segments: Option<u64>,
    pub(super) args: &'r Args,
    pub(super) simulated: SimulationReport,
}

/// The line of JSON. Times are in seconds, sizes in bytes.
#[derive(Serialize)]
struct Line<'l> {
    collective: &'l str,
    algorithm: &'l str,
    ranks: usize,
    per_node: u64,
    topology: String,
    bytes: u64,
    root: Option<usize>,
    segments: Option<u64>,
    run_by: Option<usize>,
    starts: u32,
    compute_seconds: f64,
    varies_seconds: f64,
    offloaded: bool,
    seconds: f64,
    seconds_first_rank: f64,
    seconds_median_rank: f64,
    seconds_until_bytes_move: f64,
    bytes_per_second: f64,
    steps: u64,
    steps_max: u64,
    bytes_delivered: u64,
    bytes_between_nodes: u64,
    busiest_link: Option<&'l str>,
    busiest_link_bytes: u64,
    busiest_link_share: f64,
    memory_bytes_max: u64,
    memory_bytes_all: u64,
    latency_seconds: f64,
    overhead_seconds: f64,
    gap_seconds: f64,
    byte_seconds: f64,
    engines: u32,
    link_byte_seconds: f64,
    combine_byte_seconds: f64,
}

/// The width of the table, in columns.
const WIDTH: u16 = 100;

impl SimReport<'_> {
    /// Time of one start, in seconds.
    fn each(&self) -> f64 {
        self.simulated.time.as_seconds() / f64::from(self.args.starts)
    }

    /// The workload's bytes divided by the time of a start.
    fn rate(&self) -> f64 {
        if self.each() > 0.0 { self.workload.bytes as f64 / self.each() } else { 0.0 }
    }

    fn link(&self) -> Option<String> {
        self.simulated.busiest.map(|used| self.network.topology.link_name(used.link))
    }

    /// The table.
    pub(super) fn table(&self) -> String {
        let SimReport { workload, network, name, reason, segments, args, simulated } = self;
        let ranks = workload.ranks;
        let from = workload.root.map(|root| format!(", from rank {root}")).unwrap_or_default();
        let cut = segments.map_or("as the file says".into(), |count| format!("{count}, where it cuts"));
        let mut rows: Vec<(&str, String)> = vec![
            ("collective", workload.what.clone()),
            ("ranks", format!("{ranks}, {} on each node{from}", network.per_node)),
            ("topology", format!("{}, {}", network.topology, nodes(network.topology.nodes()))),
            ("algorithm", format!("{name}: {reason}")),
            ("segments", cut),
            ("costs", network_costs::shown(&network.parameters)),
        ];
        if let Some(by) = args.driven_by {
            rows.push(("run by", format!("rank {by}, which has the steps of all")));
        }
        rows.push(("time", self.time()));
        if let Some(compute) = args.compute {
            let meanwhile = if args.in_calls { "steps begin in calls only" } else { "steps go on meanwhile" };
            let longer = args.varies.map(|varies| format!(" and up to {varies} more")).unwrap_or_default();
            rows.push(("computing", format!("{compute}{longer} in each start, {meanwhile}")));
        }
        // Less says nothing.
        if self.rate() >= 1.0 {
            rows.push(("bandwidth", units::rate(self.rate())));
        }
        rows.push((
            "busiest link",
            match (self.link(), simulated.busiest) {
                (Some(link), Some(used)) => {
                    let share = simulated.busiest_share() * 100.0;
                    format!("{link}: {}, busy {share:.1} % of the time", units::show(used.bytes))
                }
                _ => "none was used".into(),
            },
        ));
        // GOAL text does not say where messages lie in memory.
        if simulated.memory_all > 0 {
            let mean = simulated.memory_all / ranks as u64;
            let most = units::show(simulated.memory_max);
            rows.push(("memory", format!("{most} a rank at most, {} on average", units::show(mean))));
        }
        let most = simulated.steps_max;
        rows.push(("steps", format!("{}, at most {most} of one rank in a start", simulated.steps)));
        let (all, between) = (units::show(simulated.bytes), units::show(simulated.bytes_between));
        rows.push(("delivered", format!("{all}, {between} of it between nodes")));
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(WIDTH).add_rows(rows.into_iter().map(|(name, value)| [name.to_string(), value]));
        table.column_iter_mut().for_each(|column| {
            column.set_padding((0, 2));
        });
        let mut text = String::new();
        table.lines().for_each(|line| text.extend([line.trim_end(), "\n"]));
        text
    }

    fn time(&self) -> String {
        let SimulationReport { time, first_end, median_end, moves_from, .. } = &self.simulated;
        if self.args.starts > 1 {
            let each = Time::of_seconds(self.each());
            return format!("{time} for {} starts, {each} each", self.args.starts);
        }
        format!("{time}; first rank {first_end}, median {median_end}; bytes move from {moves_from} on")
    }

    /// The line of JSON.
    pub(super) fn line(&self) -> anyhow::Result<String> {
        let SimReport { workload, network, name, segments, args, simulated, .. } = self;
        let costs = &network.parameters;
        let link = self.link();
        let line = Line {
            collective: &workload.name,
            algorithm: name,
            ranks: workload.ranks,
            per_node: network.per_node,
            topology: network.topology.to_string(),
            bytes: self.workload.bytes,
            root: workload.root,
            segments: *segments,
            run_by: args.driven_by,
            starts: args.starts,
            compute_seconds: args.compute.unwrap_or_default().as_seconds(),
            varies_seconds: args.varies.unwrap_or_default().as_seconds(),
            offloaded: !args.in_calls,
            seconds: simulated.time.as_seconds(),
            seconds_first_rank: simulated.first_end.as_seconds(),
            seconds_median_rank: simulated.median_end.as_seconds(),
            seconds_until_bytes_move: simulated.moves_from.as_seconds(),
            bytes_per_second: self.rate(),
            steps: simulated.steps,
            steps_max: simulated.steps_max,
            bytes_delivered: simulated.bytes,
            bytes_between_nodes: simulated.bytes_between,
            busiest_link: link.as_deref(),
            busiest_link_bytes: simulated.busiest.map_or(0, |used| used.bytes),
            busiest_link_share: simulated.busiest_share(),
            memory_bytes_max: simulated.memory_max,
            memory_bytes_all: simulated.memory_all,
            latency_seconds: costs.latency.as_seconds(),
            overhead_seconds: costs.overhead.as_seconds(),
            gap_seconds: costs.gap.as_seconds(),
            byte_seconds: costs.byte.as_seconds(),
            engines: costs.engines,
            link_byte_seconds: costs.link_byte.as_seconds(),
            combine_byte_seconds: costs.reduce_byte.as_seconds(),
        };
        Ok(serde_json::to_string(&line)? + "\n")
    }
}

fn nodes(count: u64) -> String {
    if count == 1 { "1 node".into() } else { format!("{count} nodes") }
}
