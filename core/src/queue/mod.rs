//! Command queues in memory that all ranks of a node reach: what lies where, and who may touch what when.
//!
//! A *command* is `(trigger) -> deed -> (effects)`. It is posted into a ring (`ring`); whoever holds the queue's lease
//! (`lease`) reads it. If its trigger is not met it waits in the list of its signal (`parked`); when it has fired it
//! is run, at once or as a flight (`flights`), and its effects happen in the order of its stream. Nobody runs
//! anything here: that is `engine/commands`.
//!
//! | shared word | written by | read by | protocol |
//! |---|---|---|---|
//! | posters: reserved | posters (CAS) | posters; the owner as it goes away | `ring` |
//! | line: number, words | the poster that reserved it | the lease's holder | `ring` |
//! | reader: read | the lease's holder | posters | `ring` |
//! | lease | all (CAS) | all | `lease` |
//! | lists, flights, books | the lease's holder | guesses by others | under the lease |
//! | flight: state, failure | its runner, at its end | the lease's holder | `flights` |
//! | signal: armed, poison | the lease's holder; raisers | raisers; holder | `fabric/arming` |
//! | station: serving | the rank | raisers and posters | `station` |

mod atomic_encoding;
pub mod command;
pub mod directory;
pub mod encoding;
pub mod handler_call;
pub mod in_flight;
pub mod inline_data;
#[cfg(not(loom))]
pub mod inspect;
pub mod layout;
pub mod lease;
pub mod reduction;
mod repeating;
pub mod ring;
pub mod triggered;
