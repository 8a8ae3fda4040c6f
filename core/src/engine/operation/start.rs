//! OperationSet that a model starts from inside a waiting call: nothing waits, and the outcome is asked for.

use crate::base::Cause;
use crate::engine::operation::kind::{Local, Operation};
use crate::engine::operation::order::Order;
use crate::engine::operation::table::{KeepAlive, NewOperation};
use crate::engine::sync::revocable_buffer::BufferUse;
use crate::engine::worker::Worker;
use crate::fabric::{Atomic, Posted, Refused};
use crate::segment::{GlobalAddress, Kind};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// What became of an operation that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// It has ended, with what it fetched.
    Done(u64),
    /// It is under way: [`Worker::landed`] tells of its end.
    InFlight(u64),
    /// There is no room for it now.
    Later,
}

impl Worker {
    /// Starts a put of a part of what was lent.
    pub fn start_put(
        &self,
        to: GlobalAddress,
        used: &BufferUse<'_>,
        part: Range<usize>,
    ) -> Result<Started, Cause> {
        let len = part.len() as u64;
        let from = Local(used.view().part(part.start as u64, len).cast_mut());
        self.launch(Operation::Put { to, from, len }, &|| Some(Arc::new(used.longer())))
    }

    /// Starts a get into a part of what was lent.
    pub fn start_get(
        &self,
        from: GlobalAddress,
        used: &BufferUse<'_>,
        part: Range<usize>,
    ) -> Result<Started, Cause> {
        let len = part.len() as u64;
        let to = Local(used.view().part_mut(part.start as u64, len));
        self.launch(Operation::Get { from, to, len }, &|| Some(Arc::new(used.longer())))
    }

    /// Starts a copy between two global addresses.
    pub fn start_copy(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Result<Started, Cause> {
        match self.sent_from(from, to, len) {
            Some(from) => self.launch(Operation::Put { to, from, len }, &|| None),
            None => self.launch(Operation::Copy { from, to, len }, &|| None),
        }
    }

    /// This rank's job memory at `from`, where a fabric that knows no third party would fetch it from here to here
    /// before it goes to another rank. It stays mapped, also when it is freed.
    fn sent_from(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Option<Local> {
        let can = self.fabric().capabilities();
        if can.third_party || can.map || from.rank() != self.rank() || to.rank() == self.rank() {
            return None;
        }
        let window = self.registry().range();
        let place = window.extent_table().ok()?.find(from.offset(), len, from.bits()).ok()?;
        let Kind::Job = place.kind else { return None };
        window.at(from.offset(), place.start, place.len).ok().map(|at| Local(at.as_ptr()))
    }

    /// Starts a change of one word.
    pub fn start_atomic(&self, at: GlobalAddress, atomic: Atomic) -> Result<Started, Cause> {
        self.launch(Operation::Atomic { at, atomic, result: GlobalAddress::NULL }, &|| None)
    }

    /// The outcome of an operation under way, once, when it has ended.
    pub fn landed(&self, number: u64) -> Option<Result<u64, Cause>> {
        if !self.operations().is_finished(number) {
            return None;
        }
        self.operations().take(number).map(|outcome| outcome.map_err(|error| error.cause().clone()))
    }

    fn launch(&self, action: Operation, keep: &dyn Fn() -> KeepAlive) -> Result<Started, Cause> {
        self.check()?;
        if !self.operations().has_room() {
            return Ok(Started::Later);
        }
        let opened = Cell::new(0);
        let posted = self.post(&action, &|| {
            opened.set(self.open(action, keep(), true));
            opened.get()
        });
        match posted {
            Ok(Posted::Done(value)) => Ok(Started::Done(value)),
            Ok(Posted::Started) => Ok(Started::InFlight(opened.get())),
            Err(Refused::Never(cause)) => Err(*cause),
            Err(Refused::Again | Refused::Relay) => {
                let draft = NewOperation { action, order: Order::Free, keep: keep(), claimed: true };
                let number = self.operations().enter(draft, None);
                self.start_ready(); // whoever goes to sleep now has seen to it
                Ok(Started::InFlight(number))
            }
        }
    }
}
