//! The proof that a schedule does what it is to do, whatever the order in which its steps happen.
//!
//! One start is laid out ([`world`]) and run once by itself, in any order ([`run`]): signals only grow, so what never
//! fires here never fires. Then comes what is known to have happened when a step begins, in its own start and in those
//! before ([`order`], which has the argument why it holds for any number of starts); with it, that no two accesses
//! of the same bytes, in whichever two starts, of which one writes may happen in either order ([`races`]). Since any
//! order then gives the same bytes, starts might as well happen one after the other: the bytes of one such start are
//! looked at, none of which may be left from an earlier one ([`contents`]). What is known also says what waits for
//! what ([`graph`]).

mod contents;
mod dry_run;
mod facts;
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
    let (mut events, mut bytes) = (0, 0);
    for rank in 0..schedule.ranks() {
        events += 2 + schedule.part(rank).steps().len() as u64;
        bytes = happens_before::bytes(events);
        if bytes > enough {
            break;
        }
    }
    bytes
}
