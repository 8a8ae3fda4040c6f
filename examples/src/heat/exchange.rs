//! What the iteration needs of an exchange of rows between neighbours, and the ways there are.

use super::halo::Halo;
use super::mail::Mail;
use super::moved::Moved;
use super::prepared::Prepared;
use super::strip::Strip;
use tasuki::Job;

/// An exchange of one rank with the ranks above and below. Row `k` is an outermost row of a strip as it is after `k`
/// iterations; row 0 is sent by nobody, since every rank works out the start by itself.
pub trait Exchange {
    /// Waits for the neighbours' rows `iteration` and copies them into the ghost rows of the strip.
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()>;

    /// Gives the outermost new rows of the strip, which are rows `iteration`, to the neighbours. Their values may be
    /// used again at once.
    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()>;

    /// What was given, and what was waited for and copied out.
    fn moved(&self) -> [Moved; 2];
}

/// How neighbours exchange rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Way {
    /// Each puts its rows into the other's memory, with a signal
    Puts,
    /// Each sends its rows, and receives the other's
    Messages,
    /// Commands prepared once fetch the rows when a signal says so, by whichever of the two has time
    Commands,
}

impl Way {
    /// Makes the exchange for strips of `columns` columns. Collective; `above` and `below` say whether this rank's
    /// strip has a neighbour there, which is then the rank before or after.
    pub(super) fn exchange<'job>(
        self,
        job: &'job Job,
        columns: usize,
        above: bool,
        below: bool,
    ) -> tasuki::Result<Box<dyn Exchange + 'job>> {
        Ok(match self {
            Way::Puts => Box::new(Halo::new(job, columns, above, below)?),
            Way::Messages => Box::new(Mail::new(job, columns, above, below)),
            Way::Commands => Box::new(Prepared::new(job, columns, above, below)?),
        })
    }
}
