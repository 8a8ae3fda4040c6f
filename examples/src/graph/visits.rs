//! The two methods to send visits to the owners of the vertices.

use super::parents::{Parents, Visit};
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

/// Collects visits for each owner, and sends them by one of the two methods.
#[derive(Debug)]
pub(super) struct Visits<'j> {
    job: &'j Job,
    to: Vec<Vec<Visit>>,
}

impl<'j> Visits<'j> {
    pub(super) fn new(job: &'j Job) -> Visits<'j> {
        Visits { job, to: vec![Vec::new(); job.size()] }
    }

    /// Adds a visit that is exchanged at the end of the level.
    #[inline]
    pub(super) fn add(&mut self, owner: Rank, visit: Visit) {
        self.to[owner.index()].push(visit);
    }

    /// Exchanges the collected visits of all ranks. Each rank applies those of its vertices.
    pub(super) fn exchange(&mut self, parents: &Parents) -> tasuki::Result<()> {
        let received = self.job.world().alltoall(&self.to.iter().collect::<Blocks<_>>())?;
        parents.lock().visit(received.values());
        self.to.iter_mut().for_each(Vec::clear);
        Ok(())
    }

    /// Adds a visit that is sent as soon as there are enough for one call of the owner's handler.
    #[inline]
    pub(super) fn call(&mut self, owner: Rank, visit: Visit) -> tasuki::Result<()> {
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
    pub(super) fn finish_calls(&mut self) -> tasuki::Result<()> {
        for (owner, visits) in self.job.ranks().zip(&mut self.to).filter(|(_, visits)| !visits.is_empty()) {
            VISIT.post(self.job, owner, visits)?;
            visits.clear();
        }
        self.job.flush_calls()
    }
}
