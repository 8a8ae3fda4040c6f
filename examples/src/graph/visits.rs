//! The two methods to send visits to the owners of the vertices.

use super::parents::{Parents, Visit};
use bytemuck::Zeroable;
use tasuki::engine::{Cause, Handler};
use tasuki::prelude::*;

/// The number of visits in one call of a handler. While the owner runs the handler, its own search is interrupted.
const VISITS_PER_CALL: usize = 1024;
/// Blocks of visits for each owner: one is filled while the other is in flight.
const BLOCKS: usize = 2;
const HANDLER: &str = "visit";

/// The handlers that a job needs for [`SearchMethod::Handlers`](super::SearchMethod::Handlers).
pub fn handlers() -> Handlers {
    let visit = |cx: &HandlerCx<'_>, visits: &[Visit]| cx.local::<Parents>().lock().visit(visits);
    Handlers::new().local(Parents::default).add_many(HANDLER, visit)
}

/// Sends visits by calls of handlers.
#[derive(Debug)]
pub(super) struct HandlerVisits<'j> {
    job: &'j Job,
    handler: Handler,
    owners: Vec<OwnerVisits<'j>>,
}

/// The visits for one owner.
#[derive(Debug)]
struct OwnerVisits<'j> {
    rank: Rank,
    filling: Vec<Visit>,
    blocks: Array<Visit>,
    /// The number of calls for blocks so far.
    called: u64,
    /// Counts the calls whose handlers have run.
    taken: Signal<'j>,
}

impl<'j> HandlerVisits<'j> {
    /// Collective.
    pub(super) fn new(job: &'j Job) -> tasuki::Result<HandlerVisits<'j>> {
        let owner = |rank| {
            let (blocks, taken) = (job.alloc_local(BLOCKS * VISITS_PER_CALL)?, job.signal()?);
            Ok(OwnerVisits { rank, filling: Vec::with_capacity(VISITS_PER_CALL), blocks, called: 0, taken })
        };
        let owners = job.ranks().map(owner).collect::<tasuki::Result<_>>()?;
        Ok(HandlerVisits { job, handler: job.handler(HANDLER)?, owners })
    }

    /// Adds a visit of a vertex of that owner.
    #[inline]
    pub(super) fn add(&mut self, owner: Rank, visit: Visit) -> tasuki::Result<()> {
        let owner = &mut self.owners[owner.index()];
        owner.filling.push(visit);
        if owner.filling.len() < VISITS_PER_CALL {
            return Ok(());
        }
        owner.send(self.job, self.handler)
    }

    /// Returns when the handlers have run for all visits.
    pub(super) fn finish(&mut self) -> tasuki::Result<()> {
        for owner in &mut self.owners {
            owner.send(self.job, self.handler)?;
        }
        self.owners.iter().try_for_each(|owner| owner.taken.wait_at_least(owner.called))
    }
}

impl OwnerVisits<'_> {
    fn send(&mut self, job: &Job, handler: Handler) -> tasuki::Result<()> {
        let count = self.filling.len();
        if count == 0 {
            return Ok(());
        }
        if self.rank == job.rank() {
            if let Some(parents) = job.local::<Parents>() {
                parents.lock().visit(&self.filling);
            }
            self.filling.clear();
            return Ok(());
        }
        // The block was used two calls ago.
        self.taken.wait_at_least((self.called + 1).saturating_sub(BLOCKS as u64))?;
        let block = self.called as usize % BLOCKS * VISITS_PER_CALL;
        self.blocks.write(block, &self.filling)?;
        let from = self.blocks.pointer().at(block);
        let taken = self.taken.on(job.rank()).add(1);
        loop {
            match job.call_with(self.rank, handler, from, count, taken) {
                // Other ranks call this owner, too. The earlier calls must run first.
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => {
                    self.taken.wait_at_least(self.called)?;
                }
                other => break other?,
            }
        }
        self.called += 1;
        self.filling.clear();
        Ok(())
    }
}

/// Collects visits until the end of the level and exchanges them then.
#[derive(Debug)]
pub(super) struct MessageVisits<'j> {
    job: &'j Job,
    to: Vec<Vec<Visit>>,
}

impl<'j> MessageVisits<'j> {
    pub(super) fn new(job: &'j Job) -> MessageVisits<'j> {
        MessageVisits { job, to: vec![Vec::new(); job.size()] }
    }

    #[inline]
    pub(super) fn add(&mut self, owner: Rank, visit: Visit) {
        self.to[owner.index()].push(visit);
    }

    /// Exchanges the collected visits of all ranks. Each rank applies those of its vertices.
    pub(super) fn finish(&mut self, parents: &Parents) -> tasuki::Result<()> {
        let (world, me) = (self.job.world(), self.job.rank());
        let counts: Vec<u64> = self.to.iter().map(|visits| visits.len() as u64).collect();
        let all = world.allgather(&counts)?;
        let size = self.job.size();
        let mut from: Vec<Vec<Visit>> = (0..size)
            .map(|rank| {
                vec![
                    Visit::zeroed();
                    if rank == me.index() { 0 } else { all[rank * size + me.index()] as usize }
                ]
            })
            .collect();
        let peers = |rank: Rank| rank != me;
        world.scope(|scope| {
            let receives = self.job.ranks().zip(&mut from).filter(|(rank, _)| peers(*rank));
            for (rank, visits) in receives.filter(|(_, visits)| !visits.is_empty()) {
                scope.recv(visits, rank, Slot(0))?;
            }
            let sends = self.job.ranks().zip(&self.to).filter(|(rank, _)| peers(*rank));
            for (rank, visits) in sends.filter(|(_, visits)| !visits.is_empty()) {
                scope.send(visits, rank, Slot(0))?;
            }
            scope.wait_all()
        })?;
        let mut parents = parents.lock();
        parents.visit(&self.to[me.index()]);
        from.iter().for_each(|visits| parents.visit(visits));
        self.to.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}
