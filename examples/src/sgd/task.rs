//! The problem to learn: the class of a point. Each class has points around several centres, with so much noise that
//! no straight line separates the classes.

use crate::random::hash64;

/// The number of centres of a class.
const CENTRES: u64 = 4;
/// The largest distance of a coordinate from that of its centre, which is 1 or -1.
const NOISE: f32 = 2.5;

/// The parameters of the samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// Coordinates of a point.
    pub inputs: usize,
    /// Number of classes.
    pub classes: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A point and its class.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sample {
    /// The coordinates.
    pub point: Vec<f32>,
    /// The class.
    pub class: usize,
}

impl Task {
    /// Draws sample number `number`. The same number always gives the same sample.
    pub fn draw(&self, number: u64, sample: &mut Sample) {
        let own = hash64(self.seed ^ hash64(number));
        sample.class = (own % self.classes as u64) as usize;
        let centre = hash64(self.seed).wrapping_add(sample.class as u64 * CENTRES + (own >> 32) % CENTRES);
        let coordinate = |place: u64| {
            let side = if hash64(hash64(centre) ^ place) & 1 == 0 { 1.0 } else { -1.0 };
            side + NOISE * signed_unit(hash64(own.wrapping_add(place)))
        };
        sample.point.clear();
        sample.point.extend((0..self.inputs as u64).map(coordinate));
    }
}

/// A number from -1 to 1, made of the highest bits.
pub(super) fn signed_unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_function_of_its_number() {
        let task = Task { inputs: 5, classes: 3, seed: 7 };
        let (mut one, mut other) = (Sample::default(), Sample::default());
        let mut of_class = [0; 3];
        for number in 0..300 {
            task.draw(number, &mut one);
            task.draw(number, &mut other);
            assert_eq!(one, other);
            assert!(one.point.len() == 5 && one.point.iter().all(|at| at.abs() <= 1.0 + NOISE), "{one:?}");
            of_class[one.class] += 1;
        }
        assert!(of_class.iter().all(|&samples| samples > 60), "{of_class:?}");
        Task { seed: 8, ..task }.draw(299, &mut other);
        assert_ne!(one, other);
    }

    #[test]
    fn numbers_are_between_minus_one_and_one() {
        assert_eq!([0, u64::MAX >> 1, 1 << 63].map(signed_unit), [-1.0, -1.0 / (1 << 23) as f32, 0.0]);
        assert!(signed_unit(u64::MAX) < 1.0);
    }
}
