//! Exchanges with neighbours along the edges of any graph of members.

use crate::collective::blocking::name_type;
use crate::collective::plan::{byte_count, byte_counts};
use crate::collective::{BlockCounts, CollectiveRequest, NeighborBuffers, OwnedBlocks};
use crate::{Communicator, Member, Plan, Pod, Rank, Result};
use std::sync::Arc;
use tasuki_collective::ChunkShape;
use tasuki_core::base::ValueKind;

/// The edges of this member in any graph of a communicator's members: the members from which it receives blocks, and
/// those to which it sends blocks (MPI_Dist_graph_create_adjacent).
///
/// Blocks to send are stored one behind the other in the order of [`destinations`](Neighbourhood::destinations),
/// received blocks in the order of [`sources`](Neighbourhood::sources). The calls below are collective calls of the
/// communicator: all members make them, in the same order as its other collective calls, including members without
/// edges. Only neighbours exchange messages. A neighbourhood keeps its communicator alive. On a grid,
/// [`Cartesian`](crate::Cartesian) knows the neighbours.
///
/// ```
/// use tasuki::{Blocks, Member, collective::Neighbourhood};
/// tasuki::local(3, |job| {
///     let (world, me) = (job.world(), job.rank().0);
///     let star = match me {
///         0 => Neighbourhood::new(world, &[Member(1), Member(2)], &[])?,    // receives from the others
///         _ => Neighbourhood::new(world, &[], &[Member(0)])?,
///     };
///     let own: Blocks<usize> = star.destinations().iter().map(|_| vec![me; me]).collect();
///     let got = star.neighbor_alltoall(&own)?;                              // lengths are learned
///     assert_eq!(got.values(), if me == 0 { &[1, 2, 2][..] } else { &[] });
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: neighbourhood collectives of MPI-4.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    edges: Edges,
    sources: Box<[Member]>,
    destinations: Box<[Member]>,
}

impl Neighbourhood {
    /// The neighbourhood of this member, which names only its own edges: the members from which it receives blocks, and
    /// those to which it sends blocks. A member that is named n times sends or receives n blocks, and the first block
    /// sent is the first received. A member may be its own neighbour, or have no neighbour.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors, on all members, none of which gets a neighbourhood: two
    /// members name a different number of edges between them (these two members report it); a member names a member
    /// that does not exist. Cost: a message of 8 bytes to each member, and an allgather of 8 bytes.
    ///
    /// ```
    /// use tasuki::{Member, collective::Neighbourhood};
    /// tasuki::local(3, |job| {
    ///     let (world, me) = (job.world(), job.rank().index());
    ///     let next = Neighbourhood::new(world, &[Member((me + 2) % 3)], &[Member((me + 1) % 3)])?;
    ///     assert_eq!(next.neighbor_alltoall(&[me])?, [(me + 2) % 3]);
    ///     assert!(Neighbourhood::new(world, &[], &[Member(0)]).is_err()); // rank 0 does not expect three blocks
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn new(members: &Communicator, sources: &[Member], destinations: &[Member]) -> Result<Neighbourhood> {
        let places = bytemuck::cast_slice::<Member, Rank>;
        let edges = Edges::new(members, members.inner().graph(places(sources), places(destinations))?);
        Ok(Neighbourhood { edges, sources: sources.into(), destinations: destinations.into() })
    }

    /// The communicator of the members.
    ///
    /// ```
    /// use tasuki::{Member, collective::Neighbourhood};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().0;
    ///     let (before, after) = ([Member((me + 2) % 3)], [Member((me + 1) % 3)]);
    ///     let ring = Neighbourhood::new(job.world(), &before, &after)?;
    ///     let members = ring.communicator();
    ///     assert_eq!((members.rank(), members.size()), (Member(me), 3));
    ///     assert_eq!((ring.sources(), ring.destinations()), (&before[..], &after[..]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn communicator(&self) -> &Communicator {
        self.edges.communicator()
    }

    /// The members from which blocks come, in the order of the blocks.
    ///
    /// ```
    /// use tasuki::{Member, collective::Neighbourhood};
    /// tasuki::local(2, |job| {
    ///     let peer = Member(1 - job.rank().index());
    ///     let twice = Neighbourhood::new(job.world(), &[peer, peer], &[peer, peer])?;
    ///     let got = twice.neighbor_alltoall(&[job.rank().index(); 2])?;
    ///     assert!(twice.sources().iter().zip(got).all(|(source, value)| *source == value));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn sources(&self) -> &[Member] {
        &self.sources
    }

    /// The members to which blocks go, in the order of the blocks.
    ///
    /// ```
    /// use tasuki::{Member, collective::Neighbourhood};
    /// tasuki::local(2, |job| {
    ///     let peer = [Member(1 - job.rank().index())];
    ///     let pair = Neighbourhood::new(job.world(), &peer, &peer)?;
    ///     let blocks: Vec<usize> = pair.destinations().iter().map(|to| 100 + to.index()).collect();
    ///     assert_eq!(pair.neighbor_alltoall(&blocks)?, [100 + job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn destinations(&self) -> &[Member] {
        &self.destinations
    }

    /// Sends a block to each destination and receives one from each source (MPI_Neighbor_alltoall). [`NeighborBuffers`]
    /// has the forms of the blocks. A member with sources and without destinations passes no values, and learns the
    /// length of equal blocks, too.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors on this member only: the values cannot be divided into
    /// blocks for the destinations, or `result` into blocks of the sources; there is not one of the
    /// [`Blocks`](crate::Blocks) for each destination. Other errors, and the cost: those of
    /// [`Cartesian::neighbor_alltoall`](crate::Cartesian::neighbor_alltoall).
    ///
    /// ```
    /// use tasuki::{Member, collective::Neighbourhood};
    /// tasuki::local(3, |job| {
    ///     let (world, first) = (job.world(), [Member(0)]);
    ///     let from_first = match job.rank().index() {
    ///         0 => Neighbourhood::new(world, &[], &[Member(1), Member(2)])?,
    ///         _ => Neighbourhood::new(world, &first, &[])?,
    ///     };
    ///     let blocks = if job.rank() == 0 { vec![10, 20] } else { vec![] };
    ///     assert_eq!(from_first.neighbor_alltoall(&blocks)?, [&[][..], &[10], &[20]][job.rank().index()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn neighbor_alltoall<B: NeighborBuffers>(&self, blocks: B) -> Result<B::Output> {
        self.edges.neighbor_alltoall(blocks)
    }

    /// Begins an exchange with neighbours. [`OwnedBlocks`] has the forms of the blocks.
    ///
    /// Collective ([rules](crate::collective#nonblocking-calls)). The call always uses messages.
    /// Errors and cost: those of [`neighbor_alltoall`](Neighbourhood::neighbor_alltoall).
    ///
    /// ```
    /// use tasuki::{Member, Request, collective::Neighbourhood};
    /// tasuki::local(2, |job| {
    ///     let peer = [Member(1 - job.rank().index())];
    ///     let pair = Neighbourhood::new(job.world(), &peer, &peer)?;
    ///     let mut request = pair.ineighbor_alltoall(vec![job.rank().index(); 3])?;
    ///     let sum: u64 = (0..1000).sum(); // work that does not need the values
    ///     assert_eq!((request.wait()?, sum), (vec![peer[0].index(); 3], 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn ineighbor_alltoall<B: OwnedBlocks>(&self, blocks: B) -> Result<CollectiveRequest<B::Output>> {
        self.edges.ineighbor_alltoall(blocks)
    }

    /// Prepares an exchange with neighbours, of blocks of `count` values, or with `&counts` of so many values for each
    /// destination. A member writes the blocks for its destinations one behind the other, and reads the blocks of its
    /// sources in the same way.
    ///
    /// Collective ([rules](crate::collective#rules)). Errors and cost: those of
    /// [`Cartesian::neighbor_alltoall_init`](crate::Cartesian::neighbor_alltoall_init).
    ///
    /// ```
    /// use tasuki::{Member, Request, collective::Neighbourhood};
    /// tasuki::local(3, |job| {
    ///     let me = job.rank().index();
    ///     let (before, after) = ([Member((me + 2) % 3)], [Member((me + 1) % 3)]);
    ///     let mut shift = Neighbourhood::new(job.world(), &before, &after)?.neighbor_alltoall_init::<usize>(1)?;
    ///     shift.input()?.fill(me);
    ///     for steps in 1..4 {
    ///         shift.start()?;
    ///         shift.wait()?;
    ///         let got = shift.result()?[0];
    ///         assert_eq!(got, (me + 3 - steps) % 3);
    ///         shift.input()?.fill(got); // pass it on
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn neighbor_alltoall_init<T: Pod>(&self, counts: impl BlockCounts) -> Result<Plan<T>> {
        self.edges.neighbor_alltoall_init(counts)
    }
}

/// What a member exchanges blocks with its neighbours by.
#[derive(Clone, Debug)]
pub(crate) struct Edges {
    communicator: Communicator,
    inner: Arc<tasuki_collective::Neighbourhood>,
}

impl Edges {
    pub(crate) fn new(communicator: &Communicator, inner: tasuki_collective::Neighbourhood) -> Edges {
        Edges { communicator: communicator.clone(), inner: Arc::new(inner) }
    }

    pub(crate) fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    pub(crate) fn neighbor_alltoall<B: NeighborBuffers>(&self, blocks: B) -> Result<B::Output> {
        blocks.exchange(&self.communicator, &self.inner).map_err(name_type::<B::Value>)
    }

    pub(crate) fn ineighbor_alltoall<B: OwnedBlocks>(
        &self,
        blocks: B,
    ) -> Result<CollectiveRequest<B::Output>> {
        blocks.ineighbor_alltoall(&self.communicator, &self.inner).map(CollectiveRequest::of::<B::Value>)
    }

    pub(crate) fn neighbor_alltoall_init<T: Pod>(&self, counts: impl BlockCounts) -> Result<Plan<T>> {
        let (prepare, on) = (|| self.communicator.start_helper(), self.communicator.inner());
        let counts = counts.counts();
        let chunk_shape = counts.ok().and_then(|count| ChunkShape::exchanged(count, &self.inner));
        let bytes = counts.map(byte_count::<T>).map_err(byte_counts::<T>);
        let bytes = bytes.as_ref().map(|&bytes| bytes).map_err(Vec::as_slice);
        Ok(Plan::new(
            on.plan_neighbor_alltoall(&self.inner, bytes, ValueKind::of::<T>(), &prepare)?,
            chunk_shape,
        ))
    }
}
