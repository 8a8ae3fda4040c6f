//! A gate: an operation that stays unfinished until the case opens it.
//!
//! The operation is an atomic on registered memory of one rank, the keeper. Only the keeper can
//! carry it out, and only in a call that waits. The keeper makes no such call before the gate is
//! opened. So the case can check that nothing starts that is ordered after the operation. On the
//! simulator a gate does not hold: the operation merely takes its time.

use crate::exchange::{exchange_all, is_simulated};
use crate::wait_until::stay_away;
use std::sync::Mutex;
use tasuki::onesided::{After, AtomicOp, Handle, Registered, TransferRequest};
use tasuki::{Array, GlobalPtr, Job, Rank, Request, Result};

/// The rank that issues the blocked operation, and everything ordered after it.
pub(crate) const ISSUER: Rank = Rank(0);
/// The rank that keeps the gate. It makes no waiting call while the gate is closed.
pub(crate) const KEEPER: Rank = Rank(1);

#[derive(Debug)]
pub(crate) struct Gate {
    word: GlobalPtr<u64>,
    /// At every rank: 1 once the keeper has made its last waiting call.
    away: Array<u64>,
    /// At the keeper: 1 once the keeper may make its next waiting call.
    opened: Array<u64>,
    kept: Option<Registered<u64>>,
    /// The operation that is blocked, at the issuer.
    blocked: Mutex<Option<TransferRequest<()>>>,
}

impl Gate {
    /// Makes a gate that is open. Collective; needs at least two ranks.
    pub(crate) fn new(job: &Job) -> Result<Gate> {
        let (away, opened) = (job.alloc::<u64>(1)?, job.alloc::<u64>(1)?);
        let kept = (job.rank() == KEEPER).then(|| job.register(vec![0_u64])).transpose()?;
        let own = kept.as_ref().map_or(GlobalPtr::NULL, Registered::pointer);
        let word = exchange_all(job, own)?[KEEPER.index()];
        Ok(Gate { word, away, opened, kept, blocked: Mutex::default() })
    }

    /// Called by the issuer: waits until the keeper makes no more waiting calls, then issues the
    /// blocked operation and returns its handle. The operation ends after the gate is opened.
    pub(crate) fn close(&self, job: &Job) -> Result<Handle> {
        while job.load(self.away.pointer())? == 0 {
            stay_away(job);
        }
        let blocked = job.iatomic(self.word, AtomicOp::Add(1), GlobalPtr::NULL, After::Nothing)?;
        let handle = blocked.handle();
        *self.blocked.lock().expect("no thread panics with it") = Some(blocked);
        Ok(handle)
    }

    /// Returns true if the blocked operation has ended, or none was issued. Makes progress.
    pub(crate) fn has_ended(&self) -> bool {
        self.blocked.lock().expect("no thread panics with it").as_mut().is_none_or(Request::test)
    }

    /// Called by the issuer: opens the gate.
    pub(crate) fn open(&self, job: &Job) -> Result<()> {
        job.store(self.opened.on(KEEPER), 1)
    }

    /// Called by the keeper: opens the gate.
    pub(crate) fn open_own(&self) -> Result<()> {
        self.opened.set(0, 1)
    }

    /// Called by the keeper: promises to make no waiting call until the gate is opened.
    pub(crate) fn go_away(&self, job: &Job) -> Result<()> {
        job.ranks().try_for_each(|rank| job.store(self.away.on(rank), 1))
    }

    /// Called by the keeper: makes no waiting call until the gate is opened. Its next waiting call
    /// lets the operation end.
    pub(crate) fn keep(&self, job: &Job) -> Result<()> {
        self.go_away(job)?;
        while job.load(self.opened.pointer())? == 0 {
            stay_away(job);
        }
        Ok(())
    }

    /// Returns true if a closed gate really holds until it is opened, which it does not on the
    /// simulator.
    pub(crate) fn is_tight(&self, job: &Job) -> bool {
        !is_simulated(job)
    }

    /// Returns the number of operations that have passed the gate, or `None` on ranks other than
    /// the keeper.
    pub(crate) fn passed(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.to_vec()[0])
    }

    /// Collective: the issuer runs `issuer`, which closes and opens the gate; the keeper keeps the
    /// gate meanwhile, and all other ranks wait in a barrier.
    pub(crate) fn held(&self, job: &Job, issuer: impl FnOnce(&Gate) -> Result<()>) -> Result<()> {
        if job.rank() == ISSUER {
            issuer(self)?;
        } else if job.rank() == KEEPER {
            self.keep(job)?;
        }
        job.barrier()
    }
}
