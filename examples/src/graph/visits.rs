//! The two methods to send visits to the owners of the vertices.

use super::parents::{Parents, Visit};
use bytemuck::Zeroable;
use tasuki::prelude::*;

/// The number of visits in one call of a handler. While the owner runs the handler, its own search is interrupted.
const VISITS_PER_CALL: usize = 1024;

/// Marks vertices of the called rank as reached.
fn visit(cx: &HandlerCx<'_>, visits: &[Visit]) {
    cx.local::<Parents>().lock().visit(visits);
}

const VISIT: Handler<[Visit], ()> = Handler::new("visit", visit);

/// The handlers that a job needs for [`SearchMethod::Handlers`](super::SearchMethod::Handlers).
pub fn handlers() -> Handlers {
    Handlers::new().local(Parents::default).add(VISIT)
}

/// Sends visits by calls of handlers.
#[derive(Debug)]
pub(super) struct HandlerVisits<'j> {
    job: &'j Job,
    to: Vec<Vec<Visit>>,
}

impl<'j> HandlerVisits<'j> {
    pub(super) fn new(job: &'j Job) -> HandlerVisits<'j> {
        HandlerVisits { job, to: vec![Vec::new(); job.size()] }
    }

    /// Adds a visit of a vertex of that owner. It is sent as soon as there are enough for one call.
    #[inline]
    pub(super) fn add(&mut self, owner: Rank, visit: Visit) -> tasuki::Result<()> {
        let visits = &mut self.to[owner.index()];
        visits.push(visit);
        if visits.len() < VISITS_PER_CALL {
            return Ok(());
        }
        VISIT.post(self.job, owner, visits)?; // the values are copied
        visits.clear();
        Ok(())
    }

    /// Returns when the handlers have run for all visits.
    pub(super) fn finish(&mut self) -> tasuki::Result<()> {
        for (owner, visits) in self.job.ranks().zip(&mut self.to).filter(|(_, visits)| !visits.is_empty()) {
            VISIT.post(self.job, owner, visits)?;
            visits.clear();
        }
        self.job.flush_calls()
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
