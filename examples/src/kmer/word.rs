//! Words of k letters as numbers.

/// The largest k: a word has two bits for each letter, and the largest word plus one must fit, too.
pub const K_MAX: u32 = 31;

/// A word: two bits for each letter (A, C, G, T), the first letter in the highest of 2k bits.
pub type Word = u64;

/// The kind of words that are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Letters of a word, 1 to [`K_MAX`].
    pub k: u32,
    /// If true, a word and its reverse complement (the same place on the other strand) count as one word, the smaller
    /// of the two.
    pub canonical: bool,
}

impl Shape {
    /// The number of possible words.
    pub fn words_max(self) -> u64 {
        1 << (2 * self.k)
    }

    /// Makes a window that slides over a sequence letter by letter. A character other than A, C, G and T, in either
    /// case, empties the window, so that no word contains it.
    pub fn words(self) -> Window {
        Window { shape: self, forward: 0, backward: 0, filled: 0 }
    }

    /// The word in letters.
    pub fn letters(self, word: Word) -> String {
        let letter = |at: u32| char::from(b"ACGT"[(word >> (2 * at)) as usize & 3]);
        (0..self.k).rev().map(letter).collect()
    }
}

/// The last k letters of a sequence, on both strands.
#[derive(Clone, Debug)]
pub struct Window {
    shape: Shape,
    forward: Word,
    backward: Word,
    filled: u32,
}

impl Window {
    /// Adds the next letter. Returns the word that it completes.
    pub fn push(&mut self, letter: u8) -> Option<Word> {
        let Some(code) = code(letter) else {
            self.filled = 0;
            return None;
        };
        let k = self.shape.k;
        self.forward = (self.forward << 2 | code) & (self.shape.words_max() - 1);
        self.backward = self.backward >> 2 | (3 - code) << (2 * (k - 1));
        self.filled = (self.filled + 1).min(k);
        let word = if self.shape.canonical { self.forward.min(self.backward) } else { self.forward };
        (self.filled == k).then_some(word)
    }
}

fn code(letter: u8) -> Option<Word> {
    match letter.to_ascii_uppercase() {
        b'A' => Some(0),
        b'C' => Some(1),
        b'G' => Some(2),
        b'T' => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(k: u32, canonical: bool, sequence: &str) -> Vec<String> {
        let shape = Shape { k, canonical };
        let mut window = shape.words();
        sequence.bytes().filter_map(|letter| window.push(letter)).map(|word| shape.letters(word)).collect()
    }

    #[test]
    fn a_window_slides_and_is_emptied_by_other_characters() {
        assert_eq!(words(3, false, "ACGTnacg"), ["ACG", "CGT", "ACG"]);
        assert!(words(4, false, "ACGNTAC").is_empty());
        assert_eq!(words(1, false, "TG"), ["T", "G"]);
        assert_eq!(words(31, false, &"T".repeat(32)), ["T".repeat(31), "T".repeat(31)]);
    }

    #[test]
    fn a_word_and_its_reverse_complement_count_as_one() {
        assert_eq!(words(3, true, "ACG"), words(3, true, "CGT"));
        assert_eq!(words(3, true, "TTTAAA"), ["AAA", "TAA", "TAA", "AAA"]);
    }
}
