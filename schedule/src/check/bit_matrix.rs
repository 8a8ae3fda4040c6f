//! Many sets of the same size.

/// Sets of numbers below a limit, one to a row.
#[derive(Debug)]
pub(super) struct BitMatrix {
    words: Vec<u64>,
    row_words: usize,
}

impl BitMatrix {
    /// So many empty sets.
    pub(super) fn new(rows: usize, limit: usize) -> BitMatrix {
        let row_words = limit.div_ceil(64);
        BitMatrix { words: vec![0; rows * row_words], row_words }
    }

    /// Whether that set has that number.
    #[inline]
    pub(super) fn has(&self, row: usize, number: usize) -> bool {
        self.words[row * self.row_words + number / 64] >> (number % 64) & 1 != 0
    }

    /// Adds a number. Whether it is new.
    #[inline]
    pub(super) fn add(&mut self, row: usize, number: usize) -> bool {
        let (word, bit) = (&mut self.words[row * self.row_words + number / 64], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Adds all of another set. Whether any is new.
    pub(super) fn add_all(&mut self, row: usize, from: usize) -> bool {
        let (row, from) = (row * self.row_words, from * self.row_words);
        let mut news = 0;
        for word in 0..self.row_words {
            let more = self.words[from + word] & !self.words[row + word];
            self.words[row + word] |= more;
            news |= more;
        }
        news != 0
    }
}
