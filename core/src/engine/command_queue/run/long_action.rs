//! The state of a long action.

use crate::engine::RevocableBuffer;
use crate::engine::trace::CommandId;
use crate::queue::command::Action;
use std::sync::Arc;

/// An in-flight command that this rank runs.
#[derive(Debug)]
pub(in crate::engine::command_queue) struct LongAction {
    pub(super) place: CommandId,
    pub(super) action: Action,
    /// Number of the action's steps that have ended.
    pub(super) step: u32,
    /// Memory for the values of its steps.
    pub(super) buffers: [Option<Arc<RevocableBuffer>>; 2],
    /// The operation of the current step. `None`: the fabric had no room for it.
    pub(super) operation: Option<u64>,
}

impl LongAction {
    /// The action of a command before its first step.
    pub(super) fn new(place: CommandId, action: Action) -> LongAction {
        LongAction { place, action, step: 0, buffers: [None, None], operation: None }
    }
}
