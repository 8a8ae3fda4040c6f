//! Sums of integers over all ranks: by a plan that goes on while the rank computes, or by a blocking call.

use super::sum::Sum;
use tasuki::{Communicator, Plan, Request};

/// How gradients are summed over the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum ReductionMethod {
    /// By a blocking collective call.
    Blocking,
    /// By a plan that is prepared once and started in each step.
    Persistent,
}

/// The sums of one layer.
#[derive(Debug)]
pub(super) enum Reduction<'c> {
    /// By blocking calls of this communicator.
    Blocking(&'c Communicator),
    /// By this plan.
    Persistent(Plan<i64>),
}

impl<'c> Reduction<'c> {
    /// Prepares the reduction of `count` words. Collective.
    pub(super) fn new(
        method: ReductionMethod,
        world: &'c Communicator,
        count: usize,
    ) -> tasuki::Result<Reduction<'c>> {
        Ok(match method {
            ReductionMethod::Blocking => Reduction::Blocking(world),
            ReductionMethod::Persistent => Reduction::Persistent(world.allreduce_init(count, tasuki::Sum)?),
        })
    }

    /// Begins the reduction. A blocking reduction is complete when it returns.
    pub(super) fn start(&mut self, sum: &mut Sum) -> tasuki::Result<()> {
        match self {
            Reduction::Blocking(world) => world.allreduce(sum.words(), tasuki::Sum),
            Reduction::Persistent(plan) => {
                plan.input()?.copy_from_slice(sum.words());
                plan.start()
            }
        }
    }

    /// Returns when `sum` has the sums over all ranks.
    pub(super) fn wait(&mut self, sum: &mut Sum) -> tasuki::Result<()> {
        if let Reduction::Persistent(plan) = self {
            plan.wait()?;
            sum.words().copy_from_slice(plan.result()?);
        }
        Ok(())
    }
}
