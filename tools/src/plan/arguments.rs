//! The schedule that the command line asks for: a collective on a number of ranks, or a file.

use crate::algorithm_choices;
use crate::arguments::{CollectiveArgs, RANKS_MAX, collective_names, is_file, read, segments_to_see};
use clap::Args;
use std::io::Write;
use tasuki_command::misuse;
use tasuki_schedule::Schedule;
use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
use tasuki_schedule::selection::Selection;
use tasuki_schedule::shape::{CollectiveKind, Counts, Shape};

/// Which schedule the user asks for.
#[derive(Args)]
pub(crate) struct Ask {
    /// Collective: barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall,
    /// reduce_scatter, scan, exscan, neighbours, or, with blocks of different sizes, gatherv,
    /// scatterv, allgatherv, alltoallv. Or a file that `tasuki plan export --format json` wrote;
    /// `check` also reads GOAL text
    #[arg(value_name = "COLLECTIVE|FILE")]
    what: String,
    #[command(flatten)]
    asked: CollectiveArgs,
    /// Algorithm [default: show: the one that a job would run here; check: all that fit; otherwise the
    /// one that plans take on a network]
    #[arg(long, value_name = "A")]
    algorithm: Option<String>,
    /// Number of segments, for algorithms that cut messages [default: 4, or fewer where there are
    /// fewer values]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    segments: Option<u64>,
    /// Nodes of a torus along X, Y and Z, as in 4x2x2
    #[arg(long, value_name = "XxYxZ", value_parser = torus)]
    torus: Option<[usize; 3]>,
}

/// A schedule and its description.
pub(super) struct Plan {
    pub(super) schedule: Schedule,
    /// The collective, the algorithm, the amount of data and the ranks, in words.
    pub(super) title: String,
    /// The title without the algorithm.
    pub(super) asked: String,
    /// The other algorithms that fit, in words.
    pub(super) remark: Option<String>,
}

impl Plan {
    /// Says on standard error which algorithm was chosen and why, if the user has not named one.
    pub(super) fn say_what_was_chosen(&self) {
        let said = self.remark.iter();
        said.for_each(|remark| drop(writeln!(std::io::stderr().lock(), "tasuki: note: {remark}")));
    }
}

impl Ask {
    /// The requested schedule, or the one that plans take on a network.
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
        if self.algorithm.is_some() || self.file().is_some() {
            return Ok(self.plans()?.remove(0));
        }
        let shape = self.shape()?;
        let algorithm_choices::NetworkChoice { algorithm, here } = algorithm_choices::on_network(&shape)?;
        let plan = self.plan_by(algorithm, &shape);
        let name = collective_names::typed(algorithm.name);
        let here = here.map(|here| format!("; a job here would run {here}")).unwrap_or_default();
        let remark = format!("{name} is what plans take on a network{here}; --algorithm chooses another");
        Ok(Plan { remark: Some(remark), ..plan })
    }

    fn plan_by(&self, algorithm: &Algorithm, shape: &Shape) -> Plan {
        let segments = self.segments.unwrap_or_else(|| segments_to_see(shape));
        let title = format!("{} by {}{}", self.what, collective_names::typed(algorithm.name), among(shape));
        let schedule = algorithm.schedule(shape, segments);
        let cut = match is_cut(algorithm, shape, segments) {
            true => format!(", {segments} segments"),
            false => String::new(),
        };
        Plan { schedule, title: title + &cut, asked: self.title(shape), remark: None }
    }

    /// The schedule that a job's plan would run here, if neither an algorithm nor a file is named.
    /// `is_engine` selects the schedule for commands that helpers or the network run, instead of
    /// the one that calling threads run.
    pub(super) fn plan_of_job(&self, is_engine: bool) -> anyhow::Result<Plan> {
        if self.algorithm.is_some() || self.file().is_some() {
            if is_engine {
                return Err(misuse("--engine chooses an algorithm: leave out --algorithm, and the file"));
            }
            return self.plan();
        }
        let shape = self.shape()?;
        let is_on_nodes = shape.placement.shares_nodes(shape.ranks) || self.torus.is_some();
        let mut selection = algorithm_choices::selection_here(&shape, is_on_nodes)?;
        selection.has_no_helper &= !is_engine;
        let (mut schedule, pieces) = selection.schedule(&shape);
        let name = collective_names::typed(schedule.name());
        if let (Some(segments), None) = (self.segments, pieces) {
            schedule = selection.choose(&shape).schedule(&shape, segments);
        }
        let among = among(&shape);
        let piece = match pieces {
            Some(count) if count > 1 => format!(", one of {count} pieces"),
            _ => String::new(),
        };
        let title = format!("{} by {name}{among}{piece}", self.what);
        let mut remark = match pieces {
            Some(_) => {
                let engine = Selection { has_no_helper: false, ..selection.clone() };
                let engine = collective_names::typed(engine.choose(&shape).name);
                format!("{name} is what a job would run here, on the calling threads of its ranks")
                    + &format!("; --engine shows {engine}, which helpers run")
            }
            None => {
                let by = if is_engine { "a job whose helpers run plans" } else { "a job" };
                format!(
                    "{name} is what {by} would run here, as commands that helpers or any waiting rank run"
                )
            }
        };
        if let Some(tried) = Selection::tried_by_calls(&shape) {
            remark += &format!("; repeated blocking calls try {}, too", collective_names::typed(tried.name));
        }
        let fits = |one: &&Algorithm| (one.fits)(&shape) && collective_names::typed(one.name) != name;
        let others: Vec<String> =
            shape.collective.algorithms().filter(fits).map(|one| collective_names::typed(one.name)).collect();
        if !others.is_empty() {
            remark += &format!("; --algorithm chooses another: {}", others.join(", "));
        }
        Ok(Plan { schedule, asked: self.title(&shape), title, remark: Some(remark) })
    }

    /// All schedules that match the request: at least one.
    pub(super) fn plans(&self) -> anyhow::Result<Vec<Plan>> {
        if let Some(file) = self.file() {
            return Ok(vec![self.read(file)?]);
        }
        let shape = self.shape()?;
        let of_it: Vec<&Algorithm> =
            ALGORITHMS.iter().filter(|one| one.collective == shape.collective).collect();
        let fit: Vec<&Algorithm> = of_it.iter().copied().filter(|one| (one.fits)(&shape)).collect();
        let chosen = match &self.algorithm {
            Some(name) => vec![collective_names::algorithm(name, &of_it, &self.what)?],
            None => fit,
        };
        if let Some(unfit) = chosen.iter().find(|one| !(one.fits)(&shape)) {
            let name = collective_names::typed(unfit.name);
            return Err(misuse(format!("{name} does not fit {}", self.title(&shape))));
        }
        if chosen.is_empty() {
            return Err(misuse(format!("there is no algorithm for {}", self.title(&shape))));
        }
        Ok(chosen.iter().map(|algorithm| self.plan_by(algorithm, &shape)).collect())
    }

    /// The file that is named instead of a collective.
    pub(super) fn file(&self) -> Option<&str> {
        is_file(&self.what).then_some(self.what.as_str())
    }

    /// The GOAL text that is named instead of a collective.
    pub(super) fn goal(&self) -> Option<&str> {
        self.what.ends_with(".goal").then_some(self.what.as_str())
    }

    fn read(&self, file: &str) -> anyhow::Result<Plan> {
        let options = [
            (self.algorithm.is_some(), "--algorithm"),
            (self.segments.is_some(), "--segments"),
            (self.torus.is_some(), "--torus"),
        ];
        let others = options.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option);
        let schedule = read(file, self.asked.given().chain(others))?;
        let title = format!("{} of {}, {}", schedule.name(), file, collective_names::ranks(schedule.ranks()));
        Ok(Plan { schedule, asked: title.clone(), title, remark: None })
    }

    fn shape(&self) -> anyhow::Result<Shape> {
        if self.what.contains('.') {
            let what = &self.what;
            return Err(misuse(format!("{what} is no collective, and files of plans end in .json")));
        }
        let mut shape = self.asked.shape("tasuki plan ..", &self.what)?;
        if let Some(torus) = self.torus {
            shape.placement.torus = torus;
            let (ranks, per_node) = (shape.ranks, shape.placement.per_node);
            let nodes = torus.iter().product::<usize>();
            if nodes.checked_mul(per_node) != Some(ranks) {
                return Err(misuse(format!("{ranks} ranks do not fill {nodes} nodes, {per_node} on each")));
            }
        }
        Ok(shape)
    }

    fn title(&self, shape: &Shape) -> String {
        self.what.clone() + &among(shape)
    }
}

/// The ranks, the amount of data and the root, in words.
fn among(shape: &Shape) -> String {
    let ranks = collective_names::ranks(shape.ranks);
    let bytes = match &shape.counts {
        _ if shape.collective == CollectiveKind::Barrier => String::new(),
        Counts::Equal(bytes) => format!(", {bytes} B"),
        Counts::Graph(_) => String::new(),
        Counts::Each(_) | Counts::Matrix(_) => ", blocks that differ".into(),
    };
    use CollectiveKind::{Bcast, Gather, Reduce, Scatter};
    let has_root = matches!(shape.collective, Bcast | Reduce | Gather | Scatter);
    let root = if has_root { format!(", root {}", shape.root) } else { String::new() };
    format!(" among {ranks}{bytes}{root}")
}

/// Returns true if the number of segments changes the part of the root or of its first neighbour.
fn is_cut(algorithm: &Algorithm, shape: &Shape, segments: u64) -> bool {
    let (cut, whole) = (algorithm.schedule(shape, segments), algorithm.schedule(shape, 1));
    [shape.root, (shape.root + 1) % shape.ranks].into_iter().any(|rank| cut.part(rank) != whole.part(rank))
}

fn torus(text: &str) -> Result<[usize; 3], String> {
    let sides: Option<Vec<usize>> = text.split('x').map(|side| side.parse().ok()).collect();
    let sides = sides.and_then(|sides| <[usize; 3]>::try_from(sides).ok());
    let is_sane = |sides: &[usize; 3]| sides.iter().all(|side| (1..=RANKS_MAX).contains(side));
    let is_small =
        |sides: &[usize; 3]| sides.iter().map(|&side| side as u128).product::<u128>() <= RANKS_MAX as u128;
    sides
        .filter(|sides| is_sane(sides) && is_small(sides))
        .ok_or_else(|| "give three sides, as in 4x2x2".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_a_torus_are_read() {
        assert_eq!(torus("4x2x2"), Ok([4, 2, 2]));
        for wrong in ["4x2", "0x1x1", "4x2x2x2", "x", "99999999x99999999x99999999"] {
            assert!(torus(wrong).is_err(), "{wrong}");
        }
    }
}
