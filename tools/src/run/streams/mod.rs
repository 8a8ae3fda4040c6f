//! What the launcher reads and writes: the output of ranks, and the terminal's input.

pub(crate) mod line_buffer;
pub(crate) mod output;
pub(crate) mod printer;
pub(crate) mod stdin;
