//! A hash table whose buckets are distributed over all ranks.

use super::word::Word;
use tasuki::prelude::*;

/// Buckets that each rank has beyond twice its share, because words are not spread evenly.
const SPARE: usize = 64;

/// The table: an array of buckets on each rank, each with a key and a count.
pub struct Table {
    /// 0 for a free bucket, otherwise the word plus one.
    keys: Array<u64>,
    counts: Array<u64>,
}

impl Table {
    /// Makes a table with room for `words_max` different words.
    ///
    /// Collective: all ranks pass the same number. Cost: 32 bytes or more for each word, distributed over the ranks.
    pub fn new(job: &Job, words_max: usize) -> tasuki::Result<Table> {
        let buckets = 2 * words_max.div_ceil(job.size()) + SPARE;
        Ok(Table { keys: job.alloc(buckets)?, counts: job.alloc(buckets)? })
    }

    /// Adds one to the count of a word. Any rank may call it at any time. If several ranks claim a bucket at once,
    /// one succeeds, and the others see which word has it.
    pub fn add(&self, job: &Job, word: Word) -> tasuki::Result<()> {
        let (hash, key, buckets) = (hash(word) as usize, word + 1, self.keys.len());
        let (owner, first) = (Rank(hash % job.size()), hash / job.size() % buckets);
        for bucket in (first..buckets).chain(0..first) {
            let at = self.keys.on(owner).at(bucket);
            let found = match job.load(at)? {
                0 => job.compare_swap(at, 0, key)?,
                found => found,
            };
            if found == 0 || found == key {
                return job.accumulate(self.counts.on(owner).at(bucket), &[1], Sum);
            }
        }
        Err(format!("all {buckets} buckets of rank {owner} are in use").into())
    }

    /// All words of a rank with their counts, in any order. Call it after a barrier that follows all additions.
    pub fn of(&self, job: &Job, rank: Rank) -> tasuki::Result<Vec<(Word, u64)>> {
        let [keys, counts] = [&self.keys, &self.counts].map(|array| job.get_vec(array.on(rank), array.len()));
        let used = keys?.into_iter().zip(counts?).filter(|(key, _)| *key != 0);
        Ok(used.map(|(key, count)| (key - 1, count)).collect())
    }
}

/// A hash in which each bit depends on all bits of the word: the finalizer of SplitMix by Steele, Lea and Flood
/// (OOPSLA 2014).
fn hash(word: Word) -> u64 {
    let once = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ twice >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_count_a_word_in_one_bucket() {
        let tables = tasuki::local(3, |job| {
            let table = Table::new(job, 10)?;
            for word in [0, 7, 7] {
                table.add(job, word)?;
            }
            job.barrier()?;
            let mut all = Vec::new();
            for rank in job.ranks() {
                all.extend(table.of(job, rank)?);
            }
            all.sort_unstable();
            job.barrier()?;
            Ok(all)
        });
        assert_eq!(tables.unwrap(), vec![vec![(0, 3), (7, 6)]; 3]);
    }

    #[test]
    fn a_full_table_is_an_error() {
        let outcome = tasuki::local(1, |job| {
            let table = Table::new(job, 1)?;
            (0..1000).try_for_each(|word| table.add(job, word))
        });
        assert!(outcome.unwrap_err().to_string().contains("all 66 buckets of rank 0 are in use"));
    }
}
