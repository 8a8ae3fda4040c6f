//! Code that the subcommands of `tasuki` share: messages and exit codes ([`exit_status`]), output
//! files ([`output_file`]), and processes that end with their parent ([`child`]).

pub mod child;
pub mod exit_status;
pub mod output_file;

pub use exit_status::{CLOSED, MISUSE, Misuse, misuse, not_written, outcome, print, warn};
pub use output_file::{Sink, is_standard_output};
