//! What the examples share with each other and with `tasuki demo`. The programs are in `src/bin`; read `hello` and
//! `ring` first.

pub mod bar;
pub mod graph;
pub mod heat;
pub mod kmer;
pub mod random;
pub mod sgd;

/// A number of ranks, as one says it.
pub fn ranks(count: usize) -> String {
    format!("{count} rank{}", if count == 1 { "" } else { "s" })
}

/// The programs of the guide are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/schedules.md")]
mod guide {}

/// The program of the README is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
