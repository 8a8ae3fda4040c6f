//! What the subcommands of `tasuki` share: what they print and with which status they end ([`exit_status`]), the files
//! that they write ([`output_file`]), and processes that must not outlive them ([`child`]).

pub mod child;
pub mod exit_status;
pub mod output_file;

pub use exit_status::{CLOSED, MISUSE, Misuse, misuse, not_written, outcome, print, warn};
pub use output_file::{Sink, is_standard_output};
