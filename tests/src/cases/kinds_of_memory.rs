//! Areas in each kind of memory on every rank, for cases that move bytes between all of them.

use crate::exchange::exchange_all;
use tasuki::onesided::Registered;
use tasuki::{Array, GlobalPtr, Job, Rank, Result};

/// Kinds of memory of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Job memory, allocated on all ranks.
    Job,
    /// Memory of the program that it registered.
    Program,
}

pub(crate) const KINDS: [Kind; 2] = [Kind::Job, Kind::Program];

/// One area of bytes in each kind of memory on every rank.
#[derive(Debug)]
pub(crate) struct Areas {
    shared: Array<u8>,
    own: Registered<u8>,
    owns: Vec<GlobalPtr<u8>>,
}

impl Areas {
    /// Makes areas of `bytes` zero bytes. Collective.
    pub(crate) fn new(job: &Job, bytes: usize) -> Result<Areas> {
        let shared = job.alloc::<u8>(bytes)?;
        let own = job.register(vec![0_u8; bytes])?;
        let owns = exchange_all(job, own.pointer())?;
        Ok(Areas { shared, own, owns })
    }

    /// The start of the area of `kind` on `rank`.
    pub(crate) fn on(&self, kind: Kind, rank: Rank) -> GlobalPtr<u8> {
        match kind {
            Kind::Job => self.shared.on(rank),
            Kind::Program => self.owns[rank.index()],
        }
    }

    /// The present bytes of this rank's area, read without the fabric.
    pub(crate) fn image(&self, kind: Kind) -> Result<Vec<u8>> {
        match kind {
            Kind::Job => self.shared.to_vec(),
            Kind::Program => Ok(self.own.to_vec()),
        }
    }

    /// Writes this rank's area before other ranks access it.
    pub(crate) fn set(&self, job: &Job, kind: Kind, image: &[u8]) -> Result<()> {
        match kind {
            Kind::Job => self.shared.write(0, image),
            Kind::Program => job.put(self.owns[job.rank().index()], image),
        }
    }

    /// Fills all areas of this rank with one byte.
    pub(crate) fn fill(&self, job: &Job, byte: u8) -> Result<()> {
        let image = vec![byte; self.shared.len()];
        KINDS.into_iter().try_for_each(|kind| self.set(job, kind, &image))
    }
}
