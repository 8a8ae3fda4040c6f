//! Exchanges with neighbours: on a grid of members, or along the edges of any graph.

use crate::collective::vector::byte_counts;
use crate::{Cause, CollectiveRequest, Communicator, Plan, Pod, Rank, Result};
use std::sync::Arc;
use tasuki_collective::ChunkShape;

/// Whom a member of a communicator gives blocks, and from whom it gets some: its own part of a grid or graph.
///
/// Blocks that are given lie one behind the other in the order of [`destinations`](Neighbourhood::destinations), those
/// that are got in the order of [`sources`](Neighbourhood::sources). The calls below are collective calls of the
/// communicator from which it was made ([`Communicator::grid`], [`Communicator::graph`]): all members make them, in the
/// same order as its other ones, those too that have no neighbours. Only neighbours exchange messages. It keeps that
/// communicator alive.
///
/// ```
/// tasuki::local(4, |job| {
///     let ring = job.world().grid(&[4], &[true])?;
///     let me = job.rank().0;
///     let around = ring.exchange(&[10 * me, 10 * me + 1])?;             // one value back, one on
///     assert_eq!(around, [(me + 3) % 4 * 10 + 1, (me + 1) % 4 * 10]);   // from before, from after
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Source: neighbourhood collectives of MPI-4.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    of: Communicator,
    inner: Arc<tasuki_collective::Neighbourhood>,
}

impl Communicator {
    /// The neighbourhood of this member on a grid of all members, the last dimension changing fastest: the member
    /// before and the one after it along the first dimension, then along the second, and so on.
    ///
    /// Where a dimension is `periodic` the member after the last is the first, be they two or one and the same: what
    /// goes to one side comes from the other. Else members at the edges have fewer neighbours.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(4, |job| {
    ///     let grid = job.world().grid(&[2, 2], &[true, false])?;            // ranks 0 1 above ranks 2 3
    ///     if job.rank() == 1 {
    ///         assert_eq!(grid.destinations(), [Rank(3), Rank(3), Rank(0)]); // up, down, left
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// Collective. Errors, on all members: they came with different grids; it has not as many places as there are
    /// members; `periodic` does not say it of each dimension. Costs an allgather of 8 bytes.
    pub fn grid(&self, dims: &[usize], periodic: &[bool]) -> Result<Neighbourhood> {
        let inner = Arc::new(self.inner().grid(dims, periodic)?);
        Ok(Neighbourhood { of: self.clone(), inner })
    }

    /// The neighbourhood of this member in a graph of which each member names its own edges alone: those from whom it
    /// gets blocks, and those for whom it has some. One that is named so many times gives or gets as many blocks, the
    /// first given being the first got; a member may be its own neighbour, or have none.
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let (all, first) = ([Rank(1), Rank(2)], [Rank(0)]);
    ///     let is_first = job.rank() == 0;
    ///     let star = match is_first {
    ///         true => job.world().graph(&all, &[])?,                        // gets from the others
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
    /// Collective. Errors, on all members, of which nobody has the neighbourhood then: what two say of the edges
    /// between them does not agree, which those two are told; one names a member that there is not. Costs a message of
    /// 8 bytes to each member, and an allgather of as much.
    pub fn graph(&self, sources: &[Rank], destinations: &[Rank]) -> Result<Neighbourhood> {
        let inner = Arc::new(self.inner().graph(sources, destinations)?);
        Ok(Neighbourhood { of: self.clone(), inner })
    }
}

impl Neighbourhood {
    /// From whom blocks come, in the order in which they lie.
    pub fn sources(&self) -> &[Rank] {
        self.inner.sources()
    }

    /// For whom blocks are, in the order in which they lie.
    pub fn destinations(&self) -> &[Rank] {
        self.inner.destinations()
    }

    /// A block from each source; `values` are as many blocks for the destinations, all of the same length.
    ///
    /// Collective. Errors: `values` cannot be divided so, or this member has sources and no destinations, so that it
    /// does not know how long blocks are ([`exchange_v`](Neighbourhood::exchange_v) says that); two neighbours disagree
    /// about a length: both find out, before any of it is on its way; a member died, or left. Costs a message of 32
    /// bytes each way between neighbours, and one for each block.
    pub fn exchange<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let (gives, gets) = self.equal(values.len(), "exchange")?;
        self.exchange_v(values, &gives, &gets)
    }

    /// The same of blocks that differ: of so many values for each destination as `gives` says, and from each source as
    /// `gets` says. Errors besides: there are not as many counts.
    pub fn exchange_v<T: Pod>(&self, values: &[T], gives: &[usize], gets: &[usize]) -> Result<Vec<T>> {
        let mut all = self.of.room(gets, "exchange_v")?;
        self.of.inner().exchange(&self.inner, values, (gives, gets), &mut all)?;
        Ok(all)
    }

    /// Begins [`exchange`](Neighbourhood::exchange).
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let line = job.world().grid(&[3], &[false])?;
    ///     let mine = vec![job.rank().0; line.destinations().len()];
    ///     let begun = line.iexchange(mine)?;
    ///     let inner: u64 = (0..1000).sum();                                 // work that needs no neighbour
    ///     let got: Vec<u32> = line.sources().iter().map(|source| source.0).collect();
    ///     assert_eq!((begun.wait()?, inner), (got, 499_500));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// CollectiveRequest, and as [`Communicator::iallreduce`]. Errors at once as of [`exchange`](Neighbourhood::exchange); two
    /// neighbours that disagree both find out later, of whatever length, before any of it is on its way. Costs a
    /// message of up to 48 bytes each way between neighbours; where the blocks do not fit in it beside their lengths,
    /// one more when that has arrived.
    pub fn iexchange<T: Pod + Send>(&self, values: Vec<T>) -> Result<CollectiveRequest<Vec<T>>> {
        let (gives, gets) = self.equal(values.len(), "iexchange")?;
        self.iexchange_v(values, &gives, &gets)
    }

    /// Begins [`exchange_v`](Neighbourhood::exchange_v). As [`iexchange`](Neighbourhood::iexchange).
    pub fn iexchange_v<T: Pod + Send>(
        &self,
        values: Vec<T>,
        gives: &[usize],
        gets: &[usize],
    ) -> Result<CollectiveRequest<Vec<T>>> {
        self.of.inner().start_exchange(&self.inner, values, (gives, gets)).map(CollectiveRequest)
    }

    /// Prepares an exchange of blocks of `count` values: those for the destinations are written one behind the other,
    /// those from the sources found one behind the other.
    ///
    /// ```
    /// tasuki::local(4, |job| {
    ///     let grid = job.world().grid(&[2, 2], &[false, false])?;
    ///     let mut edges = grid.exchange_init::<f64>(1)?;
    ///     let mut heat = if job.rank() == 0 { 1.0 } else { 0.0 };
    ///     for _ in 0..100 {
    ///         edges.write(0, &[heat; 2])?;                                  // each has two neighbours
    ///         edges.start()?;
    ///         edges.wait()?;
    ///         heat += edges.to_vec()?.iter().map(|theirs| (theirs - heat) / 4.0).sum::<f64>();
    ///     }
    ///     assert!((heat - 0.25).abs() < 1e-9);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    ///
    /// CollectiveRequest, as [`Communicator::alltoall_init`]; [`Plan`] says what holds of plans. Errors, on all members, of
    /// which nobody has the plan then: two neighbours disagree about a length, which those two are told; one has no
    /// room. Costs a message of 8 bytes and 16 more for each block to each neighbour, beside what making a plan costs:
    /// memory for its own blocks and a few signals, whatever others exchange.
    pub fn exchange_init<T: Pod>(&self, count: usize) -> Result<Plan<T>> {
        let (gives, gets) = (vec![count; self.destinations().len()], vec![count; self.sources().len()]);
        let passed = ChunkShape::exchanged(count, gives.len(), gets.len());
        Ok(Plan::of_two(self.prepare::<T>(&gives, &gets)?, passed))
    }

    /// The same of blocks that differ: of so many values for each destination as `gives` says, and from each source as
    /// `gets` says.
    pub fn exchange_v_init<T: Pod>(&self, gives: &[usize], gets: &[usize]) -> Result<Plan<T>> {
        Ok(Plan::of_two(self.prepare::<T>(gives, gets)?, None))
    }

    fn prepare<T: Pod>(&self, gives: &[usize], gets: &[usize]) -> Result<tasuki_collective::Plan> {
        let [gives, gets] = [gives, gets].map(byte_counts::<T>);
        self.of.inner().plan_exchange(&self.inner, (&gives, &gets), &|| self.of.start_helper())
    }

    /// How many values each block has, of so many for all destinations.
    fn equal(&self, values: usize, call: &str) -> Result<(Vec<usize>, Vec<usize>)> {
        let (to, from) = (self.destinations().len(), self.sources().len());
        let text = if to > 0 && !values.is_multiple_of(to) || to == 0 && values > 0 {
            format!("{values} values cannot be divided into blocks for {to} destinations")
        } else if to == 0 && from > 0 {
            "without destinations it cannot tell how long blocks are: say it with the form that ends in _v"
                .into()
        } else {
            let count = values.checked_div(to).unwrap_or(0);
            return Ok((vec![count; to], vec![count; from]));
        };
        Err(self.of.messages().worker().fault(Cause::Argument(text), || format!("{call}({values} values)")))
    }
}
