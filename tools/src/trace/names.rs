//! EventKind things are called for people.

use tasuki_core::engine::trace::{CommandSummary, QueueId};
use tasuki_core::queue::command::{Action, Command};
use tasuki_core::queue::layout::CALLS;
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::{SIGNAL_STRIDE, SIGNALS};

/// Bytes in the unit in which they are least.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// A command in two or three words.
pub(super) fn short(brief: &CommandSummary) -> String {
    match brief.command().map(|command| command.deed) {
        None => "no command".into(),
        Some(Action::Nothing) => "signal".into(),
        Some(Action::Copy { len, .. }) => format!("copy {}", size(len)),
        Some(Action::Put { bytes, .. }) => format!("put {}", size(bytes.len() as u64)),
        Some(Action::Atomic { atomic, .. }) => {
            let name = format!("{:?}", atomic.kind).to_lowercase();
            format!("atomic {}", name.split(' ').next().unwrap_or_default())
        }
        Some(Action::Call(call)) => format!("call of rank {}", call.peer),
        Some(Action::Reduce { len, how, .. }) => format!("{how} {}", size(len)),
    }
}

/// A command with its operands and its trigger.
pub(super) fn long(brief: &CommandSummary) -> String {
    brief.command().map_or_else(String::new, |command| command.to_string())
}

/// EventKind a command lets happen.
pub(super) fn effects(brief: &CommandSummary) -> Vec<String> {
    let effects = brief.command().map_or([None; 2], |Command { effects, .. }| effects);
    effects
        .into_iter()
        .flatten()
        .map(|effect| format!("{} + {}", signal(effect.signal), effect.amount))
        .collect()
}

/// A signal by number and rank.
pub(super) fn signal(at: GlobalAddress) -> String {
    format!("signal {} of rank {}", at.offset().saturating_sub(SIGNALS) / SIGNAL_STRIDE, at.rank())
}

/// A queue by number and rank.
pub(super) fn queue(queue: QueueId) -> String {
    match queue.number {
        CALLS => format!("calls of rank {}", queue.owner),
        number => format!("queue {number} of rank {}", queue.owner),
    }
}
