//! Names of commands, calls, queues and signals as the trace shows them.

use tasuki_core::engine::trace::{CommandSummary, QueueId, Transfer};
use tasuki_core::queue::command::{Action, Command};
use tasuki_core::queue::layout::CALLS;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::{SIGNAL_STRIDE, SIGNALS};

/// A number of bytes in the largest unit that fits.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// A command in one or two words without numbers: viewers group events by name.
pub(super) fn short(brief: &CommandSummary) -> String {
    match brief.command().map(|command| command.action) {
        None => "no command".into(),
        Some(Action::Nothing) => "signal".into(),
        Some(Action::Copy { .. }) => "copy".into(),
        Some(Action::Put { .. }) => "put".into(),
        Some(Action::Atomic { atomic, .. }) => {
            let name = format!("{:?}", atomic.kind).to_lowercase();
            format!("atomic {}", name.split(' ').next().unwrap_or_default())
        }
        Some(Action::Call(_)) => "call".into(),
        Some(Action::Reduce { .. }) => "reduce".into(),
    }
}

/// The number of bytes that a command moves, if it moves any.
pub(super) fn bytes(brief: &CommandSummary) -> Option<u64> {
    match brief.command()?.action {
        Action::Copy { len, .. } | Action::Reduce { len, .. } => Some(len),
        Action::Put { bytes, .. } => Some(bytes.len() as u64),
        _ => None,
    }
}

/// The name of the program's call for a transfer.
pub(super) fn transfer(transfer: &Transfer) -> &'static str {
    match (transfer.from.is_null(), transfer.to.is_null()) {
        (true, _) if transfer.raise.is_some() => "put_signal",
        (true, _) => "put",
        (_, true) => "get",
        _ => "copy",
    }
}

/// The name of a call without its arguments: `wait` for `wait(signal 3 >= 20006)`, and
/// `wait(allreduce)` for `wait(allreduce(8 bytes))`.
pub(super) fn call(text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphabetic() || "_. ".contains(c);
    let (name, rest) = text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len()));
    // Only a wait has a call as its argument: in `barrier(split(colour 1) of world)` the argument
    // is a communicator.
    let of_call = rest.strip_prefix('(').filter(|_| ["wait", "await"].contains(&name));
    let within = of_call.and_then(|rest| {
        let (inner, _) = rest.split_at_checked(rest.find('(')?)?;
        (!inner.is_empty() && inner.chars().all(|c| is_name(c) && c != ' ')).then_some(inner)
    });
    match within {
        Some(inner) => format!("{}({inner})", name.trim()),
        None => name.trim().to_string(),
    }
}

/// A command with its operands and its trigger.
pub(super) fn long(brief: &CommandSummary) -> String {
    brief.command().map_or_else(String::new, |command| command.to_string())
}

/// The effects of a command: each a signal and the amount added to it.
pub(super) fn effects(brief: &CommandSummary) -> Vec<String> {
    let effects = brief.command().map_or([None; 2], |Command { effects, .. }| effects);
    effects
        .into_iter()
        .flatten()
        .map(|effect| format!("{} + {}", signal(effect.signal), effect.amount))
        .collect()
}

/// A signal as its number and its rank.
pub(super) fn signal(at: GlobalAddress) -> String {
    format!("signal {} of rank {}", at.offset().saturating_sub(SIGNALS) / SIGNAL_STRIDE, at.rank())
}

/// A queue as its number and its rank.
pub(super) fn queue(queue: QueueId) -> String {
    match queue.number {
        CALLS => format!("calls of rank {}", queue.owner),
        number => format!("queue {number} of rank {}", queue.owner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_calls_have_no_arguments() {
        for (text, name) in [
            ("wait(signal 3 >= 20006)", "wait"),
            ("wait(allreduce(8 bytes, world))", "wait(allreduce)"),
            ("wait(ibarrier())", "wait(ibarrier)"),
            ("await(irecv(slot 3 from rank 1) and 2 more)", "await(irecv)"),
            ("barrier(split(colour 1) of world)", "barrier"),
            ("allreduce(8 KiB, split(colour 1) of world)", "allreduce"),
            ("plan(allreduce 8 KiB, world, start 17)", "plan"),
            ("line 5: value 7", "line"),
            ("put(8 bytes to 1:4096): waiting for room", "put"),
            ("alloc(3 x f64)", "alloc"),
            ("recv(slot 4 from rank 1 (of 3))", "recv"),
            ("taking handlers", "taking handlers"),
            ("", ""),
        ] {
            assert_eq!(call(text), name, "{text}");
        }
    }
}
