//! What is simulated, in words and numbers: a collective, or the plan of a file.

use super::units;
use tasuki_schedule::Schedule;
use tasuki_schedule::goal::{self, Goal, OpKind};
use tasuki_schedule::shape::{CollectiveKind, Counts, Shape};

/// A description of what is simulated.
pub(super) struct Workload {
    /// A single word for it.
    pub(super) name: String,
    /// The collective and the amount of data.
    pub(super) what: String,
    pub(super) ranks: usize,
    /// The root, if there is one.
    pub(super) root: Option<usize>,
    /// Bytes of the message or of a block, or of all blocks if these differ. For a file's plan, the
    /// largest input of a rank.
    pub(super) bytes: u64,
}

impl Workload {
    /// A collective.
    pub(super) fn collective(shape: &Shape) -> Workload {
        let name = shape.collective.name();
        let bytes = match &shape.counts {
            Counts::Equal(bytes) => *bytes,
            Counts::Each(counts) | Counts::Matrix(counts) => counts.iter().sum(),
            Counts::Graph(neighbours) => {
                let edges = (0..shape.ranks).flat_map(|rank| neighbours.sent_blocks(rank));
                edges.map(|(edge, _)| edge.bytes).max().unwrap_or(0)
            }
        };
        let shown = units::show(bytes);
        let what = match shape.counts {
            _ if shape.collective == CollectiveKind::Barrier => name.to_string(),
            Counts::Equal(_) | Counts::Graph(_) => format!("{name} of {shown}"),
            Counts::Each(_) | Counts::Matrix(_) => format!("{name} of blocks that differ, {shown} of all"),
        };
        let root = shape.collective.is_rooted().then_some(shape.root);
        Workload { name: name.into(), what, ranks: shape.ranks, root, bytes }
    }

    /// The messages of a GOAL text.
    pub(super) fn goal(goal: &Goal, file: &str) -> Workload {
        let sent = |own: &Vec<goal::GoalOp>| {
            own.iter().map(|one| if let OpKind::Send { bytes, .. } = one.does { bytes } else { 0 }).sum()
        };
        let bytes = goal.ranks.iter().map(sent).max().unwrap_or(0);
        let what = format!("the messages of {file}, at most {} of one rank", units::show(bytes));
        Workload { name: "goal".into(), what, ranks: goal.ranks.len(), root: None, bytes }
    }

    /// The plan of a file.
    pub(super) fn plan(schedule: &Schedule, file: &str) -> Workload {
        let given = |rank| schedule.contract(rank).inputs.iter().map(|span| span.bytes).sum();
        let bytes = (0..schedule.ranks()).map(given).max().unwrap_or(0);
        let what = format!("the plan of {file}, at most {} of one rank", units::show(bytes));
        Workload { name: "plan".into(), what, ranks: schedule.ranks(), root: None, bytes }
    }
}
