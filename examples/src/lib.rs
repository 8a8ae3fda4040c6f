//! What the examples share with each other and with `tasuki demo`. The programs are in `src/bin`; read `hello` and
//! `ring` first.

pub mod heat;
pub mod kmer;
