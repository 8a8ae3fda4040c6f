//! Sums of whole numbers over all ranks: by a plan that goes on while the rank computes, or by a blocking call.

use super::sum::Sum;
use tasuki::{Communicator, Plan};

/// How gradients are added up over ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Way {
    /// By a call that returns when the sums are there.
    Blocking,
    /// By a plan that is prepared once and started in each step.
    Persistent,
}

/// The sums of one layer.
#[derive(Debug)]
pub(super) enum Reduction<'c> {
    /// By blocking calls in this communicator.
    Blocking(&'c Communicator),
    /// By this plan.
    Persistent(Plan<i64>),
}

impl<'c> Reduction<'c> {
    /// Of as many words as these sums have. Collective.
    pub(super) fn new(way: Way, world: &'c Communicator, sum: &mut Sum) -> tasuki::Result<Reduction<'c>> {
        Ok(match way {
            Way::Blocking => Reduction::Blocking(world),
            Way::Persistent => Reduction::Persistent(world.allreduce_init(sum.words().len(), tasuki::Sum)?),
        })
    }

    /// Begins to add up; blocking, ends it, too.
    pub(super) fn start(&mut self, sum: &mut Sum) -> tasuki::Result<()> {
        match self {
            Reduction::Blocking(world) => world.allreduce_in_place(sum.words(), tasuki::Sum),
            Reduction::Persistent(plan) => {
                plan.write(0, sum.words())?;
                plan.start()
            }
        }
    }

    /// Returns when the sums are there, in place of what this rank gave.
    pub(super) fn wait(&mut self, sum: &mut Sum) -> tasuki::Result<()> {
        match self {
            Reduction::Blocking(_) => Ok(()),
            Reduction::Persistent(plan) => {
                plan.wait()?;
                plan.read(0, sum.words())
            }
        }
    }
}
