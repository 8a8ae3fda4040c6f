//! Telling owners which of their vertices were reached.

use super::found::{Found, Visit};
use bytemuck::Zeroable;
use tasuki::prelude::*;
use tasuki::{Cause, Handler};

/// Visits that travel together. The owner is kept from its own search while it takes them.
const TOGETHER: usize = 1024;
/// Blocks of visits for each owner: one is filled while the other travels.
const BLOCKS: usize = 2;
const HANDLER: &str = "visit";

/// The handlers of a job that searches by them.
pub fn handlers() -> Handlers {
    let visit = |cx: &HandlerCx<'_>, visits: &[Visit]| cx.local::<Found>().vertices().visit(visits);
    Handlers::new().local(Found::default).add_many(HANDLER, visit)
}

/// Visits on their way to the handlers of their owners.
#[derive(Debug)]
pub(super) struct Called<'j> {
    job: &'j Job,
    handler: Handler,
    owners: Vec<Owner<'j>>,
}

/// What goes to one owner.
#[derive(Debug)]
struct Owner<'j> {
    rank: Rank,
    filling: Vec<Visit>,
    blocks: Array<Visit>,
    /// Blocks that it was called with,
    called: u64,
    /// and that it has taken.
    taken: Signal<'j>,
}

impl<'j> Called<'j> {
    /// Collective.
    pub(super) fn new(job: &'j Job) -> tasuki::Result<Called<'j>> {
        let owner = |rank| {
            let (blocks, taken) = (job.alloc_local(BLOCKS * TOGETHER)?, job.signal()?);
            Ok(Owner { rank, filling: Vec::with_capacity(TOGETHER), blocks, called: 0, taken })
        };
        let owners = job.ranks().map(owner).collect::<tasuki::Result<_>>()?;
        Ok(Called { job, handler: job.handler(HANDLER)?, owners })
    }

    /// One more visit, of a vertex of that rank.
    #[inline]
    pub(super) fn add(&mut self, owner: Rank, visit: Visit) -> tasuki::Result<()> {
        let owner = &mut self.owners[owner.index()];
        owner.filling.push(visit);
        if owner.filling.len() < TOGETHER {
            return Ok(());
        }
        owner.send(self.job, self.handler)
    }

    /// Returns when all visits have been taken.
    pub(super) fn finish(&mut self) -> tasuki::Result<()> {
        for owner in &mut self.owners {
            owner.send(self.job, self.handler)?;
        }
        self.owners.iter().try_for_each(|owner| owner.taken.wait_at_least(owner.called))
    }
}

impl Owner<'_> {
    fn send(&mut self, job: &Job, handler: Handler) -> tasuki::Result<()> {
        let count = self.filling.len();
        if count == 0 {
            return Ok(());
        }
        if self.rank == job.rank() {
            if let Some(found) = job.local::<Found>() {
                found.vertices().visit(&self.filling);
            }
            self.filling.clear();
            return Ok(());
        }
        // The block of two calls ago.
        self.taken.wait_at_least((self.called + 1).saturating_sub(BLOCKS as u64))?;
        let block = self.called as usize % BLOCKS * TOGETHER;
        self.blocks.write(block, &self.filling)?;
        let from = self.blocks.pointer().at(block);
        let taken = self.taken.on(job.rank()).add(1);
        loop {
            match job.call_with(self.rank, handler, from, count, taken) {
                // Others call it, too: what was called before is taken first.
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

/// Visits that are kept until the end of the level, and exchanged then.
#[derive(Debug)]
pub(super) struct Exchanged<'j> {
    job: &'j Job,
    to: Vec<Vec<Visit>>,
}

impl<'j> Exchanged<'j> {
    pub(super) fn new(job: &'j Job) -> Exchanged<'j> {
        Exchanged { job, to: vec![Vec::new(); job.size()] }
    }

    #[inline]
    pub(super) fn add(&mut self, owner: Rank, visit: Visit) {
        self.to[owner.index()].push(visit);
    }

    /// All ranks exchange what they have kept; each takes what is for it.
    pub(super) fn finish(&mut self, found: &Found) -> tasuki::Result<()> {
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
        let mut vertices = found.vertices();
        vertices.visit(&self.to[me.index()]);
        from.iter().for_each(|visits| vertices.visit(visits));
        self.to.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}
