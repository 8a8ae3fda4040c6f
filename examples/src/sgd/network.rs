//! Two layers: what comes out of the first counts where it is positive, what comes out of the second says how likely
//! each class is.

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

/// One rank's part of a step, from forward through both layers to their gradients.
#[derive(Debug)]
pub struct Pass {
    /// What comes out of the first layer, for one sample after the other.
    units: Vec<f32>,
    /// How the loss grows with what comes out of the last layer.
    slopes: Vec<f32>,
    /// How it grows with what comes out of the first layer, for one sample.
    back: Vec<f32>,
    /// The gradient of the first layer.
    pub first: Sum,
    /// The gradient of the last layer, and the loss behind it.
    pub last: Sum,
}

impl Network {
    /// One that knows nothing.
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

    /// The class that it takes a point for.
    pub fn guess(&self, sample: &Sample) -> usize {
        let mut units = vec![0.0; self.first.outputs()];
        let mut outputs = vec![0.0; self.last.outputs()];
        self.forward(sample, &mut units, &mut outputs);
        let best = (0..outputs.len()).max_by(|&one, &other| outputs[one].total_cmp(&outputs[other]));
        best.unwrap_or(0)
    }
}

impl Pass {
    /// For so many samples at most.
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

    /// The loss, and the gradient of the last layer.
    pub fn last(&mut self, network: &Network, samples: &[Sample]) {
        let Network { first, last } = network;
        self.last.clear();
        let rows = self.units.chunks_exact_mut(first.outputs());
        let rows = rows.zip(self.slopes.chunks_exact_mut(last.outputs()));
        for (number, (sample, (units, slopes))) in samples.iter().zip(rows).enumerate() {
            network.forward(sample, units, slopes);
            let loss = slopes_of_loss(slopes, sample.class);
            last.gradient(units, slopes, &mut self.last);
            if let Some(sum) = self.last.block().last_mut() {
                *sum += loss;
            }
            if (number + 1) % BLOCK == 0 || number + 1 == samples.len() {
                self.last.close();
            }
        }
    }

    /// The gradient of the first layer, after that of the last.
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
                self.first.close();
            }
        }
    }
}

/// Makes likelihoods of what came out (softmax), and of these the slopes of the loss, which is returned: minus the
/// logarithm of how likely the right class is.
fn slopes_of_loss(outputs: &mut [f32], class: usize) -> f32 {
    let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    outputs.iter_mut().for_each(|output| *output = (*output - most).exp());
    let all: f32 = outputs.iter().fold(0.0, |sum, output| sum + output);
    outputs.iter_mut().for_each(|output| *output /= all);
    let loss = -outputs[class].max(f32::MIN_POSITIVE).ln();
    outputs[class] -= 1.0;
    loss
}
