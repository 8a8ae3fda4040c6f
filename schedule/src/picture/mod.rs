//! Plans as pictures: what waits for what, and who sends to whom when.
//!
//! ```text
//! graph    steps as nodes, in columns of ranks     time     transfers between lanes of ranks
//! rounds   when everything happens                 canvas   lines, arrows, letters
//! ```

mod canvas;
mod graph;
mod rounds;
mod timeline;

use crate::Error;
use crate::{Event, Graph, Schedule, StepKind};

/// Which picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Steps as nodes, what waits for what as arrows.
    Graph,
    /// Ranks as lanes, transfers as arrows between them, time in rounds.
    Time,
}

/// Ranks of a picture at most.
pub const RANKS_MAX: usize = 64;
/// Steps of a picture at most: more of them are a carpet.
pub const STEPS_MAX: usize = 1500;

/// Draws a schedule as SVG. Costs as much as [`Schedule::graph`], which is little for what is small enough.
pub fn draw(schedule: &Schedule, title: &str, view: View) -> Result<String, Error> {
    look_at_size(schedule)?;
    let graph = schedule.graph().map_err(Error::Wrong)?;
    match view {
        View::Graph => graph::draw(&graph, title),
        View::Time => timeline::draw(&graph, title),
    }
}

fn look_at_size(schedule: &Schedule) -> Result<(), Error> {
    let ranks = schedule.ranks();
    if ranks > RANKS_MAX {
        return Err(Error::Ranks { asked: ranks, max: RANKS_MAX });
    }
    let steps: usize = (0..ranks).map(|rank| schedule.part(rank).steps().len()).sum();
    if steps > STEPS_MAX { Err(Error::Steps { asked: steps, max: STEPS_MAX }) } else { Ok(()) }
}

/// What a step does, by how it is drawn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Bytes from one rank to another.
    Copy,
    /// The same, combined with what is there.
    Reduce,
    /// Bytes moved within a rank.
    Local,
    /// Values combined within a rank.
    Sum,
    /// Nothing but signals.
    Join,
}

/// What an event does, where it is a step: how it is drawn, from whom, to whom, and bytes.
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

/// Bytes in the largest unit in which they are whole.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|&(shift, _)| bytes > 0 && bytes.trailing_zeros() >= shift);
    unit.map_or_else(|| format!("{bytes} B"), |(shift, name)| format!("{} {name}", bytes >> shift))
}
