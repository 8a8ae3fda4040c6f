//! The temperature of a plate, by Laplace's equation and Jacobi iteration, on any number of ranks.
//!
//! The plate has `rows x columns` cells. In each iteration every cell becomes the mean of its four neighbours in the
//! previous iteration, except for cells whose temperature is held ([`Plate`]). Each rank has a strip of whole rows
//! ([`strip_of`]) in vectors of its own ([`Strip`]). It needs the rows of its neighbours next to its strip. There are
//! three methods to exchange them. With [`PutExchange`] each rank puts its rows into the neighbours' memory with a
//! signal, and no rank replies. With [`MessageExchange`] ranks send the rows as messages, for comparison: more
//! copies, but nothing to prove. With [`CommandExchange`] commands that were posted once fetch the rows, run by the
//! rank that has time. At the end rank 0 gets the strips ([`solve`]) and may compare them with a run without ranks
//! ([`serial`]): the same additions in the same order give the same bits.
//!
//! | file | content |
//! |---|---|
//! | plate | the problem: sizes, held temperatures |
//! | strip | one rank's rows, and the iteration step |
//! | exchange | the trait of an exchange between neighbours |
//! | exchange_method | the methods, of which the user chooses one |
//! | puts | the exchange by puts, and why it needs no reply |
//! | messages | the exchange by messages |
//! | commands | the exchange by commands that are posted once |
//! | solve | the run: iterate, gather, report |
//! | serial | the same iterations without ranks |
//! | field | the temperatures of a whole plate |
//! | transfer_count | counts and times of transfers |
//! | picture | the picture of the plate as PNG |

mod commands;
mod exchange;
mod exchange_method;
mod field;
mod messages;
mod picture;
mod plate;
mod puts;
mod serial;
mod solve;
mod strip;
mod transfer_count;

pub use commands::CommandExchange;
pub use exchange::Exchange;
pub use exchange_method::ExchangeMethod;
pub use field::{Difference, Field};
pub use messages::MessageExchange;
pub use picture::{Picture, check_writable};
pub use plate::{CELLS_MAX, Plate};
pub use puts::PutExchange;
pub use serial::serial;
pub use solve::{Solution, solve, solve_by};
pub use strip::{Strip, strip_of};
pub use transfer_count::{RankReport, TransferCount};
