//! The search from one root, level by level.

use super::parents::{Parents, Visit};
use super::part::Part;
use super::visits::Visits;
use tasuki::prelude::*;

/// How visits reach the owners of vertices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchMethod {
    /// By handlers, while the search goes on.
    Handlers,
    /// By messages after each level.
    Messages,
}

/// A search that a job can repeat from several roots.
#[derive(Debug)]
pub struct Search<'j> {
    job: &'j Job,
    part: Part,
    parents: &'j Parents,
    visits: Visits<'j>,
}

impl<'j> Search<'j> {
    /// Prepares searches; `part` is this rank's part of the graph. Collective. The job must have the
    /// [`handlers`](super::handlers).
    pub fn new(job: &'j Job, part: Part) -> tasuki::Result<Search<'j>> {
        let parents = job.local::<Parents>().ok_or("the job was started without handlers")?;
        Ok(Search { job, part, parents, visits: Visits::new(job) })
    }

    /// This rank's vertices.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Finds all vertices that can be reached from the root. Returns the number of their edges on all ranks together.
    ///
    /// Collective. Cost, besides the visits: for each level an allreduce of a word, and a barrier if the method is
    /// handlers.
    pub fn run(&mut self, root: u32, method: SearchMethod) -> tasuki::Result<u64> {
        self.parents.lock().begin(self.part.count());
        if self.part.owner(root) == self.job.rank() {
            let place = self.part.place(root) as u32;
            self.parents.lock().visit(&[Visit { place, from: root }]);
        }
        self.job.barrier()?; // no vertex is visited before its owner has reset its state
        let (mut level, mut edges) = (Vec::new(), 0);
        loop {
            self.parents.lock().take_next(&mut level);
            if self.job.world().allreduce(&level.len(), Sum)? == 0 {
                break;
            }
            edges += self.visit_neighbours(&level, method)?;
        }
        Ok(self.job.world().allreduce(&edges, Sum)? / 2)
    }

    /// Sends visits to the owners of all neighbours. Returns the number of neighbours.
    fn visit_neighbours(&mut self, level: &[u32], method: SearchMethod) -> tasuki::Result<u64> {
        let mut edges = 0;
        for &place in level {
            let (from, neighbours) = (self.part.vertex(place as usize), self.part.neighbours(place as usize));
            edges += neighbours.len() as u64;
            for &other in neighbours {
                let visit = Visit { place: self.part.place(other) as u32, from };
                match method {
                    SearchMethod::Handlers => self.visits.call(self.part.owner(other), visit)?,
                    SearchMethod::Messages => self.visits.add(self.part.owner(other), visit),
                }
            }
        }
        match method {
            SearchMethod::Handlers => {
                self.visits.finish_calls()?;
                self.job.barrier()?; // until then other ranks may visit this rank's vertices
            }
            SearchMethod::Messages => self.visits.exchange(self.parents)?,
        }
        Ok(edges)
    }

    /// The parent of each vertex of the graph, by vertex number, on rank 0. Collective.
    pub fn tree(&self, vertices: usize) -> tasuki::Result<Option<Vec<Option<u32>>>> {
        const NONE: i64 = -1;
        let from = |place| self.parents.lock().from(place).map_or(NONE, i64::from);
        let own: Vec<i64> = (0..self.part.count()).map(from).collect();
        let Some(all) = self.job.world().gather(Uneven(&own), Rank(0))? else { return Ok(None) };
        let of = |vertex: usize| all.block(vertex % self.job.size())[vertex / self.job.size()];
        Ok(Some((0..vertices).map(|vertex| u32::try_from(of(vertex)).ok()).collect()))
    }
}
