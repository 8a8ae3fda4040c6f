//! One-sided operations: put, get, copy and atomics, in order where order is asked for.

use crate::job::Job;
use crate::memory::word::Word;
use crate::{After, GlobalPtr, Handle, Pod, Result};
use tasuki_core::fabric::{Atomic, AtomicKind, Width};

/// A change of a word that returns what it was. Unsigned and signed words alike; additions wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOp<W> {
    /// It becomes this.
    Swap(W),
    /// It grows by this.
    Add(W),
    /// Exclusive or.
    Xor(W),
    /// Or.
    Or(W),
    /// And.
    And(W),
    /// It becomes `new` if it is `expected`.
    CompareSwap {
        /// What it must be.
        expected: W,
        /// What it becomes then.
        new: W,
    },
}

impl<W: Word> AtomicOp<W> {
    pub(crate) fn atomic(self) -> Atomic {
        let (kind, operand) = match self {
            AtomicOp::Swap(value) => (AtomicKind::Swap, value),
            AtomicOp::Add(value) => (AtomicKind::Add, value),
            AtomicOp::Xor(value) => (AtomicKind::Xor, value),
            AtomicOp::Or(value) => (AtomicKind::Or, value),
            AtomicOp::And(value) => (AtomicKind::And, value),
            AtomicOp::CompareSwap { expected, new } => {
                (AtomicKind::Cas { expected: expected.to_bits() }, new)
            }
        };
        Atomic { kind, operand: operand.to_bits(), width: W::WIDTH }
    }
}

impl Job {
    /// Copies `values` to the memory of some rank. When it returns the values are there.
    ///
    /// Errors: null, foreign, stale or out-of-range address (nothing is touched then); a rank died. Costs one copy
    /// by this rank's processor in job memory; a system call, or a request that the owner answers when it waits,
    /// in memory that the owner merely registered.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u32>(4)?;
    ///     let peer = job.rank_after(1);
    ///     job.put(table.on(peer).at(1), &[5, 6])?;
    ///     let mut back = [0; 4];
    ///     job.get(table.on(peer), &mut back)?;
    ///     assert_eq!(back, [0, 5, 6, 0]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn put<T: Pod>(&self, to: GlobalPtr<T>, values: &[T]) -> Result<()> {
        self.worker.put(to.address(), bytemuck::cast_slice(values))
    }

    /// Copies values from the memory of some rank. Errors and cost as for [`Job::put`]. Of values that are written
    /// meanwhile, old and new bytes may be mixed.
    #[inline]
    pub fn get<T: Pod>(&self, from: GlobalPtr<T>, values: &mut [T]) -> Result<()> {
        self.worker.get(from.address(), bytemuck::cast_slice_mut(values))
    }

    /// One value from the memory of some rank.
    #[inline]
    pub fn get_value<T: Pod>(&self, from: GlobalPtr<T>) -> Result<T> {
        let word = |width| self.worker.get_word(from.address(), width).map(u64::to_le_bytes);
        Ok(match size_of::<T>() {
            8 => bytemuck::pod_read_unaligned(&word(Width::W8)?),
            4 => bytemuck::pod_read_unaligned(&word(Width::W4)?[..4]),
            _ => {
                let mut value = T::zeroed();
                self.worker.get(from.address(), bytemuck::bytes_of_mut(&mut value))?;
                value
            }
        })
    }

    /// Issues a copy of `count` values from anywhere to anywhere: either end, or both, may be remote.
    ///
    /// It starts when `after` lets it; the handle tells when it has ended. Inside one rank's memory, overlapping
    /// ranges move as `memmove` does. Waits only when 4,096 operations are unfinished. Errors: as for [`Job::put`],
    /// at once or from [`Job::complete`]. Source: ACP basic layer (`acp_copy`).
    ///
    /// ```
    /// use tasuki::{After, local};
    /// local(2, |job| {
    ///     let data = job.alloc::<u32>(8)?;
    ///     data.fill(job.rank().0 + 1)?;
    ///     job.barrier()?;
    ///     if job.rank().0 == 0 {
    ///         let one = tasuki::Rank(1);
    ///         let first = job.copy(data.on(one), data.pointer(), 4, After::Nothing)?;
    ///         let second = job.copy(data.pointer(), data.on(one).at(4), 4, After::Exact(first))?;
    ///         job.complete(second)?;
    ///         assert_eq!(data.to_vec()?, [2, 2, 2, 2, 1, 1, 1, 1]);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn copy<T: Pod>(
        &self,
        from: GlobalPtr<T>,
        to: GlobalPtr<T>,
        count: usize,
        after: After,
    ) -> Result<Handle> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        self.worker.copy(from.address(), to.address(), bytes, after).map(|issued| issued.handle)
    }

    /// Waits until everything up to `handle` that this rank issued has ended. Null, finished and never-issued
    /// handles return at once. Errors: the first failure among it that no call has told yet.
    pub fn complete(&self, handle: Handle) -> Result<()> {
        self.worker.complete(handle)
    }

    /// Whether anything up to `handle` is still unfinished. Moves operations on; never waits.
    pub fn is_pending(&self, handle: Handle) -> bool {
        self.worker.is_pending(handle)
    }

    /// Changes a word and returns what it was, in one step that nothing comes between: neither another rank's
    /// atomics nor the owner's processor.
    ///
    /// Errors: as for [`Job::put`], and an address that is not a multiple of the word's size. Costs one locked
    /// instruction on a line that may lie with its owner, in job memory and in memory that this rank registered. A
    /// word that another rank registered ([`Job::register`]) only that rank changes: the call waits until it answers,
    /// in one of its waiting calls, or its helper does (`tasuki run --helper rank`). The same holds of all atomics.
    ///
    /// ```
    /// use tasuki::{AtomicOp, Rank};
    /// tasuki::local(4, |job| {
    ///     let word = job.alloc::<u64>(1)?;
    ///     let bit = 1 << job.rank().0;
    ///     let before = job.atomic(word.on(Rank(0)), AtomicOp::Or(bit))?;
    ///     assert_eq!(before & bit, 0);
    ///     job.barrier()?;
    ///     assert_eq!(job.load(word.on(Rank(0)))?, 0b1111);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn atomic<W: Word>(&self, at: GlobalPtr<W>, change: AtomicOp<W>) -> Result<W> {
        self.worker.atomic(at.address(), change.atomic()).map(W::from_bits)
    }

    /// Adds to a word; what it was.
    #[inline]
    pub fn fetch_add<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<W> {
        self.atomic(at, AtomicOp::Add(value))
    }

    /// Replaces a word; what it was.
    #[inline]
    pub fn swap<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<W> {
        self.atomic(at, AtomicOp::Swap(value))
    }

    /// Replaces a word by `new` if it is `expected`; what it was.
    #[inline]
    pub fn compare_swap<W: Word>(&self, at: GlobalPtr<W>, expected: W, new: W) -> Result<W> {
        self.atomic(at, AtomicOp::CompareSwap { expected, new })
    }

    /// Stores a word in one piece.
    #[inline]
    pub fn store<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<()> {
        let atomic = Atomic { kind: AtomicKind::Store, operand: value.to_bits(), width: W::WIDTH };
        self.worker.atomic(at.address(), atomic).map(drop)
    }

    /// Loads a word in one piece.
    #[inline]
    pub fn load<W: Word>(&self, at: GlobalPtr<W>) -> Result<W> {
        let atomic = Atomic { kind: AtomicKind::Load, operand: 0, width: W::WIDTH };
        self.worker.atomic(at.address(), atomic).map(W::from_bits)
    }

    /// Issues a change of a word without waiting. What it was is stored at `result`, in this rank's own registered
    /// memory, before the handle is complete; a null `result` drops it.
    ///
    /// Errors: as for [`Job::atomic`]; `result` is not this rank's own. Source: ACP basic layer (atomics).
    pub fn iatomic<W: Word>(
        &self,
        at: GlobalPtr<W>,
        change: AtomicOp<W>,
        result: GlobalPtr<W>,
        after: After,
    ) -> Result<Handle> {
        let issued = self.worker.issue_atomic(at.address(), change.atomic(), result.address(), after)?;
        Ok(issued.handle)
    }

    /// Issues a store of a word without waiting.
    pub fn istore<W: Word>(&self, at: GlobalPtr<W>, value: W, after: After) -> Result<Handle> {
        let atomic = Atomic { kind: AtomicKind::Store, operand: value.to_bits(), width: W::WIDTH };
        let issued = self.worker.issue_atomic(at.address(), atomic, crate::GlobalAddress::NULL, after)?;
        Ok(issued.handle)
    }
}
