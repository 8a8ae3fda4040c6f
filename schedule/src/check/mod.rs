//! Proves that a schedule fulfils its contract, whatever the order in which its steps happen.
//!
//! One start is unrolled ([`unrolled`]) and run once by itself, in any order ([`dry_run`]): signals only grow, so a
//! step that never fires here never fires. Next come the facts that hold when a step begins, in its own start and in
//! those before ([`happens_before`], which argues why they hold for any number of starts). With these, no two accesses
//! to the same bytes, in any two starts, may happen in either order if one of them writes ([`races`]). Then every order
//! gives equal bytes, so starts might as well run one after the other: the bytes of one such start are evaluated,
//! without any bytes left from an earlier one ([`contents`]). The facts also give the dependency graph ([`graph`]).

mod contents;
mod dry_run;
mod fault;
mod graph;
mod happens_before;
mod happens_before_table;
mod races;
#[cfg(test)]
mod tests;
mod unrolled;

pub use fault::{Fault, FaultSite};
pub use graph::{Dependency, EventNode, Graph};
pub use unrolled::Event;

use super::Schedule;
use unrolled::Unrolled;

/// The size of a schedule that was proven.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CheckReport, CollectiveKind, Shape};
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
/// let report: CheckReport = schedule.check()?;
/// assert_eq!((report.ranks, report.depth, report.busiest_bytes), (8, 1, 7 * 1024)); // rank 0 sends seven times
/// # Ok::<(), Box<tasuki::schedule::Fault>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckReport {
    /// Number of ranks.
    pub ranks: usize,
    /// Steps of all ranks in one start.
    pub steps: usize,
    /// The longest chain of steps in one start, each of which waits for the one before it.
    pub depth: usize,
    /// The most bytes that one rank sends to others or receives from them in one start.
    pub busiest_bytes: u64,
    /// The most steps in one queue.
    pub queue_steps_max: usize,
}

pub(super) fn check(schedule: &Schedule) -> Result<CheckReport, Box<Fault>> {
    let world = Unrolled::lay_out(schedule)?;
    let run = dry_run::run(&world)?;
    let order = happens_before::find(&world, &run)?;
    order.check_synchronization(&world)?;
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
