//! The run on all ranks: share the windows, fill the table, then rank 0 gets it.

use super::counts::Counts;
use super::fasta::Fasta;
use super::table::Table;
use super::word::{Shape, Word};
use std::io;
use std::path::Path;
use tasuki::prelude::*;
use tasuki::{Cause, Error};

/// Windows that a rank takes in a row.
const BLOCK: u64 = 1024;

/// Counts the words of a file; rank 0 is given the outcome, the others nothing.
///
/// Collective: all ranks with the same file, which is read twice by each, and the same shape. `progress` is told
/// before each block of this rank how many windows have been passed, and how many there are. Costs a load and an
/// addition in another rank's memory for each window, and a compare-and-swap for each different word; two words of
/// memory for each bucket, of which there are twice as many as there can be different words.
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
    let table = Table::new(job, windows.min(shape.words_max()))?;
    let (size, own) = (job.size() as u64, u64::from(job.rank().0));
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
    job.barrier()?; // all have counted
    progress(windows, windows);
    let counts = if job.rank() == Rank(0) { Some(gather(job, &table, shape)?) } else { None };
    job.barrier()?; // rank 0 has them: the memory may go
    Ok(counts)
}

fn gather(job: &Job, table: &Table, shape: Shape) -> tasuki::Result<Counts> {
    let mut all = Vec::new();
    for rank in job.ranks() {
        all.extend(table.of(job, rank)?);
    }
    Ok(Counts::new(shape, all))
}

/// What ends the reading of a file before its end.
enum Ended {
    ByFile(io::Error),
    ByTaker(Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::ByFile(error)
    }
}

/// Hands on each word of a file, in order.
pub(super) fn each_word(
    path: &Path,
    shape: Shape,
    mut take: impl FnMut(Word) -> tasuki::Result<()>,
) -> tasuki::Result<()> {
    let mut window = shape.words();
    let letter = |letter| window.push(letter).map_or(Ok(()), &mut take).map_err(Ended::ByTaker);
    let read = Fasta::open(path).map_err(Ended::ByFile).and_then(|fasta| fasta.read(letter));
    read.map_err(|ended| match ended {
        Ended::ByFile(error) => {
            Error::new(Cause::Program(format!("cannot read {}: {error}", path.display())))
        }
        Ended::ByTaker(error) => error,
    })
}
