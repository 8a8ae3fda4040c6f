//! Command queues: their layout in memory that all ranks of a node map, and the rule which rank may write which word.
//!
//! A *command* is `(trigger) -> action -> (effects)`. A rank posts it into a ring (`ring`). The rank that holds the
//! queue's lease (`lease`) reads it. If the trigger is not met, the command waits in the list of its signal
//! (`triggered`). A command that has fired is run under the lease or stays in the in-flight list (`in_flight`) until it
//! ends. Effects on the same signal happen in the order in which the commands fired. This folder only holds the data
//! structures; `engine/command_queue` runs the commands.
//!
//! | shared word | written by | read by | protocol |
//! |---|---|---|---|
//! | writers: reserved | posters (CAS) | posters; the owner when it stops polling | `ring` |
//! | line: number, words | the poster that reserved it | the lease holder | `ring` |
//! | reader: read | the lease holder | posters | `ring` |
//! | lease | all (CAS) | all | `lease` |
//! | lists, in-flight commands, queue state | the lease holder | others, as a guess | under the lease |
//! | in-flight command: state, failure | the rank that runs it, at its end | the lease holder | `in_flight` |
//! | signal: control word, poison | the lease holder; raisers | raisers; the lease holder | `fabric/signal_control` |
//! | directory: poll state | the rank and its pollers | raisers and posters | `directory` |

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
mod repeating_encoding;
pub mod ring;
pub mod triggered;
