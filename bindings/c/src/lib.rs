//! The interfaces of the papers for C and Fortran: `fmpl.h`, `nicam.h` and `acp.h`. Built as `libtasuki.so`; `cargo xtask
//! install` installs it.
//!
//! Thin: each function checks its arguments, makes the call of the library, and turns an error into a code. Nothing
//! unwinds into C: a panic becomes the code of a bug.
//!
//! | file | what |
//! |---|---|
//! | [`process_rank`] | starts and ends the rank of this process |
//! | `interface_state` | what NICAM and ACP have between their init and finalize |
//! | [`status`] | the codes of errors, and the text of the last one |
//! | [`handles`] | what a program names by numbers |
//! | [`fmpl`] | the calls of `fmpl.h`, and the same as external symbols for Fortran |
//! | [`nicam`] | the calls of `nicam.h` |
//! | [`acp`] | the calls of `acp.h` |

pub mod acp;
pub mod fmpl;
pub mod handles;
mod interface_state;
pub mod nicam;
pub mod process_rank;
pub mod status;
