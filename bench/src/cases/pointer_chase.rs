//! An order in which words are visited, each naming the next: no prefetcher and no overlap can shorten the way.

/// The cycle through all words as a table: after word `i` comes word `next[i]`.
#[derive(Debug)]
pub(crate) struct PointerChain {
    next: Vec<u32>,
}

/// Low half of a word: the next one. High half: which pass wrote it.
const INDEX_BITS: u32 = 32;
/// What an atomic adds to a word: one more pass in its high half.
pub(crate) const STEP: u64 = 1 << INDEX_BITS;

impl PointerChain {
    /// A random single cycle (Sattolo's algorithm) through `words` words; another for every seed.
    pub(crate) fn random(words: usize, seed: u64) -> PointerChain {
        let mut next: Vec<u32> = (0..words as u32).collect();
        let mut state = seed;
        for last in (1..words).rev() {
            next.swap(last, (random(&mut state) % last as u64) as usize);
        }
        PointerChain { next }
    }

    /// The words to be written for one pass, by number.
    pub(crate) fn words(&self, pass: u64) -> impl Iterator<Item = u64> {
        self.next.iter().map(move |&next| u64::from(next) + pass * STEP)
    }
}

/// The number of the next word.
#[inline(always)]
pub(crate) fn next(word: u64) -> usize {
    word as u32 as usize
}

/// The pass that wrote a word.
#[inline(always)]
pub(crate) fn pass(word: u64) -> u64 {
    word >> INDEX_BITS
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_word_once_and_comes_back() {
        let words: Vec<u64> = PointerChain::random(1000, 3).words(5).collect();
        let (mut at, mut seen) = (0, vec![false; 1000]);
        for _ in 0..1000 {
            assert!(!std::mem::replace(&mut seen[at], true));
            assert_eq!(pass(words[at]), 5);
            at = next(words[at]);
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn seeds_give_different_chains() {
        let of = |seed| PointerChain::random(100, seed).words(0).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
