//! Commands that other ranks run for this one, and the signals by which they report their ends.

use crate::engine::trace::CommandId;

/// A signal by which one offloaded command at a time reports its end.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::command_queue) struct ReturnSignal {
    pub(super) signal: u32,
    /// Value of the signal when the next command has succeeded.
    pub(super) count: u64,
}

/// A command that another rank runs for this one.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::command_queue) struct OffloadedCommand {
    pub(super) place: CommandId,
    pub(super) by: ReturnSignal,
}
