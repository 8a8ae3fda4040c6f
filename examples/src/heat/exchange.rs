//! The exchange of rows between neighbours: the trait that the iteration uses, and the methods.

use super::commands::CommandExchange;
use super::messages::MessageExchange;
use super::puts::PutExchange;
use super::strip::Strip;
use super::transfer_count::TransferCount;
use tasuki::Job;

/// The exchange of one rank with the ranks above and below. Row `k` is an outermost row of a strip after `k`
/// iterations. Row 0 is never sent, because every rank computes the initial values itself.
pub trait Exchange {
    /// Waits for the neighbours' rows `iteration` and copies them into the ghost rows of the strip.
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()>;

    /// Sends the outermost new rows of the strip, which are rows `iteration`, to the neighbours. Their values may be
    /// reused when it returns.
    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()>;

    /// The rows sent, and the rows waited for and copied out.
    fn transfer_counts(&self) -> [TransferCount; 2];
}

/// How neighbours exchange rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ExchangeMethod {
    /// Each rank puts its rows into the neighbour's memory, with a signal
    Puts,
    /// Each rank sends its rows and receives the neighbour's rows
    Messages,
    /// Commands that are posted once fetch the rows; the rank that has time runs them
    Commands,
}

impl ExchangeMethod {
    /// Makes the exchange for strips of `columns` columns. Collective. `above` and `below` are true if this rank's
    /// strip has a neighbour there, which is then the previous or the next rank.
    pub(super) fn exchange<'job>(
        self,
        job: &'job Job,
        columns: usize,
        above: bool,
        below: bool,
    ) -> tasuki::Result<Box<dyn Exchange + 'job>> {
        Ok(match self {
            ExchangeMethod::Puts => Box::new(PutExchange::new(job, columns, above, below)?),
            ExchangeMethod::Messages => Box::new(MessageExchange::new(job, columns, above, below)),
            ExchangeMethod::Commands => Box::new(CommandExchange::new(job, columns, above, below)?),
        })
    }
}
