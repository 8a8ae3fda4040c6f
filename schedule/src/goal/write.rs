//! Operations as text: a rank's operations, then what they wait for, since a label must stand before it is named.

use super::{Goal, OpKind};
use std::io::{self, Write};

/// Writes them, with a remark. Lines are not indented: the simulator's own reader stumbles over that.
pub fn write(goal: &Goal, remark: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "num_ranks {}\n\n// {}", goal.ranks.len(), remark.replace(['\n', '\r'], " "))?;
    for (rank, operations) in goal.ranks.iter().enumerate() {
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
        writeln!(out, "}}")?;
    }
    Ok(())
}
