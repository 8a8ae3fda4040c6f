//! The same training without ranks, sample by sample as in a textbook.

use super::task::{Sample, signed_unit};
use super::{BLOCK, Recipe, Sum};
use crate::random::hash64;

/// Weights `[input][output]`, and the biases as the last input.
type Weights = Vec<Vec<f32>>;

/// Returns the loss of each step and the final weights of both layers. `progress` is called after each step with the
/// number of steps done.
pub fn serial(recipe: &Recipe, mut progress: impl FnMut(usize)) -> (Vec<f64>, [Vec<f32>; 2]) {
    let Recipe { task, hidden, batch, .. } = *recipe;
    let mut first = initial_weights(task.inputs, hidden, task.seed ^ 1);
    let mut last = initial_weights(hidden, task.classes, task.seed ^ 2);
    let mut losses = Vec::new();
    let mut sample = Sample::default();
    for step in 0..recipe.steps {
        let (mut sums_first, mut sums_last) = (zeros(&first), zeros(&last));
        let mut loss = 0;
        for block in (0..batch).step_by(BLOCK) {
            let (mut block_first, mut block_last, mut block_loss) = (blank(&first), blank(&last), 0.0);
            for number in block..(block + BLOCK).min(batch) {
                task.draw((step * batch + number) as u64, &mut sample);
                block_loss += learn(&sample, (&first, &last), (&mut block_first, &mut block_last));
            }
            add(&mut sums_first, &block_first);
            add(&mut sums_last, &block_last);
            loss += Sum::rounded(block_loss);
        }
        descend(&mut first, &sums_first, recipe.rate / batch as f64);
        descend(&mut last, &sums_last, recipe.rate / batch as f64);
        losses.push(Sum::value(loss) / batch as f64);
        progress(step + 1);
    }
    (losses, [first.concat(), last.concat()])
}

fn initial_weights(inputs: usize, outputs: usize, seed: u64) -> Weights {
    let size = (3.0 / inputs as f32).sqrt();
    let weight = |place: usize| size * signed_unit(hash64(hash64(seed) ^ place as u64));
    let row = |input: usize| (0..outputs).map(|output| weight(input * outputs + output)).collect();
    (0..inputs).map(row).chain([vec![0.0; outputs]]).collect()
}

fn zeros(weights: &Weights) -> Vec<Vec<i64>> {
    weights.iter().map(|row| vec![0; row.len()]).collect()
}

fn blank(weights: &Weights) -> Weights {
    weights.iter().map(|row| vec![0.0; row.len()]).collect()
}

/// Adds the gradients of one sample to those of both layers. Returns the sample's loss.
fn learn(
    sample: &Sample,
    (first, last): (&Weights, &Weights),
    (sums_first, sums_last): (&mut Weights, &mut Weights),
) -> f32 {
    let out = |weights: &Weights, inputs: &[f32], output: usize| {
        let bias = weights[inputs.len()][output];
        (0..inputs.len()).fold(bias, |sum, input| sum + inputs[input] * weights[input][output])
    };
    let units: Vec<f32> = (0..first[0].len()).map(|unit| out(first, &sample.point, unit).max(0.0)).collect();
    let outputs: Vec<f32> = (0..last[0].len()).map(|class| out(last, &units, class)).collect();
    let most = outputs.iter().fold(f32::NEG_INFINITY, |most, &output| most.max(output));
    let powers: Vec<f32> = outputs.iter().map(|output| (output - most).exp()).collect();
    let all = powers.iter().fold(0.0, |sum, power| sum + power);
    let mut slopes: Vec<f32> = powers.iter().map(|power| power / all).collect();
    let loss = -slopes[sample.class].max(f32::MIN_POSITIVE).ln();
    slopes[sample.class] -= 1.0;
    for (class, slope) in slopes.iter().enumerate() {
        (0..units.len()).for_each(|unit| sums_last[unit][class] += units[unit] * slope);
        sums_last[units.len()][class] += slope;
    }
    for unit in (0..units.len()).filter(|&unit| units[unit] > 0.0) {
        let slope = (0..slopes.len()).fold(0.0, |sum, class| sum + last[unit][class] * slopes[class]);
        (0..sample.point.len()).for_each(|input| sums_first[input][unit] += sample.point[input] * slope);
        sums_first[sample.point.len()][unit] += slope;
    }
    loss
}

fn add(sums: &mut [Vec<i64>], block: &Weights) {
    for (sum, value) in sums.iter_mut().flatten().zip(block.iter().flatten()) {
        *sum += Sum::rounded(*value);
    }
}

fn descend(weights: &mut Weights, sums: &[Vec<i64>], by: f64) {
    for (weight, &sum) in weights.iter_mut().flatten().zip(sums.iter().flatten()) {
        *weight -= (Sum::value(sum) * by) as f32;
    }
}
