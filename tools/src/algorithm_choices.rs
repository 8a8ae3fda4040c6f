//! `tasuki info --collectives`: which algorithms plans would take here, and the estimated time of a
//! start.

use crate::arguments::collective_names;
use comfy_table::{Table, presets};
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use tasuki_bench::tuning::file::{Tuning, costs};
use tasuki_command::{misuse, warn};
use tasuki_core::bootstrap::environment_variables::{self as names, Environment};
use tasuki_core::os::affinity;
use tasuki_schedule::collective_names::COLLECTIVES;
use tasuki_schedule::{Algorithm, CollectiveKind, Counts, NeighbourGraph, Selection, Shape};

/// Sizes that are shown: of what a rank gives, or of a block.
const SIZES: [(u64, &str); 4] = [(8, "8 B"), (8 << 10, "8 KiB"), (1 << 20, "1 MiB"), (8 << 20, "8 MiB")];
/// As many ranks as one may ask for.
const RANKS_MAX: usize = 1 << 20;

/// The algorithms that plans would choose.
#[derive(Serialize)]
pub(crate) struct Choices {
    ranks: usize,
    processors: usize,
    ranks_per_processor: usize,
    /// Where the costs come from.
    costs_from: String,
    costs: Vec<(&'static str, u64)>,
    forced: String,
    choices: Vec<ChosenAlgorithm>,
}

/// For a collective and a size.
#[derive(Serialize)]
struct ChosenAlgorithm {
    collective: &'static str,
    bytes: u64,
    algorithm: String,
    is_forced: bool,
    estimate_ns: Option<u64>,
    /// The other algorithms that fit.
    others: Vec<Other>,
}

#[derive(Serialize)]
struct Other {
    algorithm: String,
    estimate_ns: Option<u64>,
}

pub(crate) fn ranks(text: &str) -> Result<usize, String> {
    let ranks = text.parse().ok().filter(|ranks| (1..=RANKS_MAX).contains(ranks));
    ranks.ok_or_else(|| format!("give 1 to {RANKS_MAX} ranks"))
}

/// The conditions on which ranks that `tasuki run` starts here choose.
pub(crate) fn selection(ranks: usize) -> anyhow::Result<Selection> {
    let environment = Environment::current();
    let tuning = Tuning::of(&environment)?;
    tuning.remark().iter().for_each(|remark| warn(remark));
    let costs = tuning.costs().unwrap_or_default();
    let forced = environment.get(names::COLLECTIVES).unwrap_or_default();
    let forced = forced.parse().map_err(|why| misuse(format!("{}={forced}: {why}", names::COLLECTIVES)))?;
    let processors = affinity::usable();
    // A rank assumes no helper unless there is a processor for it.
    let has_no_helper = ranks >= processors;
    Ok(Selection { costs, forced, per_processor: ranks.div_ceil(processors), has_no_helper })
}

/// The conditions on which the ranks of a job choose here: on one node, or `is_on_nodes`, on several.
pub(crate) fn selection_here(shape: &Shape, is_on_nodes: bool) -> anyhow::Result<Selection> {
    let here = selection(shape.ranks)?;
    Ok(Selection { has_no_helper: here.has_no_helper && !is_on_nodes, ..here })
}

/// What is simulated, exported and drawn unless the user names an algorithm: what plans take on a network, where each
/// rank has a processor and a helper may run its commands.
pub(crate) struct NetworkChoice {
    pub(crate) algorithm: &'static Algorithm,
    /// What the ranks of a job would run here, if that is another one.
    pub(crate) here: Option<String>,
}

/// Chooses by the same costs and variables as a job here.
pub(crate) fn on_network(shape: &Shape) -> anyhow::Result<NetworkChoice> {
    let here = selection_here(shape, shape.placement.shares_nodes(shape.ranks))?;
    let network = Selection { per_processor: 1, has_no_helper: false, ..here.clone() };
    let (algorithm, of_job) = (network.choose(shape), here.choose(shape));
    let here = (of_job.name != algorithm.name).then(|| collective_names::typed(of_job.name));
    Ok(NetworkChoice { algorithm, here })
}

impl Choices {
    /// What `tasuki run` would choose on this number of ranks. The default is the number of
    /// processors.
    pub(crate) fn here(ranks: Option<usize>) -> anyhow::Result<Choices> {
        let tuning = Tuning::of(&Environment::current())?;
        let processors = affinity::usable();
        let ranks = ranks.unwrap_or(processors);
        let costs_from = tuning.costs().map_or("built-in".into(), |_| tuning.to_string());
        Ok(Choices::of(ranks, processors, costs_from, &selection(ranks)?))
    }

    fn of(ranks: usize, processors: usize, costs_from: String, selection: &Selection) -> Choices {
        let sizes = |collective| if collective == CollectiveKind::Barrier { &[(0, "")][..] } else { &SIZES };
        let all = COLLECTIVES.iter().flat_map(|(_, collective)| {
            sizes(*collective).iter().map(|(bytes, _)| choice(*collective, ranks, *bytes, selection))
        });
        Choices {
            ranks,
            processors,
            ranks_per_processor: selection.per_processor,
            costs_from,
            costs: selection.costs.named().into(),
            forced: selection.forced.to_string(),
            choices: all.collect(),
        }
    }

    /// The choices as text.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let (ranks, processors) = (collective_names::ranks(self.ranks), self.processors);
        let per_processor = match self.ranks_per_processor {
            1 => "each with a processor of its own".into(),
            shared => format!("on {processors} processors: {shared} ranks for each"),
        };
        let _ = writeln!(text, "{ranks}, {per_processor}");
        let _ = writeln!(text, "costs: {} ({})", costs(&self.costs), self.costs_from);
        if !self.forced.is_empty() {
            let _ = writeln!(text, "*: as {} says, {}", names::COLLECTIVES, self.forced);
        }
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(std::iter::once("").chain(SIZES.iter().map(|(_, size)| *size)));
        for (name, _) in COLLECTIVES {
            let of_it: Vec<&ChosenAlgorithm> =
                self.choices.iter().filter(|choice| choice.collective == name).collect();
            let star = |choice: &ChosenAlgorithm| if choice.is_forced { "*" } else { "" };
            let cell = |choice: &&ChosenAlgorithm| {
                format!("{}{}\n{}", choice.algorithm, star(choice), time(choice.estimate_ns))
            };
            table.add_row(std::iter::once(name.to_string()).chain(of_it.iter().map(cell)));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
        let lines = table.to_string();
        let lines = lines.lines().map(str::trim_end).filter(|line| !line.is_empty());
        text + "\n" + &lines.collect::<Vec<_>>().join("\n") + "\n"
    }
}

fn choice(collective: CollectiveKind, ranks: usize, bytes: u64, selection: &Selection) -> ChosenAlgorithm {
    let shape = Shape::new(collective, ranks, 0, bytes);
    // The neighbours of a ring stand for all neighbourhoods.
    let ring = (collective == CollectiveKind::Neighbours)
        .then(|| NeighbourGraph::cartesian(&[ranks], &[true], bytes));
    let counts = ring.flatten().map_or(shape.counts.clone(), |ring| Counts::Graph(Arc::new(ring)));
    let shape = Shape { counts, ..shape };
    let chosen = selection.choose(&shape);
    let estimate = |algorithm: &Algorithm| selection.estimate(algorithm, &shape).map(|ns| ns.round() as u64);
    let others = collective.algorithms().filter(|one| (one.fits)(&shape) && one.name != chosen.name);
    let other =
        |one: &Algorithm| Other { algorithm: collective_names::typed(one.name), estimate_ns: estimate(one) };
    ChosenAlgorithm {
        collective: collective.name(),
        bytes,
        algorithm: collective_names::typed(chosen.name),
        is_forced: selection.forced.of(collective).is_some_and(|forced| forced.name == chosen.name),
        estimate_ns: estimate(chosen),
        others: others.map(other).collect(),
    }
}

/// With three digits.
fn time(ns: Option<u64>) -> String {
    let Some(ns) = ns else { return "-".into() };
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_longer_than_a_terminal() {
        let forced: tasuki_schedule::Forced =
            "bcast=scatter+allgather,allreduce=recursive-doubling".parse().unwrap();
        for ranks in [1, 2, 7, 1 << 20] {
            let selection = Selection { forced: forced.clone(), ..Selection::default() };
            let text = Choices::of(ranks, 2, "built-in".into(), &selection).table();
            assert!(text.lines().all(|line| line.len() <= 100), "{text}");
            assert!(text.contains("scatter+allgather*") && text.contains("reduce_scatter"), "{text}");
        }
    }

    #[test]
    fn times_have_three_digits() {
        let shown =
            [Some(7), Some(1_234), Some(99_960), Some(12_345_678), Some(2_000_000_000), None].map(time);
        assert_eq!(shown, ["7 ns", "1.23 us", "100 us", "12.3 ms", "2.00 s", "-"]);
    }
}
