//! Counts how often each word of k letters occurs in a genome. The hash table is distributed over all ranks and
//! filled by remote atomics.
//!
//! All ranks read the file. The windows of k letters are divided into blocks, and each rank takes blocks in turn
//! ([`Shape::words`]). With two bits for each letter a word is a number ([`Word`]), whose hash selects a rank and a
//! bucket there. A rank that finds an empty bucket claims it by a compare-and-swap, and all ranks count in it by
//! fetch-and-add ([`Table`]): no rank ever replies to another. At the end rank 0 gets the buckets ([`count()`]) and
//! may compare them with a count without ranks ([`serial`]).
//!
//! | file | content |
//! |---|---|
//! | word | words as numbers, the other strand, the windows of a sequence |
//! | fasta | the letters of a file, plain or compressed by gzip |
//! | table | the distributed hash table |
//! | count | the run: divide the windows, fill the table, gather |
//! | counts | the result: most frequent words, histogram; and the serial count |
//! | picture | the histogram as SVG |

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
