//! The arguments that name a collective for `tasuki plan` and `tasuki sim`.
//!
//! ```text
//! collective_names    collectives and algorithms by name
//! numbers             ranks, bytes, grids, blocks of different sizes
//! default_segments    the number of segments without an option
//! schedule_file       a plan from a file in place of a collective
//! proof               checks of plans, within the memory that is available
//! ```

pub(crate) mod collective_names;
mod default_segments;
mod numbers;
pub(crate) mod proof;
mod schedule_file;

pub(crate) use default_segments::{segments_of_study, segments_to_see, segments_to_simulate};
pub(crate) use numbers::{RANKS_MAX, bytes, ranks};
pub(crate) use schedule_file::{is_file, read, text, text_of};

use clap::Args;
use numbers::{Grid, each, grid};
use std::sync::Arc;
use tasuki_command::misuse;
use tasuki_schedule::BYTES_MAX;
use tasuki_schedule::NeighbourGraph;
use tasuki_schedule::shape::{CollectiveKind, Counts, Shape};

/// Bytes without `--bytes`.
const BYTES: u64 = 8192;

/// The ranks and the sizes of a collective.
#[derive(Args)]
pub(crate) struct CollectiveArgs {
    /// Number of ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = ranks)]
    ranks: Option<usize>,
    /// The root rank of a rooted collective [default: 0]
    #[arg(long, value_name = "R")]
    root: Option<usize>,
    /// Bytes that each rank contributes to a broadcast, reduction or scan; otherwise bytes of a
    /// block [default: 8192]
    #[arg(long, value_name = "B", value_parser = bytes)]
    bytes: Option<u64>,
    /// Bytes of each block, for blocks of different sizes: a file, or a list with one number for
    /// each rank, as in 8,0,16; for alltoall one number for each pair of ranks, row by row
    #[arg(long, value_name = "LIST|FILE", conflicts_with = "bytes")]
    counts: Option<String>,
    /// Combine values in the combining order, as plans of floating-point sums do [default: any
    /// order, as for sums of integers]
    #[arg(long)]
    in_order: bool,
    /// Number of consecutive ranks on each node [default: 1]
    #[arg(long, value_name = "K", value_parser = ranks)]
    per_node: Option<usize>,
    /// Ranks along each dimension of the grid that defines the neighbours, as in 4x2; the last
    /// dimension changes fastest [default: one row of all ranks]
    #[arg(long, value_name = "AxB..", value_parser = grid)]
    grid: Option<Grid>,
    /// Make the grid periodic: ranks at opposite ends are neighbours
    #[arg(long)]
    periodic: bool,
}

impl CollectiveArgs {
    /// Names of the options that the user gave.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            (self.ranks.is_some(), "--ranks"),
            (self.root.is_some(), "--root"),
            (self.bytes.is_some(), "--bytes"),
            (self.counts.is_some(), "--counts"),
            (self.in_order, "--in-order"),
            (self.per_node.is_some(), "--per-node"),
            (self.grid.is_some(), "--grid"),
            (self.periodic, "--periodic"),
        ];
        options.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// Ranks per node.
    pub(crate) fn per_node(&self) -> usize {
        self.per_node.unwrap_or(1)
    }

    /// The collective `what`, with unordered nodes. `command` is what the user typed before it.
    pub(crate) fn shape(&self, command: &str, what: &str) -> anyhow::Result<Shape> {
        let (collective, has_counts) = collective_names::collective(what)?;
        let Some(ranks) = self.ranks else {
            return Err(misuse(format!("give the number of ranks: {command} {what} --ranks 4")));
        };
        let root = self.root.unwrap_or(0);
        if root >= ranks {
            return Err(misuse(format!("--root {root}: the last of {ranks} ranks is {}", ranks - 1)));
        }
        let bytes = if collective == CollectiveKind::Barrier { 0 } else { self.bytes.unwrap_or(BYTES) };
        let mut shape = Shape::new(collective, ranks, root, bytes);
        match &self.counts {
            Some(counts) => {
                shape.counts = each(counts, collective, ranks)?;
                shape.value_bytes = 1;
            }
            None if has_counts => {
                return Err(misuse(format!("give the bytes of each block: {what} --counts 8,0,16")));
            }
            None => {}
        }
        if collective == CollectiveKind::Neighbours {
            shape.counts = self.neighbours(ranks, bytes)?;
        } else if self.grid.is_some() || self.periodic {
            return Err(misuse(format!(
                "--grid and --periodic define neighbours, which {what} does not have"
            )));
        }
        shape.in_order = self.in_order;
        shape.placement.per_node = self.per_node();
        if let Counts::Equal(bytes) = shape.counts {
            has_room(collective, ranks, bytes)?;
        }
        Ok(shape)
    }

    fn neighbours(&self, ranks: usize, bytes: u64) -> anyhow::Result<Counts> {
        let row = [ranks];
        let dims = self.grid.as_ref().map_or(&row[..], |grid| &grid.0);
        let count = dims.iter().try_fold(1_usize, |all, &one| all.checked_mul(one));
        if count != Some(ranks) {
            let dims = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
            return Err(misuse(format!("--grid {dims} does not have {}", collective_names::ranks(ranks))));
        }
        let all = ranks as u128 * 2 * dims.len() as u128;
        if all * u128::from(bytes) > BYTES_MAX.into() || all > RANKS_MAX as u128 {
            return Err(misuse(format!("{all} blocks of {bytes} bytes are too many")));
        }
        let neighbours = NeighbourGraph::cartesian(dims, &vec![self.periodic; dims.len()], bytes);
        let neighbours = neighbours.ok_or_else(|| misuse("a grid has ranks along each dimension"))?;
        Ok(Counts::Graph(Arc::new(neighbours)))
    }
}

/// Checks that the blocks of all ranks fit into one buffer.
fn has_room(collective: CollectiveKind, ranks: usize, bytes: u64) -> anyhow::Result<()> {
    use CollectiveKind::{Allreduce, Bcast, Exscan, Reduce, Scan};
    let is_one = matches!(collective, Bcast | Reduce | Allreduce | Scan | Exscan);
    let blocks = if is_one { 1 } else { ranks as u128 };
    if u128::from(bytes) * blocks <= BYTES_MAX.into() {
        return Ok(());
    }
    Err(misuse(format!("{bytes} bytes for each of {ranks} ranks are more than {BYTES_MAX}")))
}
