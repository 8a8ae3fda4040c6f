//! Runs loops with AVX2 on x86-64 processors that have it; programs are compiled for processors without it.
#![allow(unsafe_code)]
//! Unsafe: calls a function that is compiled for AVX2, after checking that the processor has it.

/// Loops over fewer bytes are too short to gain from AVX2.
const MIN: usize = 256;

/// Runs `body`, a loop over `bytes` bytes, compiled for AVX2 if this processor has it. Only code that is inlined into
/// `body` gains. The results are equal bit by bit, except for the payload of a NaN.
#[inline(always)]
pub fn vectorized<R>(bytes: usize, body: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if bytes >= MIN && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just checked.
        return unsafe { with_avx2(body) };
    }
    body()
}

/// # Safety
/// The processor must have AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_any_length_runs_once() {
        for count in [0, 1, MIN - 1, MIN, 10 * MIN] {
            let mut values = vec![1_u8; count];
            vectorized(count, || values.iter_mut().for_each(|value| *value = value.wrapping_mul(3)));
            assert_eq!(values, vec![3; count]);
        }
    }
}
