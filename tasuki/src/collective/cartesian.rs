//! Grids of members.

use crate::collective::neighbourhood::Edges;
use crate::collective::{BlockCounts, CollectiveRequest, NeighborBuffers, OwnedBlocks};
use crate::{Communicator, Member, Plan, Pod, Result};

/// A grid of all members of a communicator, in which the last dimension varies fastest.
///
/// A member has two neighbours in each dimension, the one before it and the one after it. In a periodic dimension the
/// first member follows the last one, even if there are only two members or one: then both neighbours are the same
/// member, or the member itself. In a dimension that is not periodic, the members at its two ends have one neighbour
/// less.
///
/// The calls that exchange blocks with neighbours have two blocks for each dimension: for the neighbour before and the
/// one after along the first dimension, then along the second, and so on. What a member sends to one side arrives from
/// the other side. The block of a missing neighbour has its place in both buffers, but is neither sent nor written.
/// These calls are collective calls of the grid's communicator: all members make them, in the same order as its other
/// collective calls. Only neighbours exchange messages. A grid keeps its communicator alive.
///
/// ```
/// use tasuki::{Cartesian, dims_create};
/// tasuki::local(4, |job| {
///     let grid = Cartesian::new(job.world(), dims_create(job.size(), [0, 0])?, [false, true])?;
///     let me = job.rank().0;
///     let mut halos = [usize::MAX; 4];                              // above, below, left, right
///     grid.neighbor_alltoall((&[me; 4], &mut halos))?;
///     let [row, column] = grid.coords();                            // ranks 0 1 above ranks 2 3
///     let other = 2 * row + (1 - column);                           // left and right, around the end
///     let above = if row == 0 { usize::MAX } else { me - 2 };       // the value stays where nobody is
///     assert_eq!((halos[0], halos[2], halos[3]), (above, other, other));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: Cartesian topologies and neighbourhood collectives of MPI-4.
#[derive(Clone, Debug)]
pub struct Cartesian<const N: usize> {
    edges: Edges,
    dims: [usize; N],
    periodic: [bool; N],
}

impl<const N: usize> Cartesian<N> {
    /// The grid of all members with these sides (MPI_Cart_create without reordering). Member 0 is in the first place,
    /// and the others follow in their order. [`dims_create`](crate::dims_create()) chooses sides.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors, on all members: members pass different grids; the grid
    /// has not exactly one place for each member. Cost: an allgather of 8 bytes.
    ///
    /// ```
    /// use tasuki::{Cartesian, Member};
    /// tasuki::local(6, |job| {
    ///     let cylinder = Cartesian::new(job.world(), [2, 3], [false, true])?;
    ///     assert_eq!(cylinder.member_at([1, 3]), Some(Member(3))); // around the end of the second dimension
    ///     assert!(Cartesian::new(job.world(), [2, 2], [false, true]).is_err()); // four places for six members
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new(members: &Communicator, dims: [usize; N], periodic: [bool; N]) -> Result<Cartesian<N>> {
        let edges = Edges::new(members, members.inner().grid(&dims, &periodic)?);
        Ok(Cartesian { edges, dims, periodic })
    }

    /// The communicator of the members.
    ///
    /// ```
    /// use tasuki::{Cartesian, Sum};
    /// tasuki::local(4, |job| {
    ///     let grid = Cartesian::new(job.world(), [2, 2], [true, true])?;
    ///     let [row, column] = grid.coords();
    ///     assert_eq!(grid.communicator().allreduce(&[row, column], Sum)?, [2, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn communicator(&self) -> &Communicator {
        self.edges.communicator()
    }

    /// The sides: the number of members along each dimension.
    ///
    /// ```
    /// use tasuki::Cartesian;
    /// tasuki::local(4, |job| {
    ///     let grid = Cartesian::new(job.world(), tasuki::dims_create(4, [0, 0])?, [false, false])?;
    ///     assert_eq!(grid.dims(), [2, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn dims(&self) -> [usize; N] {
        self.dims
    }

    /// Which dimensions are periodic.
    ///
    /// ```
    /// use tasuki::Cartesian;
    /// tasuki::local(2, |job| {
    ///     let ring = Cartesian::new(job.world(), [2, 1], [true, false])?;
    ///     assert_eq!(ring.periodic(), [true, false]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn periodic(&self) -> [bool; N] {
        self.periodic
    }

    /// The place of this member.
    ///
    /// ```
    /// use tasuki::Cartesian;
    /// tasuki::local(6, |job| {
    ///     let grid = Cartesian::new(job.world(), [2, 3], [false, false])?;
    ///     let [row, column] = grid.coords();
    ///     assert_eq!(job.rank(), 3 * row + column);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn coords(&self) -> [usize; N] {
        self.place(self.communicator().rank())
    }

    /// The place of a member. None: there is no such member.
    ///
    /// ```
    /// use tasuki::{Cartesian, Member};
    /// tasuki::local(6, |job| {
    ///     let grid = Cartesian::new(job.world(), [2, 3], [true, false])?;
    ///     assert_eq!((grid.dims(), grid.periodic()), ([2, 3], [true, false]));
    ///     assert_eq!(grid.coords_of(Member(5)), Some([1, 2]));
    ///     assert_eq!(grid.coords_of(Member(6)), None);
    ///     let [[north, south], [west, _east]] = grid.neighbors();
    ///     if grid.coords() == [0, 0] {
    ///         assert_eq!((north, south, west), (Some(Member(3)), Some(Member(3)), None));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn coords_of(&self, member: Member) -> Option<[usize; N]> {
        (member.0 < self.communicator().size()).then(|| self.place(member))
    }

    fn place(&self, member: Member) -> [usize; N] {
        let (mut place, mut rest) = ([0; N], member.0);
        for (at, side) in place.iter_mut().zip(self.dims).rev() {
            (*at, rest) = (rest % side, rest / side);
        }
        place
    }

    /// The member in a place, whose coordinates are counted around the end of periodic dimensions. None: the place is
    /// outside of the grid.
    ///
    /// ```
    /// use tasuki::{Cartesian, Member};
    /// tasuki::local(3, |job| {
    ///     let (ring, line) = ([true], [false]);
    ///     assert_eq!(Cartesian::new(job.world(), [3], ring)?.member_at([-1]), Some(Member(2)));
    ///     assert_eq!(Cartesian::new(job.world(), [3], line)?.member_at([-1]), None);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn member_at(&self, coords: [isize; N]) -> Option<Member> {
        let dims = self.dims.into_iter().zip(self.periodic);
        let member = coords.into_iter().zip(dims).try_fold(0, |member, (at, (side, is_periodic))| {
            let at = if is_periodic { at.rem_euclid(side as isize) } else { at };
            usize::try_from(at).ok().filter(|&at| at < side).map(|at| member * side + at)
        });
        member.map(Member)
    }

    /// The members from which and to which a shift by `steps` along a dimension goes (MPI_Cart_shift). Receives and
    /// sends take them as they are: with `None` they do nothing.
    ///
    /// ```
    /// use tasuki::{Cartesian, Slot};
    /// tasuki::local(3, |job| {
    ///     let world = job.world();
    ///     let (before, after) = Cartesian::new(world, [3], [false])?.shift(0, 1);
    ///     let mut halo = 77_usize;
    ///     world.sendrecv(&job.rank().0, after, &mut halo, before, Slot(0))?;
    ///     assert_eq!(halo, [77, 0, 1][job.rank().0]);                   // nobody is before rank 0
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Panics: there is no such dimension.
    pub fn shift(&self, dim: usize, steps: isize) -> (Option<Member>, Option<Member>) {
        let steps = if self.periodic[dim] { steps % self.dims[dim] as isize } else { steps };
        let place = self.coords().map(|at| at as isize);
        let [source, destination] = [steps.checked_neg(), Some(steps)].map(|steps| {
            let mut there = place;
            there[dim] = there[dim].checked_add(steps?)?;
            self.member_at(there)
        });
        (source, destination)
    }

    /// The neighbours before and after this member along each dimension, in the order of the blocks.
    ///
    /// ```
    /// use tasuki::{Cartesian, Member};
    /// tasuki::local(3, |job| {
    ///     let line = Cartesian::new(job.world(), [3], [false])?;
    ///     let [[before, after]] = line.neighbors();
    ///     assert_eq!(before, [None, Some(Member(0)), Some(Member(1))][job.rank().index()]);
    ///     assert_eq!(after, [Some(Member(1)), Some(Member(2)), None][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn neighbors(&self) -> [[Option<Member>; 2]; N] {
        std::array::from_fn(|dim| self.shift(dim, 1).into())
    }

    /// Sends a block to each neighbour and receives one from each (MPI_Neighbor_alltoall). [`NeighborBuffers`] has the
    /// forms of the blocks. Where a neighbour is missing, a result that is returned has zeros, or an empty block in
    /// [`Blocks`](crate::Blocks), and `&mut result` keeps its values.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors on this member only: there are not two blocks for each
    /// dimension; a block for this member itself has another length than its room. A failure: two neighbours disagree
    /// about a length, which both find before any value is sent. Cost: a message of one cache line in each direction
    /// between neighbours, then one message for each block. The call always uses messages.
    ///
    /// ```
    /// use tasuki::Cartesian;
    /// tasuki::local(4, |job| {
    ///     let ring = Cartesian::new(job.world(), [4], [true])?;
    ///     let me = job.rank().index();
    ///     let [from_before, from_after] = ring.neighbor_alltoall(&[me, 10 * me])?[..] else { unreachable!() };
    ///     assert_eq!(from_before, 10 * ((me + 3) % 4)); // what it had for the member after it
    ///     assert_eq!(from_after, (me + 1) % 4);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn neighbor_alltoall<B: NeighborBuffers>(&self, blocks: B) -> Result<B::Output> {
        self.edges.neighbor_alltoall(blocks)
    }

    /// Begins an exchange with neighbours. [`OwnedBlocks`] has the forms of the blocks; what is said of missing
    /// neighbours at [`neighbor_alltoall`](Cartesian::neighbor_alltoall) holds here.
    ///
    /// ```
    /// use tasuki::{Cartesian, Request};
    /// tasuki::local(3, |job| {
    ///     let line = Cartesian::new(job.world(), [3], [false])?;
    ///     let me = job.rank().0;
    ///     let mut request = line.ineighbor_alltoall(([me; 2], [9; 2]))?;
    ///     let sum: u64 = (0..1000).sum();                                // work that needs no neighbour
    ///     assert_eq!((request.wait()?, sum), ([[9, 1], [0, 2], [1, 9]][me], 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). The call always uses messages.
    /// Errors and cost: those of [`neighbor_alltoall`](Cartesian::neighbor_alltoall).
    pub fn ineighbor_alltoall<B: OwnedBlocks>(&self, blocks: B) -> Result<CollectiveRequest<B::Output>> {
        self.edges.ineighbor_alltoall(blocks)
    }

    /// Prepares an exchange with neighbours, of blocks of `count` values, or with `&counts` of so many values for each
    /// neighbour. Input and result have the places of all blocks; in the result, those of missing neighbours are zeros,
    /// or empty with `&counts`.
    ///
    /// ```
    /// use tasuki::{Cartesian, Request};
    /// tasuki::local(4, |job| {
    ///     let grid = Cartesian::new(job.world(), [2, 2], [false, false])?;
    ///     let mut edges = grid.neighbor_alltoall_init::<f64>(1)?;
    ///     let mut heat = if job.rank() == 0 { 1.0 } else { 0.0 };
    ///     for _ in 0..100 {
    ///         edges.input()?.fill(heat);
    ///         edges.start()?;
    ///         edges.wait()?;
    ///         heat += (edges.result()?.iter().sum::<f64>() - 2.0 * heat) / 4.0; // each has two neighbours
    ///     }
    ///     assert!((heat - 0.25).abs() < 1e-9);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)); see [`Plan`]. Errors, on all members, none of which gets a plan:
    /// two neighbours disagree about a length (these two report it); there are not two counts for each dimension; a
    /// member has no room. Cost, besides that of any plan: to each neighbour a message of 8 bytes and 16 more for each
    /// block, and one of a cache line before if lengths are learned. The plan's memory is that of this member's own
    /// blocks and of a few signals.
    pub fn neighbor_alltoall_init<T: Pod>(&self, counts: impl BlockCounts) -> Result<Plan<T>> {
        self.edges.neighbor_alltoall_init(counts)
    }

    /// The communicator of the members that have the same place in all dimensions but those kept (MPI_Cart_sub), in the
    /// order of the grid.
    ///
    /// ```
    /// use tasuki::{Cartesian, Sum};
    /// tasuki::local(4, |job| {
    ///     let grid = Cartesian::new(job.world(), [2, 2], [false, false])?;
    ///     let row = grid.sub([false, true])?;                            // ranks 0 1, ranks 2 3
    ///     assert_eq!(row.allreduce(&job.rank().0, Sum)?, [1, 5][grid.coords()[0]]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective ([rules](crate::collective#rules)). Errors and cost: those of [`Communicator::split`].
    pub fn sub(&self, keep: [bool; N]) -> Result<Communicator> {
        let dropped = self.coords().into_iter().zip(self.dims).zip(keep).filter(|(_, is_kept)| !is_kept);
        self.communicator().split(dropped.fold(0_usize, |part, ((at, side), _)| part * side + at))
    }
}
