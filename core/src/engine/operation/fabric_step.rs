//! Single calls of the fabric on behalf of operations.
#![allow(unsafe_code)]
//! Unsafe: hands local buffers to the fabric. A blocking call keeps its buffer until the operation has ended; the
//! buffers of other operations, and bounce buffers, are kept by the table.

use crate::base::Rank;
use crate::engine::operation::kind::{Local, Operation};
use crate::fabric::{Accept, Accepted, Atomic, Fabric, Poison, Refused, check_same_rank};
use crate::segment::GlobalAddress;

/// One call of the fabric on behalf of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::engine) enum FabricStep {
    Put { to: GlobalAddress, from: Local, len: u64 },
    Get { from: GlobalAddress, to: Local, len: u64 },
    Copy { from: GlobalAddress, to: GlobalAddress, len: u64 },
    PutSignal { to: GlobalAddress, from: Local, len: u64, signal: GlobalAddress, amount: u64 },
    Raise { signal: GlobalAddress, amount: u64 },
    Poison { signal: GlobalAddress, poison: Poison },
    Atomic { at: GlobalAddress, atomic: Atomic },
    Flush { peer: Rank },
    // Moves nothing: checks both ends of a transfer that will be moved in pieces.
    Check { ends: [GlobalAddress; 2], len: u64, signal: Option<GlobalAddress> },
}

impl FabricStep {
    /// An operation as one step.
    #[inline]
    pub(in crate::engine) fn of(action: Operation) -> FabricStep {
        match action {
            Operation::Put { to, from, len } => FabricStep::Put { to, from, len },
            Operation::Get { from, to, len } => FabricStep::Get { from, to, len },
            Operation::Copy { from, to, len } => FabricStep::Copy { from, to, len },
            Operation::PutSignal { to, from, len, signal, amount } => {
                FabricStep::PutSignal { to, from, len, signal, amount }
            }
            Operation::Raise { signal, amount } => FabricStep::Raise { signal, amount },
            Operation::Poison { signal, poison } => FabricStep::Poison { signal, poison },
            Operation::Atomic { at, atomic, .. } => FabricStep::Atomic { at, atomic },
        }
    }

    /// Posts the step to the fabric. It is refused with `Again` if the fabric has no room for it now.
    #[inline]
    pub(in crate::engine) fn post(
        self,
        fabric: &dyn Fabric,
        accept: Accept<'_>,
    ) -> Result<Accepted, Refused> {
        match self {
            // SAFETY: the issuer keeps the buffer valid until the operation has ended, as the head of this file says.
            FabricStep::Put { to, from, len } => unsafe { fabric.put(accept, to, from.0, len) },
            // SAFETY: the issuer keeps the buffer valid, and lets nobody else use it, until the operation has ended.
            FabricStep::Get { from, to, len } => unsafe { fabric.get(accept, from, to.0, len) },
            // SAFETY: the issuer keeps the buffer valid until the operation has ended, as for a put.
            FabricStep::PutSignal { to, from, len, signal, amount } => unsafe {
                fabric.put_signal(accept, to, from.0, len, signal, amount)
            },
            FabricStep::Copy { from, to, len } => fabric.copy(accept, from, to, len),
            FabricStep::Raise { signal, amount } => fabric.raise(accept, signal, amount),
            FabricStep::Poison { signal, poison } => fabric.poison(accept, signal, poison),
            FabricStep::Atomic { at, atomic } => fabric.atomic(accept, at, &atomic),
            FabricStep::Flush { peer } => fabric.flush(accept, peer),
            FabricStep::Check { ends, len, signal } => {
                ends.into_iter().try_for_each(|end| fabric.check(end, len))?;
                if let Some(signal) = signal {
                    check_same_rank(ends[0], signal)?;
                    fabric.line(signal)?; // fails if there is no such signal
                }
                Ok(Accepted::Done(0))
            }
        }
    }
}
