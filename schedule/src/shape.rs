//! The parameters of a collective: its kind, ranks, root and sizes. The contract of each rank follows from them.

use crate::neighbour_graph::{NeighbourGraph, ReceivedBlock};
use crate::{BufferId, BufferSpan, Builder, Contract, Origin, Schedule};
use std::sync::Arc;

/// A kind of collective.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::CollectiveKind;
/// assert_eq!(CollectiveKind::ReduceScatter.name(), "reduce_scatter");
/// assert!(CollectiveKind::Gather.is_rooted() && CollectiveKind::Barrier.is_mutual());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CollectiveKind {
    /// No rank leaves before all ranks have entered.
    Barrier,
    /// All ranks get the root's bytes.
    Bcast,
    /// The root gets the values of all ranks, combined.
    Reduce,
    /// All ranks get the values of all ranks, combined.
    Allreduce,
    /// The root gets the blocks of all ranks, in the order of ranks.
    Gather,
    /// Each rank gets its block of the root's bytes.
    Scatter,
    /// All ranks get the blocks of all ranks, in the order of ranks.
    Allgather,
    /// Each rank gets one block from each rank.
    Alltoall,
    /// Each rank gets its block of the combined values of all ranks.
    ReduceScatter,
    /// Each rank gets the combined values of itself and all ranks before it.
    Scan,
    /// Each rank gets the combined values of all ranks before it; rank 0 gets nothing.
    Exscan,
    /// Each rank exchanges blocks with its neighbours in a graph.
    Neighbours,
}

impl CollectiveKind {
    /// The name of the call.
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

    /// Returns true if the data can be cut between any two values.
    pub fn is_divisible(self) -> bool {
        use CollectiveKind::{Allreduce, Bcast, Exscan, Reduce, Scan};
        matches!(self, Bcast | Reduce | Allreduce | Scan | Exscan)
    }

    /// Returns true if the collective has a root.
    pub fn is_rooted(self) -> bool {
        use CollectiveKind::{Bcast, Gather, Reduce, Scatter};
        matches!(self, Bcast | Reduce | Gather | Scatter)
    }

    /// Returns true if the collective combines values; otherwise it only moves them.
    pub(super) fn combines(self) -> bool {
        use CollectiveKind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        matches!(self, Reduce | Allreduce | ReduceScatter | Scan | Exscan)
    }

    /// Returns true if each rank gets data from every other rank.
    pub fn is_mutual(self) -> bool {
        use CollectiveKind::{Allgather, Allreduce, Alltoall, Barrier, ReduceScatter};
        matches!(self, Barrier | Allreduce | Allgather | Alltoall | ReduceScatter)
    }
}

/// Sizes of blocks, in bytes.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{CollectiveKind, Counts, Shape};
/// let equal = Shape::new(CollectiveKind::Gather, 3, 0, 16);
/// assert_eq!((equal.bytes_of(2), equal.bytes_of_all()), (16, 48));
/// let unequal = Shape { counts: Counts::Each([8, 0, 24].into()), ..equal };
/// assert_eq!((unequal.bytes_of(2), unequal.offset_of(2), unequal.bytes_of_all()), (24, 8, 32));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counts {
    /// All blocks have this size.
    Equal(u64),
    /// One size for the block of each rank.
    Each(Arc<[u64]>),
    /// One size for each pair of ranks: the row is the sender, the column the receiver.
    Matrix(Arc<[u64]>),
    /// One size for each edge of a graph.
    Graph(Arc<NeighbourGraph>),
}

/// The placement of ranks: consecutive ranks share a node, and nodes may form a torus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placement {
    /// Ranks on each node.
    pub per_node: usize,
    /// Number of nodes along X, Y and Z; X changes fastest from one node to the next. All zero where nodes form no
    /// torus.
    pub torus: [usize; 3],
}

impl Placement {
    /// Each rank on a node of its own, without a torus.
    pub const SPREAD: Placement = Placement { per_node: 1, torus: [0; 3] };

    /// Returns true if there are several nodes, and several ranks share a node.
    pub fn shares_nodes(&self, ranks: usize) -> bool {
        self.per_node > 1 && self.per_node < ranks
    }
}

/// The parameters of a collective.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{CollectiveKind, Shape};
/// let shape = Shape::new(CollectiveKind::Scatter, 4, 1, 256); // from rank 1, 256 bytes for each of 4 ranks
/// assert_eq!((shape.root, shape.bytes_of_all()), (1, 1024));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Which collective it is.
    pub collective: CollectiveKind,
    /// The number of ranks.
    pub ranks: usize,
    /// The root, where the collective has one.
    pub root: usize,
    /// Sizes in bytes: all data of a rank in a broadcast, reduction or scan; blocks otherwise.
    pub counts: Counts,
    /// Size of a value in bytes. Data are cut only between values.
    pub value_bytes: u64,
    /// True if values must be combined in the combining order ([`crate::combining_order`]); false if any order gives
    /// the same result, or the program accepts any.
    pub in_order: bool,
    /// The placement of the ranks.
    pub placement: Placement,
}

/// The buffer of a collective with one buffer; the send buffer of a collective with two.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{ALGORITHMS, CollectiveKind, DATA, Shape};
/// let shape = Shape::new(CollectiveKind::Bcast, 4, 0, 64);
/// let fits = |one: &&tasuki::schedule::Algorithm| one.collective == shape.collective && (one.fits)(&shape);
/// let algorithm = ALGORITHMS.iter().find(fits).expect("there is one");
/// assert_eq!(algorithm.schedule(&shape, 1).contract(0).inputs[0].buffer, DATA);
/// ```
pub const DATA: BufferId = BufferId::FIRST;
/// The receive buffer of a collective with two buffers.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{CollectiveKind, RESULT, Shape};
/// let shape = Shape::new(CollectiveKind::Alltoall, 4, 0, 64); // 64 bytes for each rank
/// let (received, _) = &shape.contract(0).outputs[0];
/// assert_eq!(received.buffer, RESULT);
/// ```
pub const RESULT: BufferId = BufferId::SECOND;

impl Shape {
    /// A collective whose blocks all have `bytes` bytes.
    pub fn new(collective: CollectiveKind, ranks: usize, root: usize, bytes: u64) -> Shape {
        let value_bytes = if bytes.is_multiple_of(8) { 8 } else { 1 };
        let (counts, placement) = (Counts::Equal(bytes), Placement::SPREAD);
        Shape { collective, ranks, root, counts, value_bytes, in_order: false, placement }
    }

    /// Creates a schedule that achieves this collective from a program that describes all ranks at once. Its first
    /// buffer is [`DATA`], the second [`RESULT`].
    ///
    /// ```
    /// use tasuki_schedule::{CollectiveKind, Shape};
    /// use tasuki_schedule::Builder;
    ///
    /// fn chain(b: &mut Builder) {
    ///     let data = b.buffer("data", b.bytes());
    ///     for pair in b.ranks().windows(2) {
    ///         let written = b.last_write(data.on(pair[0]));
    ///         b.copy(data.on(pair[0]), data.on(pair[1])).after(written);
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

    /// Size in bytes of the block from one rank to another; where each rank has one block, its size.
    pub fn block(&self, from: usize, to: usize) -> u64 {
        match &self.counts {
            Counts::Equal(bytes) => *bytes,
            Counts::Each(each) => each[if self.collective == CollectiveKind::Scatter { to } else { from }],
            Counts::Matrix(matrix) => matrix[from * self.ranks + to],
            Counts::Graph(_) => 0,
        }
    }

    /// Offset of the block for `to` in the send buffer of `from`, in bytes.
    pub fn send_offset(&self, from: usize, to: usize) -> u64 {
        match self.counts {
            Counts::Equal(bytes) => bytes * to as u64,
            _ => (0..to).map(|before| self.block(from, before)).sum(),
        }
    }

    /// Offset of the block from `from` in the receive buffer of `to`, in bytes.
    pub fn recv_offset(&self, from: usize, to: usize) -> u64 {
        match self.counts {
            Counts::Equal(bytes) => bytes * from as u64,
            _ => (0..from).map(|before| self.block(before, to)).sum(),
        }
    }

    /// Size in bytes of the block of `rank`, where each rank has one block.
    pub fn bytes_of(&self, rank: usize) -> u64 {
        match &self.counts {
            Counts::Equal(bytes) => *bytes,
            Counts::Each(each) => each[rank],
            Counts::Matrix(_) | Counts::Graph(_) => 0,
        }
    }

    /// Returns true if all blocks are declared to have the same size.
    pub(crate) fn is_even(&self) -> bool {
        matches!(self.counts, Counts::Equal(_))
    }

    /// Offset in bytes of the block of `rank` among all blocks. Takes constant time where blocks have the same size.
    pub fn offset_of(&self, rank: usize) -> u64 {
        match &self.counts {
            Counts::Equal(bytes) => bytes * rank as u64,
            Counts::Each(each) => each[..rank].iter().sum(),
            Counts::Matrix(_) | Counts::Graph(_) => 0,
        }
    }

    /// Size in bytes of all blocks together.
    pub fn bytes_of_all(&self) -> u64 {
        self.offset_of(self.ranks)
    }

    /// An upper bound of the bytes of a rank's largest buffer; `None` if it exceeds 64 bits.
    pub fn bytes_at_most(&self) -> Option<u64> {
        let sum = |counts: &[u64]| counts.iter().try_fold(0, |all: u64, &one| all.checked_add(one));
        match &self.counts {
            Counts::Equal(bytes) if self.collective.is_divisible() => Some(*bytes),
            Counts::Equal(bytes) => bytes.checked_mul(self.ranks as u64),
            Counts::Each(counts) | Counts::Matrix(counts) => sum(counts),
            Counts::Graph(_) => Some(0),
        }
    }

    /// Sizes in bytes of the buffers of `rank`: [`DATA`] and [`RESULT`].
    pub fn buffer_bytes(&self, rank: usize) -> [u64; 2] {
        use CollectiveKind::*;
        let (own, all) = (self.bytes_of(rank), self.bytes_of_all());
        match self.collective {
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

    /// The inputs and outputs of `rank`.
    pub fn contract(&self, rank: usize) -> Contract {
        use CollectiveKind::*;
        let span = |offset, bytes| BufferSpan { buffer: DATA, offset, bytes };
        let from = |ranks: std::ops::Range<usize>, offset| Origin {
            ranks: ranks.map(|rank| rank as u32).collect(),
            buffer: DATA,
            offset,
        };
        let (everybody, all) = (0..self.ranks, span(0, self.bytes_of(0)));
        let own = |at: usize| span(self.offset_of(at), self.bytes_of(at));
        // A rank that has only its own block has it at the beginning of the buffer.
        let alone = span(0, self.bytes_of(rank));
        let (inputs, outputs) = match self.collective {
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
                let inputs = if rank == self.root { vec![span(0, self.bytes_of_all())] } else { vec![] };
                (inputs, vec![(at, from(self.root..self.root + 1, self.offset_of(rank)))])
            }
            Allgather => {
                let block = |of: usize| (own(of), from(of..of + 1, self.offset_of(of)));
                (vec![own(rank)], everybody.map(block).collect())
            }
            ReduceScatter => {
                (vec![span(0, self.bytes_of_all())], vec![(own(rank), from(everybody, self.offset_of(rank)))])
            }
            Neighbours => {
                let output = |block: ReceivedBlock| {
                    let ReceivedBlock { from: of, there, at, bytes, .. } = block;
                    (BufferSpan { buffer: RESULT, offset: at, bytes }, from(of..of + 1, there))
                };
                let outputs = match &self.counts {
                    Counts::Graph(neighbours) => neighbours.received_blocks(rank).map(output).collect(),
                    _ => vec![],
                };
                (vec![span(0, self.buffer_bytes(rank)[0])], outputs)
            }
            Alltoall => {
                let [out, _] = self.buffer_bytes(rank);
                let mut at = 0;
                let mut outputs = Vec::new();
                for of in everybody {
                    let bytes = self.block(of, rank);
                    let send_offset = (0..rank).map(|to| self.block(of, to)).sum();
                    outputs.push((
                        BufferSpan { buffer: RESULT, offset: at, bytes },
                        from(of..of + 1, send_offset),
                    ));
                    at += bytes;
                }
                (vec![span(0, out)], outputs)
            }
        };
        Contract { inputs, outputs, in_order: self.in_order, synchronizes: self.collective == Barrier }
    }

    /// Offset where segment `segment` of `segments` equal segments of `bytes` bytes begins. Cuts lie between values.
    pub fn cut(&self, bytes: u64, segments: u64, segment: u64) -> u64 {
        let values = bytes.div_ceil(self.value_bytes);
        (values * segment / segments * self.value_bytes).min(bytes)
    }
}
