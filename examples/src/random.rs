//! Pseudorandom numbers that are the same in each run.

/// A hash of a number: the steps of SplitMix64. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators" (2014).
pub fn hash64(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
