//! Exchanges with neighbours: on a grid of members, or along the edges of any graph.

use crate::collective::CollectiveRequest;
use crate::collective::plan::byte_counts;
use crate::engine::Cause;
use crate::{Communicator, Member, Plan, Pod, Rank, Result};
use std::sync::Arc;
use tasuki_collective::ChunkShape;

/// The neighbours of this member in a grid or graph of a communicator's members: the members to which it sends
/// blocks, and those from which it receives blocks.
///
/// Blocks to send are stored one behind the other in the order of [`destinations`](Neighbourhood::destinations),
/// received blocks in the order of [`sources`](Neighbourhood::sources). The calls below are collective calls of the
/// communicator that made the neighbourhood ([`Communicator::grid`], [`Communicator::graph`]): all members make them,
/// in the same order as its other collective calls, including members without neighbours. Only neighbours exchange
/// messages. A neighbourhood keeps its communicator alive.
///
/// ```
/// tasuki::local(4, |job| {
///     let ring = job.world().grid(&[4], &[true])?;
///     let me = job.rank().0;
///     let around = ring.exchange(&[10 * me, 10 * me + 1])?;             // to the previous, to the next
///     assert_eq!(around, [(me + 3) % 4 * 10 + 1, (me + 1) % 4 * 10]);   // from the previous, from the next
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: neighbourhood collectives of MPI-4.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    communicator: Communicator,
    inner: Arc<tasuki_collective::Neighbourhood>,
}

impl Communicator {
    /// The neighbourhood of this member in a grid of all members, in which the last dimension varies fastest. Its
    /// neighbours are the previous and the next member along the first dimension, then those along the second, and so
    /// on.
    ///
    /// In a `periodic` dimension the first member follows the last one, even if there are only two members or one: a
    /// block that is sent to one side arrives from the other side. In a dimension that is not periodic, members at
    /// the edges have fewer neighbours.
    ///
    /// ```
    /// use tasuki::Member;
    /// tasuki::local(4, |job| {
    ///     let grid = job.world().grid(&[2, 2], &[true, false])?;            // ranks 0 1 above ranks 2 3
    ///     if job.rank() == 1 {
    ///         assert_eq!(grid.destinations(), [Member(3), Member(3), Member(0)]); // up, down, left
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors, on all members: members pass different grids; the grid has not exactly one place for each
    /// member; `periodic` has not one entry for each dimension. Cost: an allgather of 8 bytes.
    pub fn grid(&self, dims: &[usize], periodic: &[bool]) -> Result<Neighbourhood> {
        let inner = Arc::new(self.inner().grid(dims, periodic)?);
        Ok(Neighbourhood { communicator: self.clone(), inner })
    }

    /// The neighbourhood of this member in a graph. Each member names only its own edges: the members from which it
    /// receives blocks, and those to which it sends blocks. A member that is named n times sends or receives n
    /// blocks, and the first block sent is the first received. A member may be its own neighbour, or have no
    /// neighbour.
    ///
    /// ```
    /// use tasuki::Member;
    /// tasuki::local(3, |job| {
    ///     let (all, first) = ([Member(1), Member(2)], [Member(0)]);
    ///     let is_first = job.rank() == 0;
    ///     let star = match is_first {
    ///         true => job.world().graph(&all, &[])?,                        // receives from the others
    ///         false => job.world().graph(&[], &first)?,
    ///     };
    ///     let me = job.rank().index();
    ///     let got = match is_first {
    ///         true => star.exchange_v(&[], &[], &[1, 2])?,
    ///         false => star.exchange_v(&vec![me; me], &[me], &[])?,
    ///     };
    ///     assert_eq!(got, if is_first { vec![1, 2, 2] } else { vec![] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors, on all members, none of which gets a neighbourhood: two members name a different number of
    /// edges between them (these two members report it); a member names a member that does not exist. Cost: a message
    /// of 8 bytes to each member, and an allgather of 8 bytes.
    pub fn graph(&self, sources: &[Member], destinations: &[Member]) -> Result<Neighbourhood> {
        let places = bytemuck::cast_slice::<Member, Rank>;
        let inner = Arc::new(self.inner().graph(places(sources), places(destinations))?);
        Ok(Neighbourhood { communicator: self.clone(), inner })
    }
}

impl Neighbourhood {
    /// The members from which blocks come, in the order of the blocks.
    pub fn sources(&self) -> &[Member] {
        bytemuck::cast_slice(self.inner.sources())
    }

    /// The members to which blocks go, in the order of the blocks.
    pub fn destinations(&self) -> &[Member] {
        bytemuck::cast_slice(self.inner.destinations())
    }

    /// Sends one block to each destination and returns one block from each source. All blocks have the same length.
    ///
    /// Collective. Errors on this member only, which has then not begun the call: `values` cannot be divided into
    /// blocks for the destinations; this member has sources and no destinations, so that it does not know the length of
    /// a block (use [`exchange_v`](Neighbourhood::exchange_v)). Errors that make the communicator fail on all members
    /// ([`Communicator::recreate`]): two neighbours disagree about a length, which both find before any value is sent;
    /// those of [`Communicator::barrier`]. Cost: a message of 32 bytes in each direction between neighbours, then one
    /// message for each block. The call always uses messages.
    pub fn exchange<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let (send_counts, recv_counts) = self.equal_counts(values.len(), "exchange")?;
        self.exchange_v(values, &send_counts, &recv_counts)
    }

    /// Exchanges blocks like [`exchange`](Neighbourhood::exchange), with different lengths: `send_counts` has the
    /// number of values for each destination, `recv_counts` that from each source. Errors besides, on this member only:
    /// there is not one count for each neighbour; `send_counts` do not add up to the number of `values`; a block for
    /// this member itself has two lengths.
    pub fn exchange_v<T: Pod>(
        &self,
        values: &[T],
        send_counts: &[usize],
        recv_counts: &[usize],
    ) -> Result<Vec<T>> {
        self.communicator.inner().exchange(&self.inner, values, (send_counts, recv_counts))
    }

    /// Begins an [`exchange`](Neighbourhood::exchange).
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(3, |job| {
    ///     let line = job.world().grid(&[3], &[false])?;
    ///     let own = vec![job.rank().0; line.destinations().len()];
    ///     let mut request = line.iexchange(own)?;
    ///     let sum: u64 = (0..1000).sum();                                 // work that needs no neighbour
    ///     let got: Vec<usize> = line.sources().iter().map(|source| source.0).collect();
    ///     assert_eq!((request.wait()?, sum), (got, 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. The rules of [`Communicator::iallreduce`] apply, except that the call always uses messages. Errors
    /// of this call: those of [`exchange`](Neighbourhood::exchange) that concern this member only. Later errors
    /// besides: two neighbours disagree about a length, which both find before any value is sent. Cost: that of
    /// [`exchange`](Neighbourhood::exchange).
    pub fn iexchange<T: Pod + Send + Sync>(&self, values: Vec<T>) -> Result<CollectiveRequest<Vec<T>>> {
        let (send_counts, recv_counts) = self.equal_counts(values.len(), "iexchange")?;
        self.iexchange_v(values, &send_counts, &recv_counts)
    }

    /// Begins an [`exchange_v`](Neighbourhood::exchange_v). The rules of [`iexchange`](Neighbourhood::iexchange) apply.
    /// Errors of this call besides: those of [`exchange_v`](Neighbourhood::exchange_v) that concern this member only.
    pub fn iexchange_v<T: Pod + Send + Sync>(
        &self,
        values: Vec<T>,
        send_counts: &[usize],
        recv_counts: &[usize],
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.communicator
            .inner()
            .start_exchange(&self.inner, values, (send_counts, recv_counts))
            .map(CollectiveRequest)
    }

    /// Prepares an exchange of blocks of `count` values. A member writes the blocks for its destinations one behind
    /// the other, and reads the blocks from its sources one behind the other.
    ///
    /// ```
    /// use tasuki::Request;
    /// tasuki::local(4, |job| {
    ///     let grid = job.world().grid(&[2, 2], &[false, false])?;
    ///     let mut edges = grid.exchange_init::<f64>(1)?;
    ///     let mut heat = if job.rank() == 0 { 1.0 } else { 0.0 };
    ///     for _ in 0..100 {
    ///         edges.input()?.fill(heat);                                    // each has two neighbours
    ///         edges.start()?;
    ///         edges.wait()?;
    ///         heat += edges.result()?.iter().map(|other| (other - heat) / 4.0).sum::<f64>();
    ///     }
    ///     assert!((heat - 0.25).abs() < 1e-9);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective, like [`Communicator::alltoall_init`]; see [`Plan`]. Errors, on all members, none
    /// of which gets a plan: two neighbours disagree about a length (these two report it); a member
    /// has no room. Cost, besides that of any plan: to each neighbour a message of 8 bytes and 16
    /// more for each block. The plan's memory is that of this member's own blocks and of a few
    /// signals.
    pub fn exchange_init<T: Pod>(&self, count: usize) -> Result<Plan<T>> {
        let (send_counts, recv_counts) =
            (vec![count; self.destinations().len()], vec![count; self.sources().len()]);
        let chunk_shape = ChunkShape::exchanged(count, send_counts.len(), recv_counts.len());
        Ok(Plan::new(self.prepare::<T>(&send_counts, &recv_counts)?, chunk_shape))
    }

    /// Prepares an exchange like [`exchange_init`](Neighbourhood::exchange_init), with blocks of
    /// different lengths: `send_counts` has the number of values for each destination,
    /// `recv_counts` that from each source.
    pub fn exchange_v_init<T: Pod>(&self, send_counts: &[usize], recv_counts: &[usize]) -> Result<Plan<T>> {
        Ok(Plan::new(self.prepare::<T>(send_counts, recv_counts)?, None))
    }

    fn prepare<T: Pod>(
        &self,
        send_counts: &[usize],
        recv_counts: &[usize],
    ) -> Result<tasuki_collective::Plan> {
        let [send_counts, recv_counts] = [send_counts, recv_counts].map(byte_counts::<T>);
        self.communicator
            .inner()
            .plan_exchange(&self.inner, (&send_counts, &recv_counts), &|| self.communicator.start_helper())
    }

    /// The number of values of each block, if `values` values are all blocks for the destinations.
    fn equal_counts(&self, values: usize, call: &str) -> Result<(Vec<usize>, Vec<usize>)> {
        let (to, from) = (self.destinations().len(), self.sources().len());
        let text = if to > 0 && !values.is_multiple_of(to) || to == 0 && values > 0 {
            format!("{values} values cannot be divided into blocks for {to} destinations")
        } else if to == 0 && from > 0 {
            "without destinations the length of a block is unknown: use the call that ends in _v".into()
        } else {
            let count = values.checked_div(to).unwrap_or(0);
            return Ok((vec![count; to], vec![count; from]));
        };
        Err(self
            .communicator
            .messages()
            .worker()
            .fault(Cause::Argument(text), || format!("{call}({values} values)")))
    }
}
