//! A layer: each output is a bias plus a weighted sum of the inputs.

use super::sum::Sum;
use super::task::signed_unit;
use crate::random::hash64;
use std::iter::once;

/// The weights: for each input one weight for each output, followed by the biases, which are the weights of an input
/// that is always 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Layer {
    inputs: usize,
    outputs: usize,
    weights: Vec<f32>,
}

impl Layer {
    /// A layer with random weights of either sign, smaller if there are more inputs, and without bias.
    pub fn new(inputs: usize, outputs: usize, seed: u64) -> Layer {
        let size = (3.0 / inputs as f32).sqrt();
        let random =
            (0..(inputs * outputs) as u64).map(|place| size * signed_unit(hash64(hash64(seed) ^ place)));
        let weights = random.chain(std::iter::repeat_n(0.0, outputs)).collect();
        Layer { inputs, outputs, weights }
    }

    /// The weights.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.weights.chunks_exact(self.outputs).take(self.inputs)
    }

    /// Computes the outputs.
    pub fn forward(&self, inputs: &[f32], outputs: &mut [f32]) {
        outputs.copy_from_slice(&self.weights[self.inputs * self.outputs..]);
        for (&input, row) in inputs.iter().zip(self.rows()) {
            outputs.iter_mut().zip(row).for_each(|(output, weight)| *output += input * weight);
        }
    }

    /// Computes the derivatives of the loss by the inputs from those by the outputs.
    pub fn backward(&self, slopes: &[f32], inputs: &mut [f32]) {
        for (input, row) in inputs.iter_mut().zip(self.rows()) {
            *input = row.iter().zip(slopes).fold(0.0, |sum, (weight, slope)| sum + weight * slope);
        }
    }

    /// Adds the derivatives of a sample's loss by the weights to the current block.
    pub fn gradient(&self, inputs: &[f32], slopes: &[f32], sum: &mut Sum) {
        let rows = sum.block().chunks_exact_mut(self.outputs);
        for (&input, row) in inputs.iter().chain(once(&1.0)).zip(rows) {
            row.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += input * slope);
        }
    }

    /// Subtracts a multiple of the gradient from the weights.
    pub fn descend(&mut self, gradient: &[i64], by: f64) {
        for (weight, &slope) in self.weights.iter_mut().zip(gradient) {
            *weight -= (Sum::value(slope) * by) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_equals_the_change_of_the_loss() {
        let mut layer = Layer::new(3, 2, 1);
        let (inputs, slopes) = ([0.5, -1.0, 2.0], [0.25, -2.0]);
        // The loss is linear in the outputs.
        let loss = |layer: &Layer, inputs: &[f32]| {
            let mut outputs = [0.0; 2];
            layer.forward(inputs, &mut outputs);
            outputs[0] * slopes[0] + outputs[1] * slopes[1]
        };
        let mut sum = Sum::new(8);
        layer.gradient(&inputs, &slopes, &mut sum);
        sum.close_block();
        let before = loss(&layer, &inputs);
        for place in 0..8 {
            layer.weights[place] += 0.125;
            let growth = f64::from(loss(&layer, &inputs) - before) / 0.125;
            layer.weights[place] -= 0.125;
            assert!((growth - Sum::value(sum.values()[place])).abs() < 1e-5, "weight {place}: {growth}");
        }
        let mut back = [0.0; 3];
        layer.backward(&slopes, &mut back);
        for place in 0..3 {
            let mut changed = inputs;
            changed[place] += 0.125;
            let growth = (loss(&layer, &changed) - before) / 0.125;
            assert!((growth - back[place]).abs() < 1e-5, "input {place}: {growth}");
        }
    }
}
