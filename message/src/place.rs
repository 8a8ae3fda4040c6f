//! Where the bytes of a message come from, or go.

use std::sync::Arc;
use tasuki_core::base::Cause;
use tasuki_core::engine::{Caching, Launched, Loan, Machine, Use};
use tasuki_core::segment::GlobalAddress;

/// Memory that a message comes from, or goes to.
#[derive(Clone, Debug)]
pub enum Place {
    /// Memory of the program's own, lent to the message.
    Own(Arc<Loan>),
    /// Job memory of this rank's, and how many bytes.
    Job(GlobalAddress, u64),
}

impl Place {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        match self {
            Place::Own(loan) => loan.len() as u64,
            Place::Job(_, len) => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Uses it, from here on for any number of copies: what counts its uses waits, on most processors, until all that
    /// was written before is in the caches.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_>, Cause> {
        match self {
            Place::Own(loan) => loan.enter().map(Entered::Own),
            Place::Job(at, _) => Ok(Entered::Job(*at)),
        }
    }
}

/// A place in use.
#[derive(Debug)]
pub(crate) enum Entered<'p> {
    Own(Use<'p>),
    Job(GlobalAddress),
}

impl Entered<'_> {
    /// Copies the first bytes out. Short messages from job memory are read before they set out.
    pub(crate) fn read(&self, into: &mut [u8]) -> Result<(), Cause> {
        match self {
            Entered::Own(used) => {
                used.view().read(0, into);
                Ok(())
            }
            Entered::Job(_) => Err(Cause::Bug("a short message was left in job memory".into())),
        }
    }

    /// Starts to copy a few bytes in, from the start.
    pub(crate) fn store(&self, machine: &Machine, bytes: &[u8]) -> Result<Launched, Cause> {
        match self {
            Entered::Own(used) => {
                used.view().write(0, bytes);
                Ok(Launched::Done(0))
            }
            Entered::Job(at) => machine.launch_put(*at, &Loan::of(bytes.to_vec()).enter()?, 0..bytes.len()),
        }
    }

    /// Starts to copy a part of it, by its start and length, to global memory.
    pub(crate) fn launch(
        &self,
        machine: &Machine,
        (from, len): (u64, u64),
        to: GlobalAddress,
        caching: Caching,
    ) -> Result<Launched, Cause> {
        match self {
            Entered::Own(used) if machine.copy_out(used.view(), from, to, len, caching) => {
                Ok(Launched::Done(0))
            }
            Entered::Own(used) => machine.launch_put(to, used, from as usize..(from + len) as usize),
            Entered::Job(at) if machine.copy_across(at.add(from), to, len, caching) => Ok(Launched::Done(0)),
            Entered::Job(at) => machine.launch_copy(at.add(from), to, len),
        }
    }

    /// Starts to copy global memory into a part of it, by its start and length.
    pub(crate) fn fetch(
        &self,
        machine: &Machine,
        from: GlobalAddress,
        (to, len): (u64, u64),
        caching: Caching,
    ) -> Result<Launched, Cause> {
        match self {
            Entered::Own(used) if machine.copy_in(from, used.view(), to, len, caching) => {
                Ok(Launched::Done(0))
            }
            Entered::Own(used) => machine.launch_get(from, used, to as usize..(to + len) as usize),
            Entered::Job(at) if machine.copy_across(from, at.add(to), len, caching) => Ok(Launched::Done(0)),
            Entered::Job(at) => machine.launch_copy(from, at.add(to), len),
        }
    }
}
