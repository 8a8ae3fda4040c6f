//! The temperature of a plate, by Laplace's equation and Jacobi's iteration, on any number of ranks.
//!
//! The plate has `rows x columns` cells. In each iteration every cell becomes the mean of its four neighbours in
//! the iteration before, but for those whose temperature is held ([`Plate`]). Each rank has a strip of whole rows
//! ([`strip_of`]) in vectors of its own ([`Strip`]). What it needs of its neighbours, the rows next to its strip,
//! they put into its memory with a signal ([`Halo`]); nobody asks and nobody answers. Or they send it as messages
//! ([`Mail`]), for comparison: more copies, and nothing to prove. Or commands that were posted once fetch them
//! ([`Prepared`]), by the rank that has time. At the end rank 0 gets the strips ([`solve`]), and may compare them with
//! a run that knows nothing of ranks ([`serial`]): the same additions in the same order give the same bits.
//!
//! | file | holds |
//! |---|---|
//! | plate | the problem: sizes, held temperatures |
//! | strip | one rank's rows, and the step |
//! | exchange | what the iteration needs of an exchange between neighbours, and the ways there are |
//! | halo | by puts, and why they need no answer |
//! | mail | by messages |
//! | prepared | by commands that are posted once |
//! | solve | the run: iterate, gather, report |
//! | serial | the same without ranks |
//! | field | the temperatures of a whole plate |
//! | moved | counts of what was communicated |
//! | picture | PNG |

mod exchange;
mod field;
mod halo;
mod mail;
mod moved;
mod picture;
mod plate;
mod prepared;
mod serial;
mod solve;
mod strip;

pub use exchange::{Exchange, Way};
pub use field::{Difference, Field};
pub use halo::Halo;
pub use mail::Mail;
pub use moved::{Moved, Part};
pub use picture::{Picture, check_writable};
pub use plate::{CELLS_MAX, Plate};
pub use prepared::Prepared;
pub use serial::serial;
pub use solve::{Solution, solve, solve_by};
pub use strip::{Strip, strip_of};
