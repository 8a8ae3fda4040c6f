//! Operations that a model starts from inside a waiting call: nothing waits, and the outcome is asked for.

use super::action::{Action, Local};
use super::loan::Use;
use super::machine::Machine;
use super::order::Order;
use super::table::{Draft, Keep};
use crate::base::Cause;
use crate::fabric::{Atomic, Posted, Refused};
use crate::segment::{GlobalAddress, Kind};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// What became of an operation that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Launched {
    /// It has ended, with what it fetched.
    Done(u64),
    /// It is under way: [`Machine::landed`] tells of its end.
    UnderWay(u64),
    /// There is no room for it now.
    Later,
}

impl Machine {
    /// Starts a put of a part of what was lent.
    pub fn launch_put(
        &self,
        to: GlobalAddress,
        used: &Use<'_>,
        part: Range<usize>,
    ) -> Result<Launched, Cause> {
        let len = part.len() as u64;
        let from = Local(used.view().part(part.start as u64, len).cast_mut());
        self.launch(Action::Put { to, from, len }, &|| Some(Arc::new(used.longer())))
    }

    /// Starts a get into a part of what was lent.
    pub fn launch_get(
        &self,
        from: GlobalAddress,
        used: &Use<'_>,
        part: Range<usize>,
    ) -> Result<Launched, Cause> {
        let len = part.len() as u64;
        let to = Local(used.view().part_mut(part.start as u64, len));
        self.launch(Action::Get { from, to, len }, &|| Some(Arc::new(used.longer())))
    }

    /// Starts a copy between two global addresses.
    pub fn launch_copy(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Result<Launched, Cause> {
        match self.sent_from(from, to, len) {
            Some(from) => self.launch(Action::Put { to, from, len }, &|| None),
            None => self.launch(Action::Copy { from, to, len }, &|| None),
        }
    }

    /// This rank's job memory at `from`, where a fabric that knows no third party would fetch it from here to here
    /// before it goes to another rank. It stays mapped, also when it is freed.
    fn sent_from(&self, from: GlobalAddress, to: GlobalAddress, len: u64) -> Option<Local> {
        let can = self.fabric().capabilities();
        if can.third_party || can.map || from.rank() != self.rank() || to.rank() == self.rank() {
            return None;
        }
        let window = self.registry().window();
        let place = window.directory().ok()?.find(from.offset(), len, from.bits()).ok()?;
        let Kind::Job = place.kind else { return None };
        window.at(from.offset(), place.start, place.len).ok().map(|at| Local(at.as_ptr()))
    }

    /// Starts a change of one word.
    pub fn launch_atomic(&self, at: GlobalAddress, atomic: Atomic) -> Result<Launched, Cause> {
        self.launch(Action::Atomic { at, atomic, result: GlobalAddress::NULL }, &|| None)
    }

    /// The outcome of an operation under way, once, when it has ended.
    pub fn landed(&self, number: u64) -> Option<Result<u64, Cause>> {
        if !self.operations().is_finished(number) {
            return None;
        }
        self.operations().take(number).map(|outcome| outcome.map_err(|error| error.cause().clone()))
    }

    fn launch(&self, action: Action, keep: &dyn Fn() -> Keep) -> Result<Launched, Cause> {
        self.check()?;
        if !self.operations().has_room() {
            return Ok(Launched::Later);
        }
        let opened = Cell::new(0);
        let posted = self.post(&action, &|| {
            opened.set(self.open(action, keep(), true));
            opened.get()
        });
        match posted {
            Ok(Posted::Done(value)) => Ok(Launched::Done(value)),
            Ok(Posted::Started) => Ok(Launched::UnderWay(opened.get())),
            Err(Refused::Never(cause)) => Err(*cause),
            Err(Refused::Again | Refused::Relay) => {
                let draft = Draft { action, order: Order::Free, keep: keep(), claimed: true };
                let number = self.operations().enter(draft, None);
                self.start_ready(); // whoever goes to sleep now has seen to it
                Ok(Launched::UnderWay(number))
            }
        }
    }
}
