//! How often each word of k letters occurs in a genome: a hash table that lies on all ranks, filled by remote atomics.
//!
//! All ranks read the file; of the windows of k letters, each takes its blocks in turn ([`Shape::words`]). Two bits a
//! letter make a word a number ([`Word`]), whose hash names a rank and a bucket there. Whoever finds that empty claims
//! it by a compare-and-swap, and everybody counts there by fetch-and-add ([`Table`]): no rank ever answers another. At
//! the end rank 0 gets the buckets ([`count()`]), and may compare them with a count that knows nothing of ranks
//! ([`serial`]).
//!
//! | file | holds |
//! |---|---|
//! | word | words as numbers, the other strand, the windows of a sequence |
//! | fasta | the letters of a file, plain or packed by gzip |
//! | table | the buckets on all ranks |
//! | count | the run: share the windows, fill, gather |
//! | counts | the outcome: the same without ranks, the most frequent, the histogram |
//! | picture | SVG |

mod count;
mod counts;
mod fasta;
mod picture;
mod table;
mod word;

pub use count::count;
pub use counts::{Counts, serial};
pub use fasta::Fasta;
pub use picture::histogram;
pub use table::Table;
pub use word::{K_MAX, Shape, Word};
