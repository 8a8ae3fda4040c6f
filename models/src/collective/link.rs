//! How the steps of a collective call travel: as messages of a context of the communicator's own, which no message of
//! the program meets.

use crate::message::{Context, Place, SHORT_MAX};
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::{Loan, View};

/// The slot of messages that do not fit in a line. The others have receives that stand all the time, in two more.
const LONG: u32 = 2;
/// Slots of such a context.
pub(super) const SLOTS: u32 = 3;

/// One member's way to the others.
#[derive(Debug)]
pub(super) struct Link {
    context: Arc<Context>,
}

impl Link {
    pub(super) fn new(context: Arc<Context>) -> Link {
        Link { context }
    }

    /// Sends bytes to a member that will receive as many.
    #[inline]
    pub(super) fn send(&self, bytes: &[u8], to: Rank) -> Result<()> {
        if bytes.len() <= SHORT_MAX {
            self.context.tell(bytes, to)
        } else {
            self.context.send(bytes, to, LONG)
        }
    }

    /// Receives exactly so many bytes.
    #[inline]
    pub(super) fn recv(&self, into: &mut [u8], from: Rank) -> Result<()> {
        if into.len() > SHORT_MAX {
            let got = self.context.recv(into, from, LONG)?;
            return self.check(got.len as usize, into.len(), from);
        }
        let mut line = [0; SHORT_MAX];
        let got = self.context.hear(&mut line, from)?;
        self.check(got, into.len(), from)?;
        into.copy_from_slice(&line[..got]);
        Ok(())
    }

    /// Messages that fit in a line will come from that member: so that its first does not wait.
    #[inline]
    pub(super) fn expect(&self, from: Rank) -> Result<()> {
        self.context.stand(from)
    }

    /// Sends to one member and receives from one, who may be the same, in any order.
    pub(super) fn exchange(&self, bytes: &[u8], to: Rank, into: &mut [u8], from: Rank) -> Result<()> {
        if into.len() <= SHORT_MAX {
            self.expect(from)?;
            self.send(bytes, to)?;
            return self.recv(into, from);
        }
        let (len, pause) = (into.len(), || self.context.machine().pause());
        Loan::lend(View::of_mut(into), &pause, |loan| {
            let begun = self.context.begin_recv(len, || Place::Own(loan.clone()), from, LONG);
            let mut incoming = begun?;
            match self.send(bytes, to) {
                Ok(()) => {
                    let got = incoming.take(&mut [])?;
                    self.check(got.len as usize, len, from)
                }
                Err(error) => {
                    drop(incoming); // it is taken back
                    Err(error)
                }
            }
        })
    }

    /// That a member sent as much as was expected of it.
    fn check(&self, got: usize, wanted: usize, from: Rank) -> Result<()> {
        if got == wanted {
            return Ok(());
        }
        let (least, most) = (got.min(wanted) as u64, got.max(wanted) as u64);
        let cause = Cause::Disagree { what: "bytes", least, most };
        Err(self.context.machine().fault(cause, || format!("a part from rank {from}")))
    }
}
