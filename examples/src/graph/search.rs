//! The search of one root, level by level.

use super::found::{Found, Visit};
use super::part::Part;
use super::visits::{Called, Exchanged};
use tasuki::prelude::*;
use tasuki::{Cause, Error};

/// How owners are told that their vertices were reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// By handlers, while the search goes on.
    Handlers,
    /// By messages after each level.
    Messages,
}

/// A search that a job can do again and again.
#[derive(Debug)]
pub struct Search<'j> {
    job: &'j Job,
    part: Part,
    found: &'j Found,
    called: Called<'j>,
    exchanged: Exchanged<'j>,
}

impl<'j> Search<'j> {
    /// Of that part of the graph, which is this rank's. Collective; the job has the [`handlers`](super::handlers).
    pub fn new(job: &'j Job, part: Part) -> tasuki::Result<Search<'j>> {
        let none = || Error::new(Cause::Program("the job was started without handlers".into()));
        let found = job.local::<Found>().ok_or_else(none)?;
        let (called, exchanged) = (Called::new(job)?, Exchanged::new(job));
        Ok(Search { job, part, found, called, exchanged })
    }

    /// This rank's vertices.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Finds all that can be reached from the root. The number of edges of what was found, of all ranks together.
    ///
    /// Collective. A sum of a word for each level, and by handlers a barrier, beside the visits.
    pub fn run(&mut self, root: u32, way: Way) -> tasuki::Result<u64> {
        self.found.vertices().begin(self.part.count());
        if self.part.owner(root) == self.job.rank() {
            let place = self.part.place(root) as u32;
            self.found.vertices().visit(&[Visit { place, from: root }]);
        }
        self.job.barrier()?; // nobody is visited before it has begun
        let (mut level, mut edges) = (Vec::new(), 0);
        loop {
            self.found.vertices().take_next(&mut level);
            if self.job.world().allreduce(&[level.len() as u64], Sum)?[0] == 0 {
                break;
            }
            edges += self.visit_neighbours(&level, way)?;
        }
        Ok(self.job.world().allreduce(&[edges], Sum)?[0] / 2)
    }

    /// Tells the owners of all neighbours; how many there are.
    fn visit_neighbours(&mut self, level: &[u32], way: Way) -> tasuki::Result<u64> {
        let mut edges = 0;
        for &place in level {
            let (from, neighbours) = (self.part.vertex(place as usize), self.part.neighbours(place as usize));
            edges += neighbours.len() as u64;
            for &other in neighbours {
                let visit = Visit { place: self.part.place(other) as u32, from };
                match way {
                    Way::Handlers => self.called.add(self.part.owner(other), visit)?,
                    Way::Messages => self.exchanged.add(self.part.owner(other), visit),
                }
            }
        }
        match way {
            Way::Handlers => {
                self.called.finish()?;
                self.job.barrier()?; // others still visit this rank's vertices before it
            }
            Way::Messages => self.exchanged.finish(self.found)?,
        }
        Ok(edges)
    }

    /// Where each vertex of the graph was found from, by its number; on rank 0. Collective.
    pub fn tree(&self, vertices: usize) -> tasuki::Result<Option<Vec<Option<u32>>>> {
        const NONE: i64 = -1;
        let most = vertices.div_ceil(self.job.size());
        let mut mine = vec![NONE; most];
        for (place, from) in mine.iter_mut().take(self.part.count()).enumerate() {
            *from = self.found.vertices().from(place).map_or(NONE, i64::from);
        }
        let Some(all) = self.job.world().gather(&mine, Rank(0))? else { return Ok(None) };
        let of = |vertex: usize| all[vertex % self.job.size() * most + vertex / self.job.size()];
        Ok(Some((0..vertices).map(|vertex| u32::try_from(of(vertex)).ok()).collect()))
    }
}
