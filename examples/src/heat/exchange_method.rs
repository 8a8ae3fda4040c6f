//! The methods to exchange rows between neighbours, of which the user chooses one.

use super::commands::CommandExchange;
use super::exchange::Exchange;
use super::messages::MessageExchange;
use super::puts::PutExchange;
use tasuki::prelude::*;

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
    /// Makes the exchange for strips of `columns` columns with the neighbours above and below. Collective.
    pub(super) fn exchange<'job>(
        self,
        job: &'job Job,
        columns: usize,
        peers: [Option<Rank>; 2],
    ) -> tasuki::Result<Box<dyn Exchange + 'job>> {
        Ok(match self {
            ExchangeMethod::Puts => Box::new(PutExchange::new(job, columns, peers)?),
            ExchangeMethod::Messages => Box::new(MessageExchange::new(job, columns, peers)),
            ExchangeMethod::Commands => Box::new(CommandExchange::new(job, columns, peers)?),
        })
    }
}
