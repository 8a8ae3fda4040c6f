//! Allocates job memory on this rank.

use crate::memory::array::Array;
use crate::onesided::GlobalAddress;
use crate::{Error, Pod, Result};
use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::Worker;

/// Allocates `count` zeroed values on this rank.
pub(crate) fn allocate_part<T: Pod, S>(
    worker: &Arc<Worker>,
    count: usize,
    call: &dyn Fn() -> String,
) -> Result<Array<T, S>> {
    worker.check().map_err(|cause| worker.fault(cause, call))?;
    let offset = bytes_of::<T>(count).and_then(|bytes| {
        let start = worker.registry().allocate_local(bytes)?;
        map(worker, start, bytes)
    });
    let offset = offset.map_err(|error| error.in_call(call).on_rank(worker.rank()))?;
    Ok(Array::new(worker.clone(), offset, count))
}

/// Allocates `count` zeroed values on this rank, as closed memory.
pub(crate) fn allocate_closed<T: Pod, S>(
    worker: &Arc<Worker>,
    count: usize,
    call: &dyn Fn() -> String,
) -> Result<Array<T, S>> {
    let array = bytes_of::<T>(count).and_then(|bytes| {
        let offset = worker.registry().allocate_closed(bytes)?;
        let place = worker.fabric().map_closed(GlobalAddress::new(worker.rank(), offset), bytes);
        let Some(place) = place else {
            let _ = worker.registry().free(offset);
            return Err(Error::new(Cause::Bug("closed memory of this rank that it does not reach".into())));
        };
        Ok(Array::closed(worker.clone(), offset, count, place))
    });
    array.map_err(|error| error.in_call(call).on_rank(worker.rank()))
}

/// Maps memory that was just allocated. Frees it again if no addresses are left for it.
pub(crate) fn map(worker: &Worker, start: u64, bytes: u64) -> Result<u64> {
    let mapped = worker.own_place(GlobalAddress::new(worker.rank(), start), bytes);
    mapped.map(|_| start).map_err(|cause| {
        let _ = worker.registry().free(start); // the cause that counts is the first
        Error::new(cause)
    })
}

/// Returns the bytes of an allocation.
pub(crate) fn bytes_of<T>(count: usize) -> Result<u64> {
    let size = size_of::<T>();
    let bytes = (count as u64).checked_mul(size as u64);
    match bytes {
        Some(bytes) if bytes > 0 => Ok(bytes),
        Some(_) => Err(Error::argument("an allocation needs at least one byte")),
        None => Err(Error::argument(format!("{count} x {size} bytes exceed the address space"))),
    }
}
