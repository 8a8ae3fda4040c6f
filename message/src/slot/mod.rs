//! Slots: their memory, the encoding of their words, and what this rank knows of each.
//!
//! ```text
//! arena      allocates units of memory for banks       encoding    the words of a slot
//! directory  how two ranks find the bank they share    state       whether one direction of a slot is in use
//! entry_list the lists of the directory
//! bank       64 slots of a pair of ranks               bank_state  whether this rank has a bank open, and where
//! open_close opens, closes and reopens banks           ref_count   which ranks have a bank open, in one word
//! ```

pub(crate) mod arena;
pub(crate) mod bank;
pub(crate) mod bank_state;
pub(crate) mod directory;
pub(crate) mod encoding;
pub(crate) mod entry_list;
mod open_close;
mod ref_count;
pub(crate) mod state;

pub use encoding::SHORT_MAX;
