//! Starting operations from inside a waiting call: nothing waits, and the caller polls for the outcome.

use crate::base::Cause;
use crate::engine::operation::fabric_step::FabricStep;
use crate::engine::operation::kind::{Local, Operation};
use crate::engine::operation::order::Order;
use crate::engine::operation::table::{KeepAlive, NewOperation};
use crate::engine::sync::revocable_buffer::BufferUse;
use crate::engine::worker::Worker;
use crate::fabric::{Accepted, Atomic, Refused};
use crate::segment::{GlobalAddress, Kind};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// The state of an operation that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// It has completed and fetched this value.
    Done(u64),
    /// It is in flight; [`Worker::take_outcome`] returns its outcome.
    InFlight(u64),
    /// There is no room for it now.
    Later,
}

impl Worker {
    /// Starts a put from a part of a revocable buffer.
    pub fn start_put(
        &self,
        to: GlobalAddress,
        used: &BufferUse<'_>,
        part: Range<usize>,
    ) -> Result<Started, Cause> {
        let len = part.len() as u64;
        let from = Local(used.view().part(part.start as u64, len).cast_mut());
        self.start(Operation::Put { to, from, len }, &|| Some(Arc::new(used.extend())))
    }

    /// Starts a get into a part of a revocable buffer.
    pub fn start_get(
        &self,
        from: GlobalAddress,
        used: &BufferUse<'_>,
        part: Range<usize>,
    ) -> Result<Started, Cause> {
        let len = part.len() as u64;
        let to = Local(used.view().part_mut(part.start as u64, len));
        self.start(Operation::Get { from, to, len }, &|| Some(Arc::new(used.extend())))
    }

    /// Starts a copy between two global addresses.
    pub fn start_copy(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Result<Started, Cause> {
        match self.direct_source(from, to, len) {
            Some(from) => self.start(Operation::Put { to, from, len }, &|| None),
            None => self.start(Operation::Copy { from, to, len }, &|| None),
        }
    }

    /// Returns this rank's job memory at `from` if a put from it saves the detour through a bounce buffer: the fabric
    /// cannot copy between other ranks, and the destination is another rank. The memory stays mapped, even when freed.
    fn direct_source(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Option<Local> {
        let can = self.fabric().capabilities();
        if can.third_party || can.map || from.rank() != self.rank() || to.rank() == self.rank() {
            return None;
        }
        let range = self.registry().range();
        let place = range.extent_table().ok()?.find(from.offset(), len, from.bits()).ok()?;
        let Kind::Job = place.kind else { return None };
        range.at(from.offset(), place.start, place.len).ok().map(|at| Local(at.as_ptr()))
    }

    /// Starts an atomic operation.
    pub fn start_atomic(&self, at: GlobalAddress, atomic: Atomic) -> Result<Started, Cause> {
        self.start(Operation::Atomic { at, atomic, result: GlobalAddress::NULL }, &|| None)
    }

    /// Takes the outcome of a started operation when it has ended; `None` before, and after it was taken.
    pub fn take_outcome(&self, number: u64) -> Option<Result<u64, Cause>> {
        if !self.operations().is_finished(number) {
            return None;
        }
        self.operations().take(number).map(|outcome| outcome.map_err(|error| error.cause().clone()))
    }

    fn start(&self, action: Operation, keep: &dyn Fn() -> KeepAlive) -> Result<Started, Cause> {
        self.check()?;
        if !self.operations().has_room() {
            return Ok(Started::Later);
        }
        let entered = Cell::new(0);
        let posted = FabricStep::of(action).post(self.fabric(), &|| {
            entered.set(self.operations().enter_in_flight(action, keep(), true));
            entered.get()
        });
        match posted {
            Ok(Accepted::Done(value)) => Ok(Started::Done(value)),
            Ok(Accepted::Started) => Ok(Started::InFlight(entered.get())),
            Err(Refused::Never(cause)) => Err(*cause),
            Err(Refused::Again | Refused::Relay) => {
                let new =
                    NewOperation { action, order: Order::Free, keep: keep(), caller_takes_outcome: true };
                let number = self.operations().enter(new, None);
                self.start_ready(); // so no thread goes to sleep before it was tried
                Ok(Started::InFlight(number))
            }
        }
    }
}
