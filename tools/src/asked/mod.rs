//! A collective that is asked for on the command line, by `tasuki plan` and `tasuki sim` alike.
//!
//! ```text
//! words      operations and algorithms by name      numbers    ranks, bytes, grids, blocks that differ
//! segments   how many where nobody says             file       a plan in place of a collective
//! proof      whether a plan holds
//! ```

mod file;
mod numbers;
pub(crate) mod proof;
mod segments;
pub(crate) mod words;

pub(crate) use file::{is_file, read, text};
pub(crate) use numbers::{RANKS_MAX, ranks};
pub(crate) use segments::{segments_of_study, segments_to_see, segments_to_simulate};

use clap::Args;
use numbers::{Grid, bytes, each, grid};
use std::sync::Arc;
use tasuki_command::misuse;
use tasuki_schedule::BYTES_MAX;
use tasuki_schedule::NeighbourGraph;
use tasuki_schedule::shape::{CollectiveKind, Counts, Shape};

/// Bytes where nobody says how many.
const BYTES: u64 = 8192;

/// Among whom a collective is, and of how much.
#[derive(Args)]
pub(crate) struct Asked {
    /// How many ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = ranks)]
    ranks: Option<usize>,
    /// Who gives or gets, where that is one [default: 0]
    #[arg(long, value_name = "R")]
    root: Option<usize>,
    /// Bytes that a rank gives in a broadcast, reduction or scan, else of a block [default: 8192]
    #[arg(long, value_name = "B", value_parser = bytes)]
    bytes: Option<u64>,
    /// Bytes of blocks that differ: a file, or as in 8,0,16 one for each rank; for alltoall one from each rank to each,
    /// row after row
    #[arg(long, value_name = "LIST|FILE", conflicts_with = "bytes")]
    counts: Option<String>,
    /// Values must be combined in the order of their ranks
    #[arg(long)]
    in_order: bool,
    /// So many ranks on each node, one after the other [default: 1]
    #[arg(long, value_name = "K", value_parser = ranks)]
    per_node: Option<usize>,
    /// Ranks of a grid along each dimension, the last one changing fastest, as in 4x2: who has whom as neighbours
    /// [default: all in one row]
    #[arg(long, value_name = "AxB..", value_parser = grid)]
    grid: Option<Grid>,
    /// Those at the ends of the grid are neighbours, too
    #[arg(long)]
    periodic: bool,
}

impl Asked {
    /// Options that were given.
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

    /// Ranks of a node.
    pub(crate) fn per_node(&self) -> usize {
        self.per_node.unwrap_or(1)
    }

    /// The collective that is called `what`, with nodes in no order; `command` is what was typed before it.
    pub(crate) fn shape(&self, command: &str, what: &str) -> anyhow::Result<Shape> {
        let (operation, has_counts) = words::operation(what)?;
        let Some(ranks) = self.ranks else {
            return Err(misuse(format!("say among how many ranks: {command} {what} --ranks 4")));
        };
        let root = self.root.unwrap_or(0);
        if root >= ranks {
            return Err(misuse(format!("--root {root}: the last of {ranks} ranks is {}", ranks - 1)));
        }
        let bytes = if operation == CollectiveKind::Barrier { 0 } else { self.bytes.unwrap_or(BYTES) };
        let mut shape = Shape::new(operation, ranks, root, bytes);
        match &self.counts {
            Some(counts) => {
                shape.counts = each(counts, operation, ranks)?;
                shape.value_bytes = 1;
            }
            None if has_counts => {
                return Err(misuse(format!("say how many bytes each block has: {what} --counts 8,0,16")));
            }
            None => {}
        }
        if operation == CollectiveKind::Neighbours {
            shape.counts = self.neighbours(ranks, bytes)?;
        } else if self.grid.is_some() || self.periodic {
            return Err(misuse(format!("--grid and --periodic say who is whose neighbour: {what} has none")));
        }
        shape.in_order = self.in_order;
        shape.placement.per_node = self.per_node();
        if let Counts::Equal(bytes) = shape.counts {
            has_room(operation, ranks, bytes)?;
        }
        Ok(shape)
    }

    fn neighbours(&self, ranks: usize, bytes: u64) -> anyhow::Result<Counts> {
        let row = [ranks];
        let dims = self.grid.as_ref().map_or(&row[..], |grid| &grid.0);
        let count = dims.iter().try_fold(1_usize, |all, &one| all.checked_mul(one));
        if count != Some(ranks) {
            let dims = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
            return Err(misuse(format!("--grid {dims} does not have {}", words::ranks(ranks))));
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

/// Whether a buffer has room for all blocks, where a rank has those of all.
fn has_room(operation: CollectiveKind, ranks: usize, bytes: u64) -> anyhow::Result<()> {
    use CollectiveKind::{Allreduce, Bcast, Exscan, Reduce, Scan};
    let is_one = matches!(operation, Bcast | Reduce | Allreduce | Scan | Exscan);
    let blocks = if is_one { 1 } else { ranks as u128 };
    if u128::from(bytes) * blocks <= BYTES_MAX.into() {
        return Ok(());
    }
    Err(misuse(format!("{bytes} bytes for each of {ranks} ranks are more than {BYTES_MAX}")))
}
