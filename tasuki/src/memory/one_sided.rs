//! One-sided operations: put, get, copy and atomics, with order handles.

use crate::job::Job;
use crate::memory::word::Word;
use crate::message::{Incoming, Outgoing};
use crate::onesided::{After, AtomicOp, GlobalStrided, Handle, TransferRequest};
use crate::{GlobalPtr, Pod, Result};
use tasuki_collective::allocate;
use tasuki_core::fabric::{Atomic, AtomicKind, Width};

impl Job {
    /// Copies `values` to the memory of some rank. They may be [`Strided`](crate::message::Strided). The values are in
    /// place when it returns.
    ///
    /// Errors: a null, foreign, stale or out-of-range address (then nothing is written); a rank died. Cost: for job
    /// memory, one copy by this rank's processor; for memory that the owner registered, a system call, or a request
    /// that the owner answers in its next waiting call.
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
    pub fn put<T: Pod, D: Outgoing<Value = T> + ?Sized>(&self, to: GlobalPtr<T>, values: &D) -> Result<()> {
        values.put_by(&self.worker, to.address())
    }

    /// Copies values from the memory of some rank, also to [`StridedMut`](crate::message::StridedMut) values. If a
    /// value is written meanwhile, the copy may mix its old and new bytes. Errors and cost: those of [`Job::put`].
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(10)?;
    ///     table.fill(job.rank().index() as u64)?;
    ///     job.barrier()?;
    ///     let (peer, mut got) = (job.rank_after(1), [7; 3]);
    ///     job.get(table.on(peer).at(5), &mut got)?;
    ///     assert_eq!(got, [peer.index() as u64; 3]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn get<T: Pod, D: Incoming<Value = T> + ?Sized>(
        &self,
        from: GlobalPtr<T>,
        values: &mut D,
    ) -> Result<()> {
        values.get_by(&self.worker, from.address())
    }

    /// Copies `values`, which may be [`Strided`](crate::message::Strided), to blocks of some rank's memory. What lies
    /// between the blocks is not written. The values are in place when it returns.
    ///
    /// Errors: those of [`Job::put`]; there are not as many values as the blocks have room for; the blocks overlap. If
    /// a rank dies meanwhile, a part may have been written. Cost: for memory that this process has mapped, one copy of
    /// each block by this rank's processor; elsewhere an operation for each block.
    ///
    /// ```
    /// use tasuki::message::{Strided, StridedMut};
    /// tasuki::local(2, |job| {
    ///     let (matrix, peer) = (job.alloc::<u32>(12)?, job.rank_after(1));      // three rows of four values
    ///     let column = |number| matrix.on(peer).at(number).strided(3, 1, 4);
    ///     job.put_strided(column(2), &[5, 6, 7])?;
    ///     job.put_strided(column(3), &Strided::column(&[0, 1, 0, 2, 0, 3], 2, 1))?;
    ///     job.barrier()?;
    ///     assert_eq!(matrix.to_vec()?, [0, 0, 5, 1, 0, 0, 6, 2, 0, 0, 7, 3]);
    ///     let (mut values, mut own) = ([0; 3], [0; 6]);
    ///     job.get_strided(column(2), &mut values)?;
    ///     job.get_strided(column(3), &mut StridedMut::column(&mut own, 2, 0))?;
    ///     assert_eq!((values, own), ([5, 6, 7], [1, 0, 2, 0, 3, 0]));
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn put_strided<T: Pod, D: Outgoing<Value = T> + ?Sized>(
        &self,
        to: GlobalStrided<T>,
        values: &D,
    ) -> Result<()> {
        let (at, values) = (to.pointer().address(), values.layout().blocks());
        let layout = to.layout_to_write();
        let layout = layout.map_err(|cause| {
            self.worker.fault(cause, || format!("put_strided({} bytes to {at})", values.len()))
        })?;
        self.worker.put_strided(at, Some(layout), values)
    }

    /// Copies blocks of some rank's memory to `values`, which may be [`StridedMut`](crate::message::StridedMut). Errors
    /// and cost: those of [`Job::put_strided`], but the blocks may overlap.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let matrix = job.alloc::<u32>(3 * 4)?; // three rows of four values
    ///     matrix.write(0, &[0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23])?;
    ///     job.barrier()?;
    ///     let mut columns = [0; 6];
    ///     job.get_strided(matrix.on(job.rank_after(1)).at(1).strided(3, 2, 4), &mut columns)?;
    ///     assert_eq!(columns, [1, 2, 11, 12, 21, 22]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn get_strided<T: Pod, D: Incoming<Value = T> + ?Sized>(
        &self,
        from: GlobalStrided<T>,
        values: &mut D,
    ) -> Result<()> {
        let (at, values) = (from.pointer().address(), values.layout_mut().blocks());
        let layout = from.layout().map_err(|cause| {
            self.worker.fault(cause, || format!("get_strided({} bytes from {at})", values.len()))
        })?;
        self.worker.get_strided(at, Some(layout), values)
    }

    /// Gets `count` values from the memory of some rank, as a vector. Errors and cost: those of [`Job::put`]; there is
    /// no memory for so many values.
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let table = job.alloc::<u64>(4)?;
    ///     table.fill(job.rank().index() as u64)?;
    ///     job.barrier()?;
    ///     let next = job.rank_after(1);
    ///     assert_eq!(job.get_vec(table.on(next).at(1), 3)?, [next.index() as u64; 3]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn get_vec<T: Pod>(&self, from: GlobalPtr<T>, count: usize) -> Result<Vec<T>> {
        let room = allocate(count);
        let mut values =
            room.map_err(|cause| self.worker.fault(cause, || format!("get_vec({count} values)")))?;
        self.get(from, &mut values)?;
        Ok(values)
    }

    /// Gets one value from the memory of some rank. Errors and cost: those of [`Job::put`].
    ///
    /// ```
    /// tasuki::local(3, |job| {
    ///     let sizes = job.alloc::<usize>(1)?;
    ///     sizes.set(0, 10 * job.rank().index())?;
    ///     job.barrier()?;
    ///     assert_eq!(job.get_value(sizes.on(tasuki::Rank(2)))?, 20);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
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

    /// Issues a copy of `count` values between any two places: one end or both may be remote.
    ///
    /// The copy starts when `after` permits it. The request tells when it has ended. Overlapping ranges of one rank's
    /// memory are copied as `memmove` does. The call waits only if 4,096 operations are unfinished. Errors: those of
    /// [`Job::put`], reported by this call, by the wait or by [`Job::complete`]. Source: ACP basic layer (`acp_copy`).
    ///
    /// ```
    /// use tasuki::onesided::After;
    /// use tasuki::{Request, local};
    /// local(2, |job| {
    ///     let data = job.alloc::<usize>(8)?;
    ///     data.fill(job.rank().0 + 1)?;
    ///     job.barrier()?;
    ///     if job.rank().0 == 0 {
    ///         let one = tasuki::Rank(1);
    ///         let first = job.copy(data.on(one), data.pointer(), 4, After::Nothing)?;
    ///         let second = job.copy(data.pointer(), data.on(one).at(4), 4, After::Exact(first.handle()))?;
    ///         tasuki::wait_all((first, second))?;
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
    ) -> Result<TransferRequest<()>> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let issued = self.worker.copy(from.address(), to.address(), bytes, after)?;
        Ok(self.transfer(issued.handle, ()))
    }

    /// Waits until all operations that this rank issued up to `handle` have ended. A handle that is null, finished or
    /// was never issued returns at once. Errors: the first failure among these operations that no call has reported
    /// yet.
    ///
    /// ```
    /// use tasuki::onesided::After;
    /// tasuki::local(2, |job| {
    ///     let data = job.alloc::<u64>(20)?;
    ///     data.fill(7)?;
    ///     job.barrier()?;
    ///     let to = data.on(job.rank_after(1)).at(10);
    ///     job.copy(data.pointer(), to, 5, After::Nothing)?;
    ///     let last = job.copy(data.pointer().at(5), to.at(5), 5, After::Nothing)?.handle();
    ///     job.complete(last)?; // both copies have ended
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn complete(&self, handle: Handle) -> Result<()> {
        let _limit = self.limited();
        self.worker.complete(handle)
    }

    /// Applies an atomic operation to a word and returns the word's previous value. The operation is atomic with
    /// respect to all ranks' atomics and to the owner's processor.
    ///
    /// Errors: those of [`Job::put`]; the address is not a multiple of the word's size. Cost: in
    /// job memory, and in memory that this rank registered, one locked instruction on a cache line
    /// that the owner's cache may hold. Only the owner changes a word that another rank registered
    /// ([`Job::register`]): the call waits until the owner [makes progress](crate::engine#progress). This holds for all
    /// atomics.
    ///
    /// ```
    /// use tasuki::onesided::AtomicOp;
    /// use tasuki::Rank;
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
    pub fn atomic<W: Word>(&self, at: GlobalPtr<W>, operation: AtomicOp<W>) -> Result<W> {
        self.worker.atomic(at.address(), operation.atomic()).map(W::from_bits)
    }

    /// Changes a word in the call of that name.
    #[inline(always)]
    fn atomic_in<W: Word>(
        &self,
        call: &'static str,
        at: GlobalPtr<W>,
        kind: AtomicKind,
        operand: W,
    ) -> Result<W> {
        let atomic = Atomic { kind, operand: operand.to_bits(), width: W::WIDTH };
        match self.worker.atomic(at.address(), atomic) {
            Ok(before) => Ok(W::from_bits(before)),
            Err(error) => Err(error.called(call)),
        }
    }

    /// Adds to a word and returns its previous value. Errors and cost: those of [`Job::atomic`].
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(3, |job| {
    ///     let next_item = job.alloc::<u64>(1)?;
    ///     let mut mine = 0_u64;
    ///     while job.fetch_add(next_item.on(Rank(0)), 1)? < 100 {
    ///         mine += 1; // no other rank gets this item
    ///     }
    ///     assert_eq!(job.world().allreduce(&mine, tasuki::Sum)?, 100);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn fetch_add<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<W> {
        self.atomic_in("fetch_add", at, AtomicKind::Add, value)
    }

    /// Replaces a word and returns its previous value. Errors and cost: those of [`Job::atomic`].
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(2, |job| {
    ///     let last = job.alloc::<u64>(1)?;
    ///     let before = job.swap(last.on(Rank(0)), job.rank().index() as u64 + 1)?;
    ///     let all = job.world().allgather(&before)?;
    ///     assert!(all == [0, 1] || all == [2, 0]); // the first one has found 0
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn swap<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<W> {
        self.atomic_in("swap", at, AtomicKind::Swap, value)
    }

    /// Replaces a word by `new` if it equals `expected`. Returns its previous value. Errors and
    /// cost: those of [`Job::atomic`].
    ///
    /// ```
    /// use tasuki::Rank;
    /// tasuki::local(2, |job| {
    ///     let lock = job.alloc::<u64>(1)?;
    ///     let (at, me) = (lock.on(Rank(0)), job.rank().0 as u64 + 1);
    ///     while job.compare_swap(at, 0, me)? != 0 {} // wait for the lock
    ///     assert_eq!(job.load(at)?, me);
    ///     assert_eq!(job.swap(at, 0)?, me); // release it
    ///     job.barrier()?;
    ///     if job.rank() == 0 {
    ///         job.store(at, 9)?;
    ///         assert_eq!(lock.get(0)?, 9);
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn compare_swap<W: Word>(&self, at: GlobalPtr<W>, expected: W, new: W) -> Result<W> {
        self.atomic_in("compare_swap", at, AtomicKind::Cas { expected: expected.to_bits() }, new)
    }

    /// Stores a word atomically. Errors and cost: those of [`Job::atomic`].
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let words = job.alloc::<u32>(1)?;
    ///     job.store(words.on(job.rank_after(1)), 7)?;
    ///     while job.load(words.pointer())? != 7 {
    ///         std::hint::spin_loop(); // a signal would wake this rank
    ///     }
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn store<W: Word>(&self, at: GlobalPtr<W>, value: W) -> Result<()> {
        self.atomic_in("store", at, AtomicKind::Store, value).map(drop)
    }

    /// Loads a word atomically. Errors and cost: those of [`Job::atomic`].
    ///
    /// ```
    /// tasuki::local(2, |job| {
    ///     let words = job.alloc::<u64>(1)?;
    ///     words.set(0, job.rank().index() as u64 + 5)?;
    ///     job.barrier()?;
    ///     let peer = job.rank_after(1);
    ///     assert_eq!(job.load(words.on(peer))?, peer.index() as u64 + 5);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    #[inline]
    pub fn load<W: Word>(&self, at: GlobalPtr<W>) -> Result<W> {
        self.atomic_in("load", at, AtomicKind::Load, W::from_bits(0))
    }

    /// Issues an atomic operation without waiting. The word's previous value is stored at `result`, in this rank's
    /// own registered memory, before the operation has ended. With a null `result` it is not stored.
    ///
    /// Errors: those of [`Job::atomic`]; `result` is not in this rank's memory. Source: ACP basic
    /// layer (atomics).
    ///
    /// ```
    /// use tasuki::onesided::{After, AtomicOp};
    /// tasuki::local(2, |job| {
    ///     let (word, before) = (job.alloc::<u64>(1)?, job.alloc_local::<u64>(1)?);
    ///     let peer = job.rank_after(1);
    ///     let stored = job.istore(word.on(peer), 40, After::Nothing)?;
    ///     let added = job.iatomic(word.on(peer), AtomicOp::Add(2), before.pointer(), After::Exact(stored.handle()))?;
    ///     job.complete(added.handle())?;
    ///     assert_eq!(before.get(0)?, 40);
    ///     job.barrier()?;
    ///     assert_eq!(word.get(0)?, 42);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn iatomic<W: Word>(
        &self,
        at: GlobalPtr<W>,
        operation: AtomicOp<W>,
        result: GlobalPtr<W>,
        after: After,
    ) -> Result<TransferRequest<()>> {
        let issued = self.worker.issue_atomic(at.address(), operation.atomic(), result.address(), after)?;
        Ok(self.transfer(issued.handle, ()))
    }

    /// Issues an atomic store of a word without waiting. Errors: those of [`Job::atomic`], reported by this call, by
    /// the wait or by [`Job::complete`].
    ///
    /// ```
    /// use tasuki::Request;
    /// use tasuki::onesided::After;
    /// tasuki::local(2, |job| {
    ///     let (data, ready) = (job.alloc::<u64>(100)?, job.alloc::<u64>(1)?);
    ///     let peer = job.rank_after(1);
    ///     let put = job.iput(data.on(peer), vec![7; 100], After::Nothing)?;
    ///     let mut mark = job.istore(ready.on(peer), 1, After::Exact(put.handle()))?; // after the values
    ///     mark.wait()?;
    ///     while job.load(ready.pointer())? == 0 {}
    ///     assert_eq!(data.to_vec()?, [7; 100]);
    ///     job.barrier()
    /// })?;
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn istore<W: Word>(&self, at: GlobalPtr<W>, value: W, after: After) -> Result<TransferRequest<()>> {
        let atomic = Atomic { kind: AtomicKind::Store, operand: value.to_bits(), width: W::WIDTH };
        let issued =
            self.worker.issue_atomic(at.address(), atomic, crate::onesided::GlobalAddress::NULL, after)?;
        Ok(self.transfer(issued.handle, ()))
    }
}
