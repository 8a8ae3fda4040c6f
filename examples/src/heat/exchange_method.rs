//! The methods to exchange rows between neighbours, of which the user chooses one.

use super::commands::CommandExchange;
use super::exchange::Exchange;
use super::messages::MessageExchange;
use super::puts::PutExchange;
use tasuki::Job;

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
