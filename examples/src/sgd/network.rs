//! A network of two layers: the hidden units are the positive outputs of the first layer, the outputs of the second
//! layer give the probabilities of the classes.

use super::Recipe;
use super::layer::Layer;
use super::sum::{BLOCK, Sum};
use super::task::Sample;

/// The classifier.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// From coordinates to hidden units.
    pub first: Layer,
    /// From hidden units to classes.
    pub last: Layer,
}

/// One rank's part of a step: forward through both layers, then the gradients of both.
#[derive(Debug)]
pub struct Pass {
    /// The hidden units, one sample after the other.
    units: Vec<f32>,
    /// The derivatives of the loss by the outputs of the last layer.
    slopes: Vec<f32>,
    /// The derivatives of the loss by the outputs of the first layer, for one sample.
    back: Vec<f32>,
    /// The gradient of the first layer.
    pub first: Sum,
    /// The gradient of the last layer, followed by the loss.
    pub last: Sum,
}

impl Network {
    /// A network with random weights.
    pub fn new(recipe: &Recipe) -> Network {
        let Recipe { task, hidden, .. } = *recipe;
        Network {
            first: Layer::new(task.inputs, hidden, task.seed ^ 1),
            last: Layer::new(hidden, task.classes, task.seed ^ 2),
        }
    }

    fn forward(&self, sample: &Sample, units: &mut [f32], outputs: &mut [f32]) {
        self.first.forward(&sample.point, units);
        units.iter_mut().for_each(|unit| *unit = unit.max(0.0));
        self.last.forward(units, outputs);
    }

    /// The most probable class of a sample.
    pub fn classify(&self, sample: &Sample) -> usize {
        let mut units = vec![0.0; self.first.outputs()];
        let mut outputs = vec![0.0; self.last.outputs()];
        self.forward(sample, &mut units, &mut outputs);
        let best = (0..outputs.len()).max_by(|&one, &other| outputs[one].total_cmp(&outputs[other]));
        best.unwrap_or(0)
    }
}

impl Pass {
    /// Allocates memory for at most `samples_max` samples.
    pub fn new(network: &Network, samples_max: usize) -> Pass {
        let (hidden, classes) = (network.first.outputs(), network.last.outputs());
        Pass {
            units: vec![0.0; samples_max * hidden],
            slopes: vec![0.0; samples_max * classes],
            back: vec![0.0; hidden],
            first: Sum::new(network.first.weights().len()),
            last: Sum::new(network.last.weights().len() + 1),
        }
    }

    /// Computes the loss and the gradient of the last layer.
    pub fn last(&mut self, network: &Network, samples: &[Sample]) {
        let Network { first, last } = network;
        self.last.clear();
        let rows = self.units.chunks_exact_mut(first.outputs());
        let rows = rows.zip(self.slopes.chunks_exact_mut(last.outputs()));
        for (number, (sample, (units, slopes))) in samples.iter().zip(rows).enumerate() {
            network.forward(sample, units, slopes);
            let loss = softmax_loss(slopes, sample.class);
            last.gradient(units, slopes, &mut self.last);
            if let Some(sum) = self.last.block().last_mut() {
                *sum += loss;
            }
            if (number + 1) % BLOCK == 0 || number + 1 == samples.len() {
                self.last.close_block();
            }
        }
    }

    /// Computes the gradient of the first layer, after that of the last.
    pub fn first(&mut self, network: &Network, samples: &[Sample]) {
        let Network { first, last } = network;
        self.first.clear();
        let rows = self.units.chunks_exact(first.outputs());
        let rows = rows.zip(self.slopes.chunks_exact(last.outputs()));
        for (number, (sample, (units, slopes))) in samples.iter().zip(rows).enumerate() {
            last.backward(slopes, &mut self.back);
            for (slope, &unit) in self.back.iter_mut().zip(units) {
                *slope = if unit > 0.0 { *slope } else { 0.0 };
            }
            first.gradient(&sample.point, &self.back, &mut self.first);
            if (number + 1) % BLOCK == 0 || number + 1 == samples.len() {
                self.first.close_block();
            }
        }
    }
}

/// Turns the outputs into probabilities (softmax), and these into the derivatives of the loss. Returns the loss:
/// minus the logarithm of the probability of the right class.
fn softmax_loss(outputs: &mut [f32], class: usize) -> f32 {
    let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    outputs.iter_mut().for_each(|output| *output = (*output - most).exp());
    let all: f32 = outputs.iter().fold(0.0, |sum, output| sum + output);
    outputs.iter_mut().for_each(|output| *output /= all);
    let loss = -outputs[class].max(f32::MIN_POSITIVE).ln();
    outputs[class] -= 1.0;
    loss
}
