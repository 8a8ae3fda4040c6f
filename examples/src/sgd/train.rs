//! The steps of a rank: which samples are its own, and what goes on while gradients are added up.

use super::network::{Network, Pass};
use super::reduction::{Reduction, Way};
use super::sum::{BLOCK, Sum};
use super::task::Sample;
use super::{Recipe, Task};
use std::ops::Range;
use std::time::Duration;
use tasuki::Job;

/// Samples that nobody learned from, to try the network on.
const TRIED: u64 = 2000;
/// Their numbers begin here.
const TRIED_FROM: u64 = 1 << 60;

/// What came of it, the same on all ranks but for the times.
#[derive(Debug)]
pub struct Training {
    /// What was learned.
    pub network: Network,
    /// The mean loss of a sample in each step. Fewer than there should be where weights have left all bounds.
    pub losses: Vec<f64>,
    /// How long each step took.
    pub times: Vec<Duration>,
}

impl Training {
    /// The part of new samples that the network takes for what they are.
    pub fn accuracy(&self, task: &Task) -> f64 {
        let mut sample = Sample::default();
        let right = (TRIED_FROM..TRIED_FROM + TRIED).filter(|&number| {
            task.draw(number, &mut sample);
            self.network.guess(&sample) == sample.class
        });
        right.count() as f64 / TRIED as f64
    }
}

/// Trains. `progress` is told after each step how many are done. Collective.
pub fn train(
    way: Way,
    job: &Job,
    recipe: &Recipe,
    mut progress: impl FnMut(usize),
) -> tasuki::Result<Training> {
    let network = Network::new(recipe);
    let own = share(recipe.batch, job.size(), job.rank().index());
    let mut pass = Pass::new(&network, own.len());
    let mut first = Reduction::new(way, job.world(), &mut pass.first)?;
    let mut last = Reduction::new(way, job.world(), &mut pass.last)?;
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
        pass.first(network, &samples); // while the last layer's gradients are added up
        first.start(&mut pass.first)?;
        draw(step + 1, &mut samples); // while the first layer's are
        last.wait(&mut pass.last)?;
        first.wait(&mut pass.first)?;
        if !(pass.last.is_sound() && pass.first.is_sound()) {
            break; // on all ranks: they have the same sums
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

/// The samples of a batch that are a rank's: whole blocks.
fn share(batch: usize, ranks: usize, rank: usize) -> Range<usize> {
    let blocks = batch.div_ceil(BLOCK);
    let [start, end] = [rank, rank + 1].map(|rank| (blocks * rank / ranks * BLOCK).min(batch));
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_blocks_and_leave_nothing_out() {
        for (batch, ranks) in [(1, 3), (100, 1), (100, 7), (512, 4), (500, 40)] {
            let shares: Vec<_> = (0..ranks).map(|rank| share(batch, ranks, rank)).collect();
            assert!(shares.iter().all(|share| share.start.is_multiple_of(BLOCK) || share.start == batch));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start), "{shares:?}");
            assert_eq!((shares[0].start, shares[ranks - 1].end), (0, batch));
        }
    }
}
