//! Encodes steps as commands of a repeating queue.

use crate::base::{Cause, Rank};
use crate::engine::executor::{Operand, StepAction, StepSpec};
use crate::queue::command::{Action, Class, Effect, Trigger};
use crate::queue::encoding::EncodedCommand;
use crate::queue::reduction::Reduction;

/// Encodes a step of a queue of rank `owner`, which combines values as `how` says. Error: no command can do that.
pub(super) fn command_of(
    spec: &StepSpec,
    how: Option<Reduction>,
    owner: Rank,
) -> Result<EncodedCommand, Cause> {
    let mut encoded = encoded_action(spec.action, how, owner)?;
    if let Some(wait) = spec.wait {
        let first = Trigger { signal: wait.signal, threshold: wait.count.first };
        encoded.when_each(first, narrow(wait.count.more)?)?;
    }
    for &(signal, amount) in &spec.raises {
        encoded.then(Effect { signal, amount: narrow(amount)? })?;
    }
    if spec.is_left_to_owner {
        encoded.leave_to_owner();
    }
    Ok(encoded)
}

fn encoded_action(action: StepAction, how: Option<Reduction>, owner: Rank) -> Result<EncodedCommand, Cause> {
    let refused = |text: &str| Err(Cause::Argument(text.into()));
    match action {
        StepAction::Nothing => Ok(EncodedCommand::of(&Action::Nothing)),
        StepAction::Copy(Operand::At(from), Operand::At(to), len) => {
            Ok(EncodedCommand::of(&Action::Copy { from, to, len }))
        }
        StepAction::Combine(Operand::At(from), Operand::At(to), len, in_front) => {
            let Some(how) = how.map(|how| how.with_incoming_first(in_front)) else {
                return refused("its schedule combines values, but it was prepared without an operation");
            };
            let mut encoded = EncodedCommand::of(&Action::Reduce { from, to, len, how });
            if how.operator().is_some() {
                if to.rank() != owner {
                    return refused(
                        "an operation of the program can combine values only in the memory of its own rank: use a \
                         built-in operation, or a schedule in which each rank combines in its own memory",
                    );
                }
                encoded.bind(Class::Destination);
            }
            Ok(encoded)
        }
        StepAction::Copy(..) | StepAction::Combine(..) => {
            Err(Cause::Bug("a command on memory that a call lends".into()))
        }
    }
}

fn narrow(amount: u64) -> Result<u32, Cause> {
    let text =
        || format!("the schedule adds {amount} to a signal at once; a command can add at most {}", u32::MAX);
    u32::try_from(amount).map_err(|_| Cause::Argument(text()))
}
