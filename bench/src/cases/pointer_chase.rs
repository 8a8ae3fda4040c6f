//! An order in which words are visited. Each word contains the index of the next one, so neither a prefetcher nor
//! overlap can shorten the time.

/// The index of the next word is in the low half of a word; the number of the pass is in the high half.
const INDEX_BITS: u32 = 32;
/// What a word grows by when the number of its pass grows by one.
pub(crate) const STEP: u64 = 1 << INDEX_BITS;

/// Returns the words of one pass: a single cycle through all of them, which differs from pass to pass (Sattolo's
/// shuffle).
pub(crate) fn chain(words: usize, pass: u64) -> impl Iterator<Item = u64> {
    let mut next: Vec<u32> = (0..words as u32).collect();
    let mut state = pass;
    for last in (1..words).rev() {
        next.swap(last, (random(&mut state) % last as u64) as usize);
    }
    next.into_iter().map(move |next| u64::from(next) + pass * STEP)
}

/// Returns the index of the word that follows this one.
#[inline(always)]
pub(crate) fn next(word: u64) -> usize {
    word as u32 as usize
}

/// Returns the pass in which this word was written.
#[inline(always)]
pub(crate) fn pass(word: u64) -> u64 {
    word >> INDEX_BITS
}

/// Splitmix64.
pub(crate) fn random(state: &mut u64) -> u64 {
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
        let words: Vec<u64> = chain(1000, 5).collect();
        let (mut at, mut seen) = (0, vec![false; 1000]);
        for _ in 0..1000 {
            assert!(!std::mem::replace(&mut seen[at], true));
            assert_eq!(pass(words[at]), 5);
            at = next(words[at]);
        }
        assert_eq!(at, 0);
    }
}
