//! The result: how often each word occurs. Also the serial count, with a table of the standard library.

use super::count::each_word;
use super::word::{Shape, Word};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Words with their counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    shape: Shape,
    /// Sorted by word.
    sorted: Vec<(Word, u64)>,
}

impl Counts {
    /// Makes the result from counts of different words, in any order.
    pub fn new(shape: Shape, mut counts: Vec<(Word, u64)>) -> Counts {
        counts.sort_unstable();
        Counts { shape, sorted: counts }
    }

    /// The kind of words that were counted.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of different words.
    pub fn distinct(&self) -> usize {
        self.sorted.len()
    }

    /// The number of all words.
    pub fn total(&self) -> u64 {
        self.sorted.iter().map(|(_, count)| count).sum()
    }

    /// The most frequent words, in letters. Equally frequent words are in alphabetical order.
    pub fn top(&self, how_many: usize) -> Vec<(String, u64)> {
        let mut all: Vec<(Reverse<u64>, Word)> =
            self.sorted.iter().map(|&(word, count)| (Reverse(count), word)).collect();
        all.sort_unstable();
        let first = all.into_iter().take(how_many);
        first.map(|(Reverse(count), word)| (self.shape.letters(word), count)).collect()
    }

    /// The number of words that occur once, twice, and so on; only for counts that occur.
    pub fn histogram(&self) -> BTreeMap<u64, u64> {
        let mut histogram = BTreeMap::new();
        self.sorted.iter().for_each(|(_, count)| *histogram.entry(*count).or_insert(0) += 1);
        histogram
    }

    /// Describes the first difference from other counts; `None` if they are equal.
    pub fn difference(&self, other: &Counts) -> Option<String> {
        let [own, others] =
            [self, other].map(|counts| counts.sorted.iter().copied().collect::<BTreeMap<_, _>>());
        let words = own.keys().chain(others.keys());
        let differs = words.filter(|word| own.get(word) != others.get(word)).min()?;
        let of = |counts: &BTreeMap<Word, u64>| counts.get(differs).copied().unwrap_or(0);
        Some(format!("{} occurs {} times, and {} times", self.shape.letters(*differs), of(&own), of(&others)))
    }
}

/// Counts the words without ranks.
pub fn serial(path: &Path, shape: Shape) -> tasuki::Result<Counts> {
    let mut counts: HashMap<Word, u64> = HashMap::new();
    each_word(path, shape, |word| {
        *counts.entry(word).or_insert(0) += 1;
        Ok(())
    })?;
    Ok(Counts::new(shape, counts.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_is_sorted_by_count_and_the_histogram_counts_words() {
        let shape = Shape { k: 2, canonical: false };
        let counts = Counts::new(shape, vec![(4, 2), (0, 2), (1, 9), (15, 1)]);
        let top: Vec<_> = counts.top(3);
        assert_eq!(top, [("AC".to_string(), 9), ("AA".to_string(), 2), ("CA".to_string(), 2)]);
        assert_eq!(counts.histogram().into_iter().collect::<Vec<_>>(), [(1, 1), (2, 2), (9, 1)]);
        assert_eq!((counts.distinct(), counts.total()), (4, 14));
        let other = Counts::new(shape, vec![(0, 2), (1, 9), (4, 3)]);
        assert_eq!(counts.difference(&other).unwrap(), "CA occurs 2 times, and 3 times");
        assert_eq!(counts.difference(&counts), None);
    }
}
