//! Draws schedules: the dependency graph, and transfers over time.
//!
//! ```text
//! graph    dependencies, in columns of ranks       timeline  transfers between lanes of ranks
//! rounds   the round in which each event begins    canvas    lines, arrows and text
//! ```
//!
//! ```
//! # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
//! use tasuki::schedule::{Builder, CollectiveKind, ScheduleError, Shape, View, picture};
//! fn star(b: &mut Builder) {
//!     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
//!     for &rank in &ranks[1..] {
//!         b.copy(data.on(ranks[0]), data.on(rank));
//!     }
//! }
//! let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
//! let svg = picture::draw(&schedule, "a star among 8 ranks", View::Time)?;
//! assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"));
//! # Ok::<(), ScheduleError>(())
//! ```

mod canvas;
mod graph;
mod rounds;
mod timeline;

use crate::ScheduleError;
use crate::{Event, Graph, Schedule, StepKind};

/// The kind of picture.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, ScheduleError, Shape, View, picture};
/// fn star(b: &mut Builder) {
///     let (data, ranks) = (b.buffer("data", b.bytes()), b.ranks());
///     for &rank in &ranks[1..] {
///         b.copy(data.on(ranks[0]), data.on(rank));
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 1024).build("star", star);
/// for view in [View::Graph, View::Time] {
///     assert!(picture::draw(&schedule, "a star", view)?.contains("<svg"));
/// }
/// # Ok::<(), ScheduleError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Steps as nodes, dependencies as arrows.
    Graph,
    /// Ranks as lanes, transfers as arrows between them, time in rounds.
    Time,
}

/// The most ranks in a picture.
pub const RANKS_MAX: usize = 64;
/// The most steps in a picture: more are not readable.
pub const STEPS_MAX: usize = 1500;

/// Draws a schedule as SVG. Takes as long as [`Schedule::graph`], which is short within the limits on ranks and steps.
pub fn draw(schedule: &Schedule, title: &str, view: View) -> Result<String, ScheduleError> {
    look_at_size(schedule)?;
    let graph = schedule.graph().map_err(ScheduleError::Wrong)?;
    match view {
        View::Graph => graph::draw(&graph, title),
        View::Time => timeline::draw(&graph, title),
    }
}

fn look_at_size(schedule: &Schedule) -> Result<(), ScheduleError> {
    let ranks = schedule.ranks();
    if ranks > RANKS_MAX {
        return Err(ScheduleError::Ranks { asked: ranks, max: RANKS_MAX });
    }
    let steps: usize = (0..ranks).map(|rank| schedule.part(rank).steps().len()).sum();
    if steps > STEPS_MAX { Err(ScheduleError::Steps { asked: steps, max: STEPS_MAX }) } else { Ok(()) }
}

/// The kind of a step, which decides how it is drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Copies bytes from one rank to another.
    Copy,
    /// Combines values of one rank with those of another.
    Reduce,
    /// Copies bytes within a rank.
    Local,
    /// Combines values within a rank.
    Sum,
    /// Moves no data, only raises signals.
    Join,
}

/// The action of a step: its kind, source rank, destination rank, and bytes. `None` for other events.
fn action(graph: &Graph, event: Event) -> Option<(Kind, usize, usize, u64)> {
    let Event::Step(rank, step) = event else { return None };
    let (is_sum, from, to, bytes) = match graph.parts[rank].steps()[step].action {
        StepKind::Nothing => return Some((Kind::Join, rank, rank, 0)),
        StepKind::Copy { from, to, bytes } => (false, from.rank as usize, to.rank as usize, bytes),
        StepKind::Reduce { from, to, bytes, .. } => (true, from.rank as usize, to.rank as usize, bytes),
    };
    let kind = match (from == to, is_sum) {
        (true, false) => Kind::Local,
        (true, true) => Kind::Sum,
        (false, true) => Kind::Reduce,
        (false, false) => Kind::Copy,
    };
    Some((kind, from, to, bytes))
}

/// Formats a size in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|&(shift, _)| bytes > 0 && bytes.trailing_zeros() >= shift);
    unit.map_or_else(|| format!("{bytes} B"), |(shift, name)| format!("{} {name}", bytes >> shift))
}
