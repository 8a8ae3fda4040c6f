//! What a collective is asked to do: the operation, who takes part, and how much; and from that, what each rank gives
//! and gets.

use crate::neighbours::{Got, NeighbourGraph};
use crate::{BufferId, Builder, Contract, Origin, Schedule, Span};
use std::sync::Arc;

/// What a collective achieves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CollectiveKind {
    /// Nobody goes on before all have come.
    Barrier,
    /// The root's bytes, for everybody.
    Bcast,
    /// Everybody's values combined, for the root.
    Reduce,
    /// Everybody's values combined, for everybody.
    Allreduce,
    /// Everybody's bytes one behind the other, for the root.
    Gather,
    /// The root's blocks, one for everybody.
    Scatter,
    /// Everybody's bytes one behind the other, for everybody.
    Allgather,
    /// A block of everybody's for everybody.
    Alltoall,
    /// Everybody's values combined, a block of the result for everybody.
    ReduceScatter,
    /// The values of a rank and those before it combined.
    Scan,
    /// The values of those before a rank combined; the first rank gets nothing.
    Exscan,
    /// A block for each neighbour, and one of each.
    Neighbours,
}

impl CollectiveKind {
    /// What its call is named.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::Bcast => "bcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Allreduce => "allreduce",
            CollectiveKind::Gather => "gather",
            CollectiveKind::Scatter => "scatter",
            CollectiveKind::Allgather => "allgather",
            CollectiveKind::Alltoall => "alltoall",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::Scan => "scan",
            CollectiveKind::Exscan => "exscan",
            CollectiveKind::Neighbours => "neighbours",
        }
    }

    /// Whether what it moves can be cut anywhere between values.
    pub fn is_divisible(self) -> bool {
        use CollectiveKind::{Allreduce, Bcast, Exscan, Reduce, Scan};
        matches!(self, Bcast | Reduce | Allreduce | Scan | Exscan)
    }

    /// Whether one rank has another part in it than all others.
    pub fn is_rooted(self) -> bool {
        use CollectiveKind::{Bcast, Gather, Reduce, Scatter};
        matches!(self, Bcast | Reduce | Gather | Scatter)
    }

    /// Whether values come together; else they are only moved.
    pub(super) fn combines(self) -> bool {
        use CollectiveKind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        matches!(self, Reduce | Allreduce | ReduceScatter | Scan | Exscan)
    }

    /// Whether each rank takes from each other one.
    pub fn is_mutual(self) -> bool {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, ReduceScatter};
        matches!(self, Barrier | Allreduce | Allgather | Alltoall | ReduceScatter)
    }
}

/// CombineWith many bytes blocks have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counts {
    /// All the same.
    Equal(u64),
    /// The block of each rank.
    Each(Arc<[u64]>),
    /// From each rank to each: row after row.
    Matrix(Arc<[u64]>),
    /// Of each edge of a graph.
    Graph(Arc<NeighbourGraph>),
}

/// Where ranks are: so many one after the other on each node, and nodes in a torus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placement {
    /// Ranks of a node.
    pub per_node: usize,
    /// Nodes along X, Y and Z, X changing fastest from one node to the next; all zero where nodes form none.
    pub torus: [usize; 3],
}

impl Placement {
    /// Each rank on a node of its own, wherever.
    pub const SPREAD: Placement = Placement { per_node: 1, torus: [0; 3] };

    /// Whether several of so many ranks share each of several nodes.
    pub fn shares_nodes(&self, ranks: usize) -> bool {
        self.per_node > 1 && self.per_node < ranks
    }
}

/// A collective that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// What it achieves.
    pub operation: CollectiveKind,
    /// CombineWith many ranks take part.
    pub ranks: usize,
    /// Who gives or gets, where that is one.
    pub root: usize,
    /// Bytes: what a rank gives in a broadcast, reduction or scan; else of a block.
    pub counts: Counts,
    /// Bytes of a value: what is cut is cut between values.
    pub value_bytes: u64,
    /// Whether values must be combined in the order of their ranks.
    pub in_order: bool,
    /// Where ranks are.
    pub placement: Placement,
}

/// The buffer that a collective has where one does, and what is given where there are two.
pub const DATA: BufferId = BufferId::FIRST;
/// What is got where there are two buffers.
pub const RESULT: BufferId = BufferId::SECOND;

impl Shape {
    /// A collective of blocks that are alike.
    pub fn new(operation: CollectiveKind, ranks: usize, root: usize, bytes: u64) -> Shape {
        let value_bytes = if bytes.is_multiple_of(8) { 8 } else { 1 };
        let (counts, placement) = (Counts::Equal(bytes), Placement::SPREAD);
        Shape { operation, ranks, root, counts, value_bytes, in_order: false, placement }
    }

    /// A schedule of one's own that achieves this, written down as a whole. Its first buffer is [`DATA`], the second
    /// [`RESULT`].
    ///
    /// ```
    /// use crate::{CollectiveKind, Shape};
    /// use crate::Builder;
    ///
    /// fn chain(b: &mut Builder) {
    ///     let data = b.buffer("data", b.bytes());
    ///     for pair in b.ranks().windows(2) {
    ///         let heard = b.last_write(data.on(pair[0]));
    ///         b.copy(data.on(pair[0]), data.on(pair[1])).after(heard);
    ///     }
    /// }
    /// let schedule = Shape::new(CollectiveKind::Bcast, 5, 3, 8192).build("my chain", chain);
    /// assert_eq!(schedule.check()?.depth, 4);
    /// # Ok::<(), Box<tasuki_schedule::Fault>>(())
    /// ```
    pub fn build(
        &self,
        name: impl Into<String>,
        write: impl Fn(&mut Builder) + Send + Sync + 'static,
    ) -> Schedule {
        let shape = self.clone();
        let asked = (self.ranks, self.root, self.bytes_of(0));
        Schedule::build(name, asked, write, move |rank| shape.contract(rank))
    }

    /// Bytes of the block from one rank to another; of a rank's where there is one.
    pub fn block(&self, from: usize, to: usize) -> u64 {
        match &self.counts {
            Counts::Equal(bytes) => *bytes,
            Counts::Each(each) => each[if self.operation == CollectiveKind::Scatter { to } else { from }],
            Counts::Matrix(matrix) => matrix[from * self.ranks + to],
            Counts::Graph(_) => 0,
        }
    }

    /// Where the block for a rank begins among those that another gives.
    pub fn sent_before(&self, from: usize, to: usize) -> u64 {
        match self.counts {
            Counts::Equal(bytes) => bytes * to as u64,
            _ => (0..to).map(|before| self.block(from, before)).sum(),
        }
    }

    /// Where the block of a rank begins among those that another gets.
    pub fn got_before(&self, from: usize, to: usize) -> u64 {
        match self.counts {
            Counts::Equal(bytes) => bytes * from as u64,
            _ => (0..from).map(|before| self.block(before, to)).sum(),
        }
    }

    /// Bytes of a rank's block, where each has one.
    pub fn bytes_of(&self, rank: usize) -> u64 {
        match &self.counts {
            Counts::Equal(bytes) => *bytes,
            Counts::Each(each) => each[rank],
            Counts::Matrix(_) | Counts::Graph(_) => 0,
        }
    }

    /// Whether all blocks are alike by what the call is.
    pub(crate) fn is_even(&self) -> bool {
        matches!(self.counts, Counts::Equal(_))
    }

    /// Where a rank's block begins among all. Constant time where blocks are alike.
    pub fn offset_of(&self, rank: usize) -> u64 {
        match &self.counts {
            Counts::Equal(bytes) => bytes * rank as u64,
            Counts::Each(each) => each[..rank].iter().sum(),
            Counts::Matrix(_) | Counts::Graph(_) => 0,
        }
    }

    /// Bytes of all blocks.
    pub fn bytes_of_all(&self) -> u64 {
        self.offset_of(self.ranks)
    }

    /// Bytes of the largest of a rank's buffers at most. None: more than a number can say.
    pub fn bytes_at_most(&self) -> Option<u64> {
        let sum = |counts: &[u64]| counts.iter().try_fold(0, |all: u64, &one| all.checked_add(one));
        match &self.counts {
            Counts::Equal(bytes) if self.operation.is_divisible() => Some(*bytes),
            Counts::Equal(bytes) => bytes.checked_mul(self.ranks as u64),
            Counts::Each(counts) | Counts::Matrix(counts) => sum(counts),
            Counts::Graph(_) => Some(0),
        }
    }

    /// Bytes of a rank's buffers: [`DATA`], [`RESULT`].
    pub fn rooms(&self, rank: usize) -> [u64; 2] {
        use CollectiveKind::*;
        let (own, all) = (self.bytes_of(rank), self.bytes_of_all());
        match self.operation {
            Barrier => [0, 0],
            Bcast | Reduce | Allreduce | Scan | Exscan => [self.bytes_of(0), 0],
            Gather | Scatter => [if rank == self.root { all } else { own }, 0],
            Allgather | ReduceScatter => [all, 0],
            Neighbours => match &self.counts {
                Counts::Graph(neighbours) => neighbours.bytes(rank),
                _ => [0, 0],
            },
            Alltoall => {
                let ranks = 0..self.ranks;
                let out = ranks.clone().map(|to| self.block(rank, to)).sum();
                [out, ranks.map(|from| self.block(from, rank)).sum()]
            }
        }
    }

    /// What that rank gives and gets.
    pub fn contract(&self, rank: usize) -> Contract {
        use CollectiveKind::*;
        let span = |offset, bytes| Span { buffer: DATA, offset, bytes };
        let from = |ranks: std::ops::Range<usize>, offset| Origin {
            ranks: ranks.map(|rank| rank as u32).collect(),
            buffer: DATA,
            offset,
        };
        let (everybody, all) = (0..self.ranks, span(0, self.bytes_of(0)));
        let own = |at: usize| span(self.offset_of(at), self.bytes_of(at));
        // Where a rank has nothing but its own block, that is at the beginning.
        let alone = span(0, self.bytes_of(rank));
        let (gives, gets) = match self.operation {
            Barrier => (vec![], vec![]),
            Bcast => {
                let root = self.root;
                (if rank == root { vec![all] } else { vec![] }, vec![(all, from(root..root + 1, 0))])
            }
            Reduce if rank != self.root => (vec![all], vec![]),
            Reduce | Allreduce => (vec![all], vec![(all, from(everybody, 0))]),
            Scan => (vec![all], vec![(all, from(0..rank + 1, 0))]),
            Exscan => (vec![all], if rank == 0 { vec![] } else { vec![(all, from(0..rank, 0))] }),
            Gather if rank != self.root => (vec![alone], vec![]),
            Gather => {
                let block = |of: usize| {
                    let offset = if of == rank { self.offset_of(of) } else { 0 };
                    (own(of), from(of..of + 1, offset))
                };
                (vec![own(rank)], everybody.map(block).collect())
            }
            Scatter => {
                let at = if rank == self.root { own(rank) } else { alone };
                let gives = if rank == self.root { vec![span(0, self.bytes_of_all())] } else { vec![] };
                (gives, vec![(at, from(self.root..self.root + 1, self.offset_of(rank)))])
            }
            Allgather => {
                let block = |of: usize| (own(of), from(of..of + 1, self.offset_of(of)));
                (vec![own(rank)], everybody.map(block).collect())
            }
            ReduceScatter => {
                (vec![span(0, self.bytes_of_all())], vec![(own(rank), from(everybody, self.offset_of(rank)))])
            }
            Neighbours => {
                let got = |got: Got| {
                    let Got { from: of, there, at, bytes, .. } = got;
                    (Span { buffer: RESULT, offset: at, bytes }, from(of..of + 1, there))
                };
                let gets = match &self.counts {
                    Counts::Graph(neighbours) => neighbours.got(rank).map(got).collect(),
                    _ => vec![],
                };
                (vec![span(0, self.rooms(rank)[0])], gets)
            }
            Alltoall => {
                let [out, _] = self.rooms(rank);
                let mut at = 0;
                let mut gets = Vec::new();
                for of in everybody {
                    let bytes = self.block(of, rank);
                    let sent_before = (0..rank).map(|to| self.block(of, to)).sum();
                    gets.push((Span { buffer: RESULT, offset: at, bytes }, from(of..of + 1, sent_before)));
                    at += bytes;
                }
                (vec![span(0, out)], gets)
            }
        };
        Contract { gives, gets, in_order: self.in_order, meets: self.operation == Barrier }
    }

    /// Where the `segment`th of so many begins among that many bytes, cut between values.
    pub fn cut(&self, bytes: u64, segments: u64, segment: u64) -> u64 {
        let values = bytes.div_ceil(self.value_bytes);
        (values * segment / segments * self.value_bytes).min(bytes)
    }
}
