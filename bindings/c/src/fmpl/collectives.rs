//! Collective calls.
//!
//! Unsafe: buffers are pointers of C, which the caller keeps in place until the call has ended.
#![allow(unsafe_code)]

use super::arguments::{member, written};
use super::communicators::{Group, with};
use super::operations::{FmplFunction, WithBuiltin, builtin, user_operation};
use crate::status::Failure;
use std::ffi::{c_int, c_void};
use tasuki::bindings::ReduceOperation;
use tasuki::collective::ReduceOp;
use tasuki::{Member, Pod, Rank};

/// A reduction in place. `root`: `None` if all ranks get the result.
struct InPlace<'g> {
    group: &'g Group,
    buf: *mut c_void,
    count: usize,
    root: Option<Member>,
}

impl WithBuiltin for InPlace<'_> {
    type Output = Result<(), Failure>;

    fn with<T: Pod, O: ReduceOp<T>>(self, operation: O) -> Result<(), Failure> {
        let InPlace { group, buf, count, root } = self;
        let bytes = count.saturating_mul(size_of::<T>());
        if !buf.addr().is_multiple_of(align_of::<T>()) {
            return Err(Failure::misuse(format!("buf is no address of a {}", std::any::type_name::<T>())));
        }
        // SAFETY: the caller of the reduction promises it.
        let bytes = unsafe { written(buf, bytes)? };
        let values: &mut [T] = match count {
            0 => &mut [],
            // SAFETY: the bytes begin at an address of a `T`, and are as many values, of plain data.
            _ => unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast::<T>(), count) },
        };
        match root {
            Some(root) => group.communicator.reduce(values, operation, root).map(drop)?,
            None => group.communicator.allreduce(values, operation)?,
        }
        Ok(())
    }
}

impl InPlace<'_> {
    fn run(self, function: Option<FmplFunction>) -> Result<(), Failure> {
        let function = function.ok_or_else(|| Failure::misuse("func is null"))?;
        let InPlace { group, buf, count, root } = match builtin(function, self) {
            Ok(outcome) => return outcome,
            Err(reduction) => reduction,
        };
        let operation = user_operation(function).ok_or_else(|| {
            Failure::misuse("func is no operation of FMPL, and fmpl_op_create has not made it one")
        })?;
        let bytes = count.saturating_mul(operation.bytes());
        // SAFETY: the caller of the reduction promises it.
        let bytes = unsafe { written(buf, bytes)? };
        let inside = tasuki::bindings::collective(&group.communicator);
        let operation = ReduceOperation::UserDefined(&operation as _);
        match root {
            None => inside.allreduce(bytes, operation)?,
            Some(root) if root == group.communicator.rank() => inside.reduce_here(bytes, operation)?,
            Some(root) => inside.reduce_to(bytes, operation, Rank(root.0))?,
        }
        Ok(())
    }
}

fn count_of(count: c_int) -> Result<usize, Failure> {
    usize::try_from(count).map_err(|_| Failure::misuse(format!("count is {count}, and must be 0 or more")))
}

calls! {
    /// Waits until all ranks of the communicator have called it.
    fmpl_barrier / fmpl_barrier_(comm: in c_int) {
        with(comm, |group| Ok(group.communicator.barrier()?))
    }

    /// Sends `size` bytes of rank `root` to all ranks of the communicator.
    fmpl_bcast / fmpl_bcast_(buf: at *mut c_void, size: in usize, root: in c_int, comm: in c_int) {
        with(comm, |group| {
            // SAFETY: the caller promises it.
            let bytes = unsafe { written(buf, size)? };
            Ok(group.communicator.bcast(bytes, member(root, group.communicator.size())?)?)
        })
    }

    /// Combines `count` elements of all ranks. `buf` of rank `root` gets the result; those of the others do not change.
    /// `work` is not used, and may be null.
    fmpl_reduce / fmpl_reduce_(
        buf: at *mut c_void, count: in c_int, func: at Option<FmplFunction>, root: in c_int, comm: in c_int,
        work: at *mut c_void,
    ) {
        let _ = work;
        with(comm, |group| {
            let root = Some(member(root, group.communicator.size())?);
            InPlace { group, buf, count: count_of(count)?, root }.run(func)
        })
    }

    /// Combines `count` elements of all ranks. `buf` of each gets the result. `work` is not used, and may be null.
    fmpl_allreduce / fmpl_allreduce_(
        buf: at *mut c_void, count: in c_int, func: at Option<FmplFunction>, comm: in c_int, work: at *mut c_void,
    ) {
        let _ = work;
        with(comm, |group| InPlace { group, buf, count: count_of(count)?, root: None }.run(func))
    }
}
