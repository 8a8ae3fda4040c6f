//! The one-sided communication of Tasuki: memory that other ranks can access, signals, ordered operations, and one
//! function that waits for all of them.
//!
//! This crate depends on no network library and knows no message pattern. A [`fabric::Fabric`] carries the bytes.
//! Programs use the crates above it: `tasuki-message`, `tasuki-collective` and `tasuki`.
//!
//! The folders are layers. Each uses only those before it:
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
