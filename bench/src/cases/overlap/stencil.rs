//! Work that a rank does without any call: sweeps of a stencil over values that a cache of its processor holds.

use std::hint::black_box;

/// Values of a field in the first-level cache: 16 KiB for two.
pub(crate) const IN_L1: usize = 1 << 10;
/// Values of one in the second-level cache: 256 KiB for two.
pub(crate) const IN_L2: usize = 16 << 10;

/// A row of values, and the next one.
pub(crate) struct Stencil {
    values: Vec<f64>,
    next: Vec<f64>,
}

impl Stencil {
    /// Of so many values, at least three.
    pub(crate) fn new(values: usize) -> Stencil {
        let row: Vec<f64> = (0..values.max(3)).map(|at| (at % 7) as f64).collect();
        Stencil { next: row.clone(), values: row }
    }

    /// Works out so many values, in whole sweeps: always as much work.
    #[inline(never)]
    pub(crate) fn work(&mut self, points: u64) {
        for _ in 0..points.div_ceil(self.values.len() as u64) {
            let (inner, last) = (&self.values, self.next.len() - 1);
            for (to, of) in self.next[1..last].iter_mut().zip(inner.windows(3)) {
                *to = 0.25 * of[0] + 0.5 * of[1] + 0.25 * of[2];
            }
            std::mem::swap(&mut self.values, &mut self.next);
            black_box(&mut self.values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_smooths_what_is_inside() {
        let mut stencil = Stencil::new(5);
        stencil.values = vec![0.0, 0.0, 4.0, 0.0, 0.0];
        stencil.next = vec![0.0; 5];
        stencil.work(5);
        assert_eq!(stencil.values, [0.0, 1.0, 2.0, 1.0, 0.0]);
        stencil.work(6); // two sweeps
        assert_eq!(stencil.values, [0.0, 0.875, 1.25, 0.875, 0.0]);
    }
}
