//! Modules that the examples share with each other and with `tasuki demo`. The programs are in `src/bin`; read
//! `hello` and `ring` first.

pub mod farm;
pub mod graph;
pub mod heat;
pub mod jacobi;
pub mod kmer;
pub mod png_file;
pub mod progress_bar;
pub mod random;
pub mod sgd;

/// A number of ranks with the right singular or plural.
pub fn ranks(count: usize) -> String {
    format!("{count} rank{}", if count == 1 { "" } else { "s" })
}

/// Compiles and runs the programs of the guide with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/schedules.md")]
mod guide {}

/// Compiles and runs the program of the README with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
