//! The steps of a rank: its share of the samples, and the work that goes on while gradients are summed.

use super::network::{Network, Pass};
use super::reduction::{Reduction, ReductionMethod};
use super::sum::{BLOCK, Sum};
use super::task::Sample;
use super::{Recipe, Task};
use std::ops::Range;
use std::time::Duration;
use tasuki::Job;

/// The number of samples that test the network. They are not used for training.
const TEST_SAMPLES: u64 = 2000;
/// The number of the first test sample.
const TEST_FIRST: u64 = 1 << 60;

/// The result of a training, equal on all ranks except for the times.
#[derive(Debug)]
pub struct Training {
    /// The trained network.
    pub network: Network,
    /// The mean loss of a sample in each step. If the weights diverged, there are fewer losses than steps.
    pub losses: Vec<f64>,
    /// The duration of each step.
    pub times: Vec<Duration>,
}

impl Training {
    /// The fraction of the test samples that the network classifies correctly.
    pub fn accuracy(&self, task: &Task) -> f64 {
        let mut sample = Sample::default();
        let right = (TEST_FIRST..TEST_FIRST + TEST_SAMPLES).filter(|&number| {
            task.draw(number, &mut sample);
            self.network.classify(&sample) == sample.class
        });
        right.count() as f64 / TEST_SAMPLES as f64
    }
}

/// Trains a network. `progress` is called after each step with the number of steps done. Collective.
pub fn train(
    method: ReductionMethod,
    job: &Job,
    recipe: &Recipe,
    mut progress: impl FnMut(usize),
) -> tasuki::Result<Training> {
    let network = Network::new(recipe);
    let own = share(recipe.batch, job.size(), job.rank().index());
    let mut pass = Pass::new(&network, own.len());
    let mut first = Reduction::new(method, job.world(), pass.first.words().len())?;
    let mut last = Reduction::new(method, job.world(), pass.last.words().len())?;
    let mut training = Training { network, losses: Vec::new(), times: Vec::new() };
    let mut samples = vec![Sample::default(); own.len()];
    let draw = |step: usize, samples: &mut [Sample]| {
        let numbers = (step * recipe.batch + own.start) as u64..;
        samples.iter_mut().zip(numbers).for_each(|(sample, number)| recipe.task.draw(number, sample));
    };
    draw(0, &mut samples);
    let by = recipe.rate / recipe.batch as f64;
    for step in 0..recipe.steps {
        let begin = job.clock();
        let network = &mut training.network;
        pass.last(network, &samples);
        last.start(&mut pass.last)?;
        pass.first(network, &samples); // while the last layer's gradients are summed
        first.start(&mut pass.first)?;
        draw(step + 1, &mut samples); // while the first layer's gradients are summed
        last.wait(&mut pass.last)?;
        first.wait(&mut pass.first)?;
        if !(pass.last.is_valid() && pass.first.is_valid()) {
            break; // all ranks stop, because they have the same sums
        }
        network.last.descend(pass.last.values(), by);
        network.first.descend(pass.first.values(), by);
        let loss = pass.last.values().last().map_or(0.0, |&loss| Sum::value(loss));
        training.losses.push(loss / recipe.batch as f64);
        training.times.push(job.clock() - begin);
        progress(step + 1);
    }
    Ok(training)
}

/// The samples of a batch that belong to a rank: whole blocks.
fn share(batch: usize, ranks: usize, rank: usize) -> Range<usize> {
    let blocks = batch.div_ceil(BLOCK);
    let [start, end] = [rank, rank + 1].map(|rank| (blocks * rank / ranks * BLOCK).min(batch));
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_blocks_and_cover_the_batch() {
        for (batch, ranks) in [(1, 3), (100, 1), (100, 7), (512, 4), (500, 40)] {
            let shares: Vec<_> = (0..ranks).map(|rank| share(batch, ranks, rank)).collect();
            assert!(shares.iter().all(|share| share.start.is_multiple_of(BLOCK) || share.start == batch));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start), "{shares:?}");
            assert_eq!((shares[0].start, shares[ranks - 1].end), (0, batch));
        }
    }
}
