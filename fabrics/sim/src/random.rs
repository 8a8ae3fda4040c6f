//! All chance of a run, drawn from its seed.
//!
//! Source: Blackman, Vigna, "Scrambled linear pseudorandom number generators" (2021): xoshiro256++, its state filled
//! by splitmix64.

/// The one source of random numbers of a run. Only the thread whose turn it is draws, so the order is fixed.
#[derive(Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut state = seed;
        Random(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// Any number.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `most`, that included.
    #[inline]
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * (u128::from(most) + 1)) >> 64) as u64
    }

    /// A number from `least` to `most`, both included; `least` if it is the larger.
    #[inline]
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.up_to(most.saturating_sub(least))
    }

    /// True with that probability.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.next() >> 11) as f64 / ((1_u64 << 53) as f64) < probability
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_numbers_again_and_another_seed_others() {
        let take = |seed| {
            let mut draws = Random::new(seed);
            [draws.next(), draws.next(), draws.next()]
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut draws = Random::new(1);
        let drawn: Vec<u64> = (0..1_000).map(|_| draws.between(3, 7)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&7)));
        assert_eq!((draws.between(9, 2), draws.up_to(0)), (9, 0));
        draws.up_to(u64::MAX); // does not overflow
    }

    #[test]
    fn chances_come_as_often_as_they_should() {
        let mut draws = Random::new(2);
        let hits = (0..10_000).filter(|_| draws.chance(0.25)).count();
        assert!((2_200..2_800).contains(&hits), "{hits}");
        assert!(!draws.chance(0.0) && draws.chance(1.0));
    }
}
