//! The run on all ranks: divide the windows, fill the table, gather it on rank 0.

use super::counts::Counts;
use super::fasta::Fasta;
use super::table::Table;
use super::word::{Shape, Word};
use std::error::Error as _;
use std::io;
use std::path::Path;
use tasuki::prelude::*;

/// The number of consecutive windows in a block.
const BLOCK: u64 = 1024;

/// Counts the words of a file. Returns the result on rank 0 and `None` on the other ranks.
///
/// Collective: all ranks pass the same file, which each reads twice, and the same shape. Before each block of this
/// rank, `progress` is called with the number of windows passed and the number of all windows. Cost: for each window
/// a load and an addition in another rank's memory; for each different word a compare-and-swap; two words of memory
/// for each bucket, and twice as many buckets as there can be different words.
pub fn count(
    job: &Job,
    path: &Path,
    shape: Shape,
    mut progress: impl FnMut(u64, u64),
) -> tasuki::Result<Option<Counts>> {
    let mut windows = 0;
    each_word(path, shape, |_| {
        windows += 1;
        Ok(())
    })?;
    let table = Table::new(job, windows.min(shape.words_max()) as usize)?;
    let (size, own) = (job.size() as u64, job.rank().index() as u64);
    let mut passed = 0;
    each_word(path, shape, |word| {
        let at = passed;
        passed += 1;
        if at / BLOCK % size != own {
            return Ok(());
        }
        if at.is_multiple_of(BLOCK) {
            progress(at, windows);
        }
        table.add(job, word)
    })?;
    job.barrier()?; // all ranks have counted
    progress(windows, windows);
    let counts = if job.rank() == 0 { Some(gather(job, &table, shape)?) } else { None };
    job.barrier()?; // rank 0 has the counts: the memory may be freed
    Ok(counts)
}

fn gather(job: &Job, table: &Table, shape: Shape) -> tasuki::Result<Counts> {
    let mut all = Vec::new();
    for rank in job.ranks() {
        all.extend(table.of(job, rank)?);
    }
    Ok(Counts::new(shape, all))
}

/// Passes each word of a file to `take`, in order. An error of the file names it; one of `take` stays as it is.
pub(super) fn each_word(
    path: &Path,
    shape: Shape,
    mut take: impl FnMut(Word) -> tasuki::Result<()>,
) -> tasuki::Result<()> {
    let mut window = shape.words();
    let letter = |letter| window.push(letter).map_or(Ok(()), &mut take);
    let read = Fasta::open(path).map_err(Error::from).and_then(|fasta| fasta.read(letter));
    read.map_err(|error| match error.source().and_then(|why| why.downcast_ref::<io::Error>()) {
        Some(why) => format!("cannot read {}: {why}", path.display()).into(),
        None => error,
    })
}
