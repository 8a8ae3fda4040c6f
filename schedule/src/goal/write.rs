//! Writes operations as text: first a rank's operations, then their dependencies, since a label must precede its use.

use super::from_schedule::{WINDOW_STEPS, each_rank};
use super::{Goal, GoalOp, OpKind};
use crate::Schedule;
use crate::ScheduleError;
use std::io::{self, Write};

/// Writes one start of a schedule, rank by rank. Takes memory for the largest rank and for a window
/// of ranks, some hundred megabytes at most. Computes the parts of all ranks several times.
pub fn export(schedule: &Schedule, remark: &str, out: &mut impl Write) -> Result<(), ScheduleError> {
    head(schedule.ranks(), remark, out).map_err(ScheduleError::Writing)?;
    each_rank(schedule, WINDOW_STEPS, |rank, operations| {
        one(rank, &operations, out).map_err(ScheduleError::Writing)
    })
}

/// Writes operations, with a comment.
pub fn write(goal: &Goal, remark: &str, out: &mut impl Write) -> io::Result<()> {
    head(goal.ranks.len(), remark, out)?;
    goal.ranks.iter().enumerate().try_for_each(|(rank, operations)| one(rank, operations, out))
}

fn head(ranks: usize, remark: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "num_ranks {ranks}\n\n// {}", remark.replace(['\n', '\r'], " "))
}

/// Writes a rank. Lines are not indented: the simulator's own reader does not accept that.
fn one(rank: usize, operations: &[GoalOp], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nrank {rank} {{")?;
    for operation in operations {
        let label = &operation.label;
        match operation.does {
            OpKind::Send { bytes, to, tag } => writeln!(out, "{label}: send {bytes}b to {to} tag {tag}"),
            OpKind::Recv { bytes, from, tag } => {
                writeln!(out, "{label}: recv {bytes}b from {from} tag {tag}")
            }
            OpKind::Calc { units } => writeln!(out, "{label}: calc {units}"),
        }?;
    }
    for operation in operations {
        for (word, others) in [("requires", &operation.requires), ("irequires", &operation.irequires)] {
            for &other in others {
                writeln!(out, "{} {word} {}", operation.label, operations[other].label)?;
            }
        }
    }
    writeln!(out, "}}")
}
