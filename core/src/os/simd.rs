//! Loops over many values by wider instructions than all processors of their kind have: AVX2 on x86-64.
#![allow(unsafe_code)]
//! Unsafe: a function that is compiled for wider registers is called where the processor has them.

/// Bytes of values that are worth it.
const MIN: usize = 256;

/// Does `body`, a loop over so many bytes, compiled for wide registers if this processor has them, as far as it can be
/// inlined. The same values come of it, to the bit, but for what a NaN carries.
#[inline(always)]
pub fn vectorized<R>(bytes: usize, body: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes >= MIN && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has them.
        return unsafe { by_avx2(body) };
    }
    body()
}

/// # Safety
/// The processor must have AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn by_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_done_once_however_long_it_is() {
        for count in [0, 1, MIN - 1, MIN, 10 * MIN] {
            let mut values = vec![1_u8; count];
            vectorized(count, || values.iter_mut().for_each(|value| *value = value.wrapping_mul(3)));
            assert_eq!(values, vec![3; count]);
        }
    }
}
