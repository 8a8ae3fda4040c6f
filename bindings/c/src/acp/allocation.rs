//! Memory of any rank, which any rank allocates and frees.
//!
//! The owner allocates: a rank that wants memory of another one calls a handler there. So memory of another rank needs the
//! handlers that `acp_init` starts the rank with.

use super::state::{State, state};
use crate::process_rank;
use crate::status::Failure;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tasuki::onesided::{GlobalAddress, LocalArray};
use tasuki::{Handler, HandlerCx, Handlers, Job, Rank, Request};

/// The memory of this rank that `acp_malloc` has allocated, by its address.
#[derive(Default)]
struct Heap(Mutex<HashMap<u64, LocalArray<u8>>>);

impl Heap {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, LocalArray<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocate(&self, job: &Job, bytes: u64) -> tasuki::Result<u64> {
        let array = job.alloc_local::<u8>(bytes as usize)?;
        let address = array.pointer().address().bits();
        self.all().insert(address, array);
        Ok(address)
    }

    /// Returns true if there was memory at that address.
    fn free(&self, address: u64) -> bool {
        let freed = self.all().remove(&address);
        freed.is_some() // dropped without the lock: it waits for accesses
    }
}

/// Allocates bytes on the called rank. Returns the address; 0 if there is no room.
const ALLOCATE: Handler<u64, u64> = Handler::new("acp_malloc", |cx: &HandlerCx<'_>, &bytes| {
    let address = process_rank::job().map(|job| cx.local::<Heap>().allocate(job, bytes));
    address.and_then(Result::ok).unwrap_or(0)
});

/// Frees the memory of the called rank at an address. Returns 0 if there was none.
const FREE: Handler<u64, u64> =
    Handler::new("acp_free", |cx: &HandlerCx<'_>, &address| u64::from(cx.local::<Heap>().free(address)));

/// What a rank needs that allocates for others.
pub(super) fn handlers() -> Handlers {
    Handlers::new().local(Heap::default).add(ALLOCATE).add(FREE)
}

fn heap(state: &State) -> Result<&'static Heap, Failure> {
    state.job.local::<Heap>().ok_or_else(|| {
        Failure::misuse("the memory of ranks can be allocated only if acp_init is called before the init of other interfaces")
    })
}

/// Frees all memory of this rank.
pub(super) fn end_all(job: &Job) {
    let freed = job.local::<Heap>().map(|heap| std::mem::take(&mut *heap.all()));
    drop(freed);
}

fn allocate(state: &State, bytes: usize, number: c_int) -> Result<u64, Failure> {
    let (heap, rank) = (heap(state)?, state.rank_of(number)?);
    if bytes == 0 || bytes > isize::MAX as usize {
        let size = bytes.cast_signed();
        return Err(Failure::misuse(format!("size is {size}: an allocation has at least one byte")));
    }
    if rank == state.job.rank() {
        return Ok(heap.allocate(state.job, bytes as u64)?);
    }
    match ALLOCATE.call(state.job, rank, &(bytes as u64))?.wait()? {
        0 => Err(Failure::no_memory(format!("rank {number} has no room for {bytes} bytes"))),
        address => Ok(address),
    }
}

fn free(state: &State, ga: u64) -> Result<(), Failure> {
    let (heap, rank) = (heap(state)?, GlobalAddress::from_bits(ga).rank());
    let is_of_job = ga != 0 && rank < Rank(state.job.size());
    let is_freed = match rank {
        _ if !is_of_job => false,
        own if own == state.job.rank() => heap.free(ga),
        other => FREE.call(state.job, other, &ga)?.wait()? != 0,
    };
    let ga = GlobalAddress::from_bits(ga);
    let refused = || Failure::misuse(format!("{ga} was not returned by acp_malloc, or was freed"));
    if is_freed { Ok(()) } else { Err(refused()) }
}

calls! {
    /// Allocates memory of a rank.
    acp_malloc(size: usize, rank: c_int) -> u64, 0; {
        allocate(state()?, size, rank)
    }

    /// Frees memory of any rank.
    acp_free(ga: u64) -> c_int, -1; {
        free(state()?, ga).map(|()| 0)
    }
}
