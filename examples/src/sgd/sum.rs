//! Sums that are the same in any order: what a block of samples comes to is rounded once, and whole numbers are added
//! up.

/// Samples whose values are added up as floating point numbers, in their order.
pub const BLOCK: usize = 16;

/// A whole number stands for so many times as much as it is.
const UNIT: f64 = (1_u64 << 32) as f64;
/// No block comes to more: a batch of 2^20 blocks fits in 64 bits.
const BLOCK_MAX: f32 = 2048.0;

/// Sums of some values over blocks of samples.
#[derive(Debug)]
pub struct Sum {
    block: Vec<f32>,
    /// Behind the values stands how many could not be told.
    exact: Vec<i64>,
}

impl Sum {
    /// Of so many values, all zero.
    pub fn new(count: usize) -> Sum {
        Sum { block: vec![0.0; count], exact: vec![0; count + 1] }
    }

    /// What the block that is open has come to.
    pub fn block(&mut self) -> &mut [f32] {
        &mut self.block
    }

    /// Ends a block.
    pub fn close(&mut self) {
        let (exact, untold) = self.exact.split_at_mut(self.block.len());
        for (value, sum) in self.block.iter_mut().zip(exact) {
            if value.abs() <= BLOCK_MAX {
                *sum += Sum::rounded(*value);
            } else {
                untold[0] += 1; // too large, or no number
            }
            *value = 0.0;
        }
    }

    /// The whole number for a value.
    pub fn rounded(value: f32) -> i64 {
        (f64::from(value) * UNIT).round() as i64
    }

    /// The value of a whole number.
    pub fn value(exact: i64) -> f64 {
        exact as f64 / UNIT
    }

    /// The sums of all blocks, as whole numbers.
    pub fn values(&self) -> &[i64] {
        &self.exact[..self.block.len()]
    }

    /// Whether each block could be added.
    pub fn is_sound(&self) -> bool {
        self.exact.last() == Some(&0)
    }

    /// All that is to be added up over ranks.
    pub fn words(&mut self) -> &mut [i64] {
        &mut self.exact
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.exact.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_add_up_in_any_order_and_what_is_no_number_is_told() {
        let blocks = [0.1, 1e-7, -2000.0, 3.3];
        let add = |blocks: &mut dyn Iterator<Item = f32>| {
            let mut sum = Sum::new(1);
            for block in blocks {
                sum.block()[0] = block;
                sum.close();
            }
            (sum.values()[0], sum.is_sound())
        };
        let (all, is_sound) = add(&mut blocks.into_iter());
        assert_eq!(add(&mut blocks.into_iter().rev()), (all, true));
        assert!(is_sound && (Sum::value(all) - (0.1 + 1e-7 - 2000.0 + 3.3)).abs() < 1e-6);
        assert!(!add(&mut [f32::NAN].into_iter()).1 && !add(&mut [3000.0].into_iter()).1);
    }
}
