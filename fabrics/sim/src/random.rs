//! All random numbers of a run, drawn from its seed.
//!
//! Source: Blackman, Vigna, "Scrambled linear pseudorandom number generators" (2021): xoshiro256++, its state filled
//! by splitmix64.

/// The only source of random numbers of a run. Only the thread that has the turn draws, so the order is fixed.
#[derive(Debug)]
pub(crate) struct Random([u64; 4]);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut state = seed;
        Random(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// Draws any 64-bit number.
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

    /// Draws a number from 0 to `most`, both included.
    #[inline]
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * (u128::from(most) + 1)) >> 64) as u64
    }

    /// Draws a number from `least` to `most`, both included; returns `least` if it is the larger.
    #[inline]
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.up_to(most.saturating_sub(least))
    }

    /// Returns true with that probability.
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
    fn equal_seeds_give_equal_numbers_and_different_seeds_different_ones() {
        let take = |seed| {
            let mut random = Random::new(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_both_ends() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.between(3, 7)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&7)));
        assert_eq!((random.between(9, 2), random.up_to(0)), (9, 0));
        random.up_to(u64::MAX); // does not overflow
    }

    #[test]
    fn chance_is_true_with_its_probability() {
        let mut random = Random::new(2);
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2_200..2_800).contains(&hits), "{hits}");
        assert!(!random.chance(0.0) && random.chance(1.0));
    }
}
