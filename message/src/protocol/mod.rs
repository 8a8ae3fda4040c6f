//! How a message that is not short gets from sender to receiver.
//!
//! ```text
//! sender, receiver  the steps of either side           state_machine   either of them
//! ring, ring_span   memory for messages in chunks      pipelined       a send through a ring
//! ring_consumer     how much of it was taken           ring_fast_path  a ring without calls of the fabric
//! split_copy        both ranks copy a part each        late_match      a message that met a withdrawn receive
//! outcome           how a message has ended            kept            a message that met a dropped receive
//! ```

pub(crate) mod fit;
pub(crate) mod kept;
pub(crate) mod late_match;
pub(crate) mod outcome;
pub(crate) mod pipelined;
pub(crate) mod receiver;
pub(crate) mod ring;
pub(crate) mod ring_consumer;
pub(crate) mod ring_fast_path;
pub(crate) mod ring_span;
pub(crate) mod sender;
pub(crate) mod split_copy;
pub(crate) mod state_machine;
