//! The proof that a schedule does what it is to do, whatever the order in which its steps happen.
//!
//! Some starts in a row are laid out side by side ([`world`]). They are run once, in any order ([`run`]): signals only
//! grow, so what never fires here never fires. Then comes what is known to have happened when a step begins
//! ([`order`]); with it, that no two accesses of the same bytes of which one writes may happen in either order
//! ([`races`]), and since any order then gives the same bytes, that those of the one run are the right ones
//! ([`contents`]). What is known then also says what waits for what ([`graph`]).

mod bit_matrix;
mod contents;
mod dry_run;
mod fault;
mod graph;
mod happens_before;
mod races;
#[cfg(test)]
mod tests;
mod unrolled;

pub use fault::{Fault, FaultSite};
pub use graph::{Dependency, EventNode, Graph};
pub use unrolled::Event;

use super::Schedule;
use unrolled::Unrolled;

/// What was proven, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckReport {
    /// Ranks.
    pub ranks: usize,
    /// Steps of all ranks, of one start.
    pub steps: usize,
    /// The longest chain of steps each of which waits for the one before it, in one start.
    pub depth: usize,
    /// Most bytes that one rank sends to others or receives from them, in one start.
    pub busiest_bytes: u64,
    /// Most steps in one queue.
    pub queue_steps_max: usize,
}

pub(super) fn check(schedule: &Schedule) -> Result<CheckReport, Box<Fault>> {
    let world = Unrolled::lay_out(schedule)?;
    let run = dry_run::run(&world)?;
    let order = happens_before::find(&world, &run)?;
    order.meets(&world)?;
    races::find(&world, &run, &order)?;
    contents::compare(&world, &run)?;
    Ok(world.numbers(order.depth))
}

pub(super) fn graph(schedule: &Schedule) -> Result<Graph, Box<Fault>> {
    let world = Unrolled::lay_out(schedule)?;
    let run = dry_run::run(&world)?;
    let order = happens_before::find(&world, &run)?;
    Ok(graph::find(&world, &run, &order))
}

pub(super) fn bytes(schedule: &Schedule, enough: u64) -> u64 {
    let (mut events, mut lag, mut bytes) = (0, 0, 0);
    for rank in 0..schedule.ranks() {
        let part = schedule.part(rank);
        events += 2 + part.steps().len() as u64;
        let triggers = part.steps().iter().map(|step| step.trigger).chain(part.finished().iter().copied());
        lag = triggers.map(|trigger| u64::from(trigger.lag)).fold(lag, u64::max);
        bytes = happens_before::bytes(unrolled::starts(lag), events);
        if bytes > enough {
            break;
        }
    }
    bytes
}
