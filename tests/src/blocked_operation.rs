//! An operation that stays unfinished for as long as the case wants it to.
//!
//! It is an atomic on memory that its keeper merely owns. Only the keeper can carry it out, in a waiting call; and
//! the keeper makes none until the gate is opened. So whatever is ordered after it can be watched not to start.
//! On the simulator such an operation just takes its time.

use crate::exchange::{is_simulated, tell_all};
use crate::wait_until::stay_away;
use tasuki::{After, Array, AtomicOp, GlobalPtr, Handle, Job, Rank, Registered, Result};

/// Who issues what a gate holds back.
pub(crate) const ISSUER: Rank = Rank(0);
/// Who keeps the gate. Makes no waiting call while it is closed.
pub(crate) const KEEPER: Rank = Rank(1);

/// One gate of a job.
#[derive(Debug)]
pub(crate) struct Gate {
    word: GlobalPtr<u64>,
    /// At every rank: whether the keeper has made its last waiting call.
    away: Array<u64>,
    /// At the keeper: whether it may make the next one.
    opened: Array<u64>,
    kept: Option<Registered<u64>>,
}

impl Gate {
    /// A gate that is open. Collective; at least two ranks.
    pub(crate) fn new(job: &Job) -> Result<Gate> {
        let (away, opened) = (job.alloc::<u64>(1)?, job.alloc::<u64>(1)?);
        let kept = (job.rank() == KEEPER).then(|| job.register(vec![0_u64])).transpose()?;
        let own = kept.as_ref().map_or(GlobalPtr::NULL, Registered::pointer);
        let word = tell_all(job, own)?[KEEPER.index()];
        Ok(Gate { word, away, opened, kept })
    }

    /// The issuer closes the gate, once the keeper is away: the operation that ends when it is opened again.
    pub(crate) fn close(&self, job: &Job) -> Result<Handle> {
        while job.load(self.away.pointer())? == 0 {
            stay_away(job);
        }
        job.iatomic(self.word, AtomicOp::Add(1), GlobalPtr::NULL, After::Nothing)
    }

    /// The issuer opens the gate.
    pub(crate) fn open(&self, job: &Job) -> Result<()> {
        job.store(self.opened.on(KEEPER), 1)
    }

    /// The keeper itself decides that the gate is to open.
    pub(crate) fn open_own(&self) -> Result<()> {
        self.opened.set(0, 1)
    }

    /// The keeper promises to make no waiting call until the gate is opened.
    pub(crate) fn go_away(&self, job: &Job) -> Result<()> {
        job.ranks().try_for_each(|rank| job.store(self.away.on(rank), 1))
    }

    /// The keeper stays away until the gate is opened; its next waiting call lets the operation end.
    pub(crate) fn keep(&self, job: &Job) -> Result<()> {
        self.go_away(job)?;
        while job.load(self.opened.pointer())? == 0 {
            stay_away(job);
        }
        Ok(())
    }

    /// Whether a closed gate holds until it is opened.
    pub(crate) fn is_tight(&self, job: &Job) -> bool {
        !is_simulated(job)
    }

    /// How many operations have passed the gate, seen by the keeper.
    pub(crate) fn passed(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.to_vec()[0])
    }

    /// Runs `issuer` at the issuer, which closes and opens the gate, while the keeper keeps it and the others wait.
    /// Collective.
    pub(crate) fn held(&self, job: &Job, issuer: impl FnOnce(&Gate) -> Result<()>) -> Result<()> {
        if job.rank() == ISSUER {
            issuer(self)?;
        } else if job.rank() == KEEPER {
            self.keep(job)?;
        }
        job.barrier()
    }
}
