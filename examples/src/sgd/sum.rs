//! Sums that are equal in any order: the sum of a block of samples is rounded once to an integer, and integers are
//! summed.

/// The number of samples whose values are summed as floating point numbers, in their order.
pub const BLOCK: usize = 16;

/// The integer of a value is the value times this.
const UNIT: f64 = (1_u64 << 32) as f64;
/// The largest sum of a block: a batch of 2^20 blocks fits in 64 bits.
const BLOCK_MAX: f32 = 2048.0;

/// Sums of several values over blocks of samples.
#[derive(Debug)]
pub struct Sum {
    block: Vec<f32>,
    /// The integer sums, followed by the number of invalid block sums.
    exact: Vec<i64>,
}

impl Sum {
    /// Sums of `count` values, all zero.
    pub fn new(count: usize) -> Sum {
        Sum { block: vec![0.0; count], exact: vec![0; count + 1] }
    }

    /// The sums of the current block.
    pub fn block(&mut self) -> &mut [f32] {
        &mut self.block
    }

    /// Ends the current block and adds its sums.
    pub fn close_block(&mut self) {
        let (exact, invalid) = self.exact.split_at_mut(self.block.len());
        for (value, sum) in self.block.iter_mut().zip(exact) {
            if value.abs() <= BLOCK_MAX {
                *sum += Sum::rounded(*value);
            } else {
                invalid[0] += 1; // too large, or not a number
            }
            *value = 0.0;
        }
    }

    /// The integer of a value.
    pub fn rounded(value: f32) -> i64 {
        (f64::from(value) * UNIT).round() as i64
    }

    /// The value of an integer.
    pub fn value(exact: i64) -> f64 {
        exact as f64 / UNIT
    }

    /// The sums of all blocks as integers.
    pub fn values(&self) -> &[i64] {
        &self.exact[..self.block.len()]
    }

    /// Returns true if all block sums were valid.
    pub fn is_valid(&self) -> bool {
        self.exact.last() == Some(&0)
    }

    /// The words that are summed over the ranks: the sums and the number of invalid block sums.
    pub fn words(&mut self) -> &mut [i64] {
        &mut self.exact
    }

    /// Sets all sums to zero.
    pub fn clear(&mut self) {
        self.exact.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_blocks_does_not_matter_and_invalid_values_are_counted() {
        let blocks = [0.1, 1e-7, -2000.0, 3.3];
        let add = |blocks: &mut dyn Iterator<Item = f32>| {
            let mut sum = Sum::new(1);
            for block in blocks {
                sum.block()[0] = block;
                sum.close_block();
            }
            (sum.values()[0], sum.is_valid())
        };
        let (all, is_valid) = add(&mut blocks.into_iter());
        assert_eq!(add(&mut blocks.into_iter().rev()), (all, true));
        assert!(is_valid && (Sum::value(all) - (0.1 + 1e-7 - 2000.0 + 3.3)).abs() < 1e-6);
        assert!(!add(&mut [f32::NAN].into_iter()).1 && !add(&mut [3000.0].into_iter()).1);
    }
}
