//! What is asked for on the command line: a collective among so many ranks, or a file.

use super::{file, names};
use crate::say::misuse;
use clap::Args;
use std::path::Path;
use std::sync::Arc;
use tasuki_models::collective::Neighbours;
use tasuki_models::collective::algorithm::{ALGORITHMS, Algorithm};
use tasuki_models::collective::shape::{Counts, Operation, Shape};
use tasuki_models::schedule::{BYTES_MAX, Schedule};

/// Ranks at most: as many as addresses tell apart.
const RANKS_MAX: usize = tasuki_core::bootstrap::settings::SIZE_MAX;
/// Bytes where nobody says how many.
const BYTES: u64 = 8192;
/// Segments where nobody says how many; no more than there are values.
const SEGMENTS: u64 = 4;

/// Which schedule.
#[derive(Args)]
pub(crate) struct Ask {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter, scan, exscan,
    /// neighbours; or a file that `tasuki plan export --format json` wrote
    #[arg(value_name = "OPERATION|FILE.json")]
    what: String,
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
    /// The way to do it; without it the first one that fits, and all of them where plans are checked
    #[arg(long, value_name = "A")]
    algorithm: Option<String>,
    /// Segments, for algorithms that cut [default: 4, or fewer where there are fewer values]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    segments: Option<u64>,
    /// Values must be combined in the order of their ranks
    #[arg(long)]
    in_order: bool,
    /// So many ranks on each node, one after the other [default: 1]
    #[arg(long, value_name = "K", value_parser = ranks)]
    per_node: Option<usize>,
    /// Nodes of a torus along X, Y and Z, as in 4x2x2
    #[arg(long, value_name = "XxYxZ", value_parser = torus)]
    torus: Option<[usize; 3]>,
    /// Ranks of a grid along each dimension, the last one changing fastest, as in 4x2: who has whom as neighbours
    /// [default: all in one row]
    #[arg(long, value_name = "AxB..", value_parser = grid)]
    grid: Option<Grid>,
    /// Those at the ends of the grid are neighbours, too
    #[arg(long)]
    periodic: bool,
}

/// Ranks along each dimension.
#[derive(Clone)]
struct Grid(Vec<usize>);

/// A schedule with what is to be said of it.
pub(super) struct Plan {
    pub(super) schedule: Schedule,
    /// What does what by which algorithm, how much, among whom.
    pub(super) title: String,
    /// The same without the algorithm.
    pub(super) asked: String,
    /// That others would do, too.
    pub(super) remark: Option<String>,
}

impl Ask {
    /// The one schedule that is asked for, or the first one that fits.
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
        let mut plans = self.plans()?;
        let others: Vec<String> = plans.drain(1..).map(|plan| names::typed(plan.schedule.name())).collect();
        let mut plan = plans.remove(0);
        if !others.is_empty() {
            let (name, others) = (names::typed(plan.schedule.name()), others.join(", "));
            plan.remark = Some(format!("{name} is the first that fits; --algorithm takes others: {others}"));
        }
        Ok(plan)
    }

    /// All schedules that are asked for: at least one.
    pub(super) fn plans(&self) -> anyhow::Result<Vec<Plan>> {
        if self.is_file() {
            return Ok(vec![self.read()?]);
        }
        let (operation, has_counts) = names::operation(&self.what)?;
        let shape = self.shape(operation, has_counts)?;
        let of_it: Vec<&Algorithm> = ALGORITHMS.iter().filter(|one| one.operation == operation).collect();
        let fit: Vec<&Algorithm> = of_it.iter().copied().filter(|one| (one.fits)(&shape)).collect();
        let chosen = match &self.algorithm {
            Some(name) => vec![names::algorithm(name, &of_it, &self.what)?],
            None => fit,
        };
        if let Some(unfit) = chosen.iter().find(|one| !(one.fits)(&shape)) {
            let name = names::typed(unfit.name);
            return Err(misuse(format!("{name} does not fit {}", self.title(&shape))));
        }
        if chosen.is_empty() {
            return Err(misuse(format!("there is no algorithm for {}", self.title(&shape))));
        }
        let segments = self.segments.unwrap_or_else(|| usual_segments(&shape));
        let plan = |algorithm: &&Algorithm| {
            let title = format!("{} by {}{}", self.what, names::typed(algorithm.name), among(&shape));
            let schedule = algorithm.schedule(&shape, segments);
            let cut = if is_cut(algorithm, &shape, segments) {
                format!(", {segments} segments")
            } else {
                String::new()
            };
            Plan { schedule, title: title + &cut, asked: self.title(&shape), remark: None }
        };
        Ok(chosen.iter().map(plan).collect())
    }

    /// The GOAL text that is named in place of an operation.
    pub(super) fn goal(&self) -> Option<&str> {
        self.what.ends_with(".goal").then_some(self.what.as_str())
    }

    /// What is there and called as a file is none of the operations.
    fn is_file(&self) -> bool {
        self.what.ends_with(".json") || self.what.contains('/')
    }

    fn read(&self) -> anyhow::Result<Plan> {
        let options = [
            (self.ranks.is_some(), "--ranks"),
            (self.root.is_some(), "--root"),
            (self.bytes.is_some(), "--bytes"),
            (self.counts.is_some(), "--counts"),
            (self.algorithm.is_some(), "--algorithm"),
            (self.segments.is_some(), "--segments"),
            (self.in_order, "--in-order"),
            (self.per_node.is_some(), "--per-node"),
            (self.torus.is_some(), "--torus"),
            (self.grid.is_some(), "--grid"),
            (self.periodic, "--periodic"),
        ];
        if let Some((_, option)) = options.iter().find(|(is_given, _)| *is_given) {
            return Err(misuse(format!("{option} is said by the file: leave it out")));
        }
        let schedule = file::read(Path::new(&self.what))?;
        let title = format!("{} of {}, {}", schedule.name(), self.what, names::ranks(schedule.ranks()));
        Ok(Plan { schedule, asked: title.clone(), title, remark: None })
    }

    fn shape(&self, operation: Operation, has_counts: bool) -> anyhow::Result<Shape> {
        let Some(ranks) = self.ranks else {
            return Err(misuse(format!("say among how many ranks: tasuki plan .. {} --ranks 4", self.what)));
        };
        let root = self.root.unwrap_or(0);
        if root >= ranks {
            return Err(misuse(format!("--root {root}: the last of {ranks} ranks is {}", ranks - 1)));
        }
        let bytes = if operation == Operation::Barrier { 0 } else { self.bytes.unwrap_or(BYTES) };
        let mut shape = Shape::new(operation, ranks, root, bytes);
        match &self.counts {
            Some(counts) => {
                shape.counts = each(counts, operation, ranks)?;
                shape.value_bytes = 1;
            }
            None if has_counts => {
                return Err(misuse(format!(
                    "say how many bytes each block has: {} --counts 8,0,16",
                    self.what
                )));
            }
            None => {}
        }
        if operation == Operation::Neighbours {
            shape.counts = self.neighbours(ranks, bytes)?;
        } else if self.grid.is_some() || self.periodic {
            return Err(misuse(format!(
                "--grid and --periodic say who is whose neighbour: {} has none",
                self.what
            )));
        }
        shape.in_order = self.in_order;
        shape.placement.per_node = self.per_node.unwrap_or(1);
        if let Some(torus) = self.torus {
            shape.placement.torus = torus;
            let nodes = torus.iter().product::<usize>();
            if nodes.checked_mul(shape.placement.per_node) != Some(ranks) {
                let per_node = shape.placement.per_node;
                return Err(misuse(format!("{ranks} ranks do not fill {nodes} nodes, {per_node} on each")));
            }
        }
        let all = u128::from(bytes) * ranks as u128;
        if self.counts.is_none() && all > BYTES_MAX.into() {
            return Err(misuse(format!("{bytes} bytes for each of {ranks} ranks are more than {BYTES_MAX}")));
        }
        Ok(shape)
    }

    fn neighbours(&self, ranks: usize, bytes: u64) -> anyhow::Result<Counts> {
        let row = [ranks];
        let dims = self.grid.as_ref().map_or(&row[..], |grid| &grid.0);
        let count = dims.iter().try_fold(1_usize, |all, &one| all.checked_mul(one));
        if count != Some(ranks) {
            let dims = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
            return Err(misuse(format!("--grid {dims} does not have {}", names::ranks(ranks))));
        }
        let all = ranks as u128 * 2 * dims.len() as u128;
        if all * u128::from(bytes) > BYTES_MAX.into() || all > RANKS_MAX as u128 {
            return Err(misuse(format!("{all} blocks of {bytes} bytes are too many")));
        }
        let neighbours = Neighbours::cartesian(dims, &vec![self.periodic; dims.len()], bytes);
        let neighbours = neighbours.ok_or_else(|| misuse("a grid has ranks along each dimension"))?;
        Ok(Counts::Graph(Arc::new(neighbours)))
    }

    fn title(&self, shape: &Shape) -> String {
        self.what.clone() + &among(shape)
    }
}

/// Among whom, and how much.
fn among(shape: &Shape) -> String {
    let ranks = names::ranks(shape.ranks);
    let bytes = match &shape.counts {
        _ if shape.operation == Operation::Barrier => String::new(),
        Counts::Equal(bytes) => format!(", {bytes} B"),
        Counts::Graph(_) => String::new(),
        Counts::Each(_) | Counts::Matrix(_) => ", blocks that differ".into(),
    };
    use Operation::{Bcast, Gather, Reduce, Scatter};
    let has_root = matches!(shape.operation, Bcast | Reduce | Gather | Scatter);
    let root = if has_root { format!(", root {}", shape.root) } else { String::new() };
    format!(" among {ranks}{bytes}{root}")
}

/// Whether the number of segments makes a difference, to the root or its first neighbour.
fn is_cut(algorithm: &Algorithm, shape: &Shape, segments: u64) -> bool {
    let (cut, whole) = (algorithm.schedule(shape, segments), algorithm.schedule(shape, 1));
    [shape.root, (shape.root + 1) % shape.ranks].into_iter().any(|rank| cut.part(rank) != whole.part(rank))
}

fn usual_segments(shape: &Shape) -> u64 {
    match shape.counts {
        Counts::Equal(bytes) => (bytes / shape.value_bytes).clamp(1, SEGMENTS),
        _ => SEGMENTS,
    }
}

/// Blocks that differ, from a list or a file of one.
fn each(list: &str, operation: Operation, ranks: usize) -> anyhow::Result<Counts> {
    use Operation::*;
    let wanted = match operation {
        Gather | Scatter | Allgather | ReduceScatter => ranks,
        Alltoall => ranks.saturating_mul(ranks),
        _ => return Err(misuse("--counts: all blocks of this operation are alike; give --bytes")),
    };
    let is_list = list.split(',').all(|word| bytes(word).is_ok());
    let no_file = |error| misuse(format!("--counts {list} is no list of bytes, and as a file: {error}"));
    let read = || std::fs::read_to_string(list).map_err(no_file);
    let text = if is_list { list.to_string() } else { read()? };
    let numbers = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let counts: Result<Vec<u64>, _> = numbers.map(|word| bytes(word).map_err(|why| (word, why))).collect();
    let counts = counts.map_err(|(word, why)| misuse(format!("--counts: {word:?}: {why}")))?;
    if counts.len() != wanted {
        return Err(misuse(format!("--counts has {} numbers, and takes {wanted} here", counts.len())));
    }
    if counts.iter().map(|&count| u128::from(count)).sum::<u128>() > BYTES_MAX.into() {
        return Err(misuse(format!("--counts are more than {BYTES_MAX} bytes together")));
    }
    let counts = Arc::from(counts);
    Ok(if operation == Alltoall { Counts::Matrix(counts) } else { Counts::Each(counts) })
}

fn ranks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=RANKS_MAX).contains(number));
    number.ok_or_else(|| format!("a plan is made for 1 to {RANKS_MAX} ranks"))
}

/// A number of bytes, in units that are powers of two if it has one.
fn bytes(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let shift = match unit.to_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err("give bytes as in 1000, 8K or 1MiB".into()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    let bytes = bytes.ok_or("give bytes as in 1000, 8K or 1MiB")?;
    if bytes <= BYTES_MAX { Ok(bytes) } else { Err(format!("{BYTES_MAX} bytes are the most there can be")) }
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

fn grid(text: &str) -> Result<Grid, String> {
    let sides: Option<Vec<usize>> = text.split('x').map(|side| side.parse().ok()).collect();
    let sides =
        sides.filter(|sides| sides.len() <= 8 && sides.iter().all(|side| (1..=RANKS_MAX).contains(side)));
    sides.map(Grid).ok_or_else(|| "give the sides of a grid, at most 8, as in 4x2".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read() {
        assert_eq!((bytes("1000"), bytes("8K"), bytes("1MiB")), (Ok(1000), Ok(8192), Ok(1 << 20)));
        for wrong in ["", "K", "8Q", "-1", "1.5K", "99999999999999999999", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn blocks_that_differ_are_read() {
        let each = |list: &str, operation| each(list, operation, 2).map_err(|error| error.to_string());
        assert_eq!(each("8,0", Operation::Gather).unwrap(), Counts::Each(Arc::from([8, 0])));
        assert_eq!(each("1,2,3,4", Operation::Alltoall).unwrap(), Counts::Matrix(Arc::from([1, 2, 3, 4])));
        assert!(each("8", Operation::Gather).unwrap_err().contains("takes 2 here"));
        assert!(each("8,0", Operation::Bcast).unwrap_err().contains("alike"));
        assert!(each("no-such-file", Operation::Gather).unwrap_err().contains("no-such-file"));
    }

    #[test]
    fn sides_of_a_torus_are_read() {
        assert_eq!(torus("4x2x2"), Ok([4, 2, 2]));
        for wrong in ["4x2", "0x1x1", "4x2x2x2", "x", "99999999x99999999x99999999"] {
            assert!(torus(wrong).is_err(), "{wrong}");
        }
    }
}
