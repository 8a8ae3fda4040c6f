//! Buffered sends: messages that were copied because no receive came in time (FMPL: the spool).

pub(crate) mod budget;
pub(crate) mod order;
mod settings;
