//! The one-sided machine of Tasuki: memory that other ranks may reach, signals, ordered operations, and
//! one function that waits for everything.
//!
//! It knows no network library and no message pattern. What carries the bytes is a [`fabric::Fabric`];
//! what programs are written with lives above, in `tasuki-message`, `tasuki-collective` and `tasuki`.
//!
//! The folders stand in layers, each using only those before it:
//! `base` < `os` < `segment` < `node` < `fabric` < `queue` < `engine` < `bootstrap`.
#![warn(clippy::print_stdout)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("Tasuki runs on Linux on x86_64 and aarch64 only: it needs memfd, futex and SCM_RIGHTS.");

pub mod base;
pub mod bootstrap;
pub mod engine;
pub mod fabric;
pub mod node;
pub mod os;
pub mod queue;
pub mod segment;
