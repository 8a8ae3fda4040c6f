//! The control of helpers: which ranks one works for, how it is ended, and which rank of the node starts one.

use crate::base::Rank;
use crate::base::sync::{AtomicBool, Ordering};
use crate::engine::wait::condition::WaitEvent;
use crate::node::node_state::{NodeState, RankStage};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The ranks that a helper works for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HelperScope {
    /// Its own rank: queues, requests of peers, messages.
    Rank,
    /// Its own rank, and the queues of all ranks of the node that other ranks may run.
    Node,
}

/// Ends a helper: the request to end and the confirmation.
#[derive(Debug, Default)]
pub struct HelperControl {
    pub(super) stop_requested: Arc<OnceEvent>,
    pub(super) stopped: Arc<OnceEvent>,
    /// The helper waits on standby until it is activated.
    pub(super) on_standby: AtomicBool,
}

impl HelperControl {
    /// Creates the control of a helper that waits on standby until it is activated or another rank has sent a command.
    pub fn of_a_spare() -> HelperControl {
        HelperControl { on_standby: AtomicBool::new(true), ..HelperControl::default() }
    }
}

/// An event that one thread of the rank sets once and another waits for.
#[derive(Debug, Default)]
pub(super) struct OnceEvent(AtomicBool);

impl OnceEvent {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl WaitEvent for OnceEvent {
    fn happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn impossible_after(&self) -> Option<(Rank, RankStage)> {
        None
    }
}

/// The function that starts the node's helper in this rank when the rank that had it has left.
#[derive(Default)]
pub struct NodeHelper(OnceLock<Box<dyn Fn() + Send + Sync>>);

impl fmt::Debug for NodeHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeHelper({})", self.0.get().is_some())
    }
}

impl NodeHelper {
    /// Sets the function that may start the node's helper here when the rank that had it has left and this one waits.
    pub fn set_successor(&self, start: Box<dyn Fn() + Send + Sync>) {
        let first = self.0.set(start).is_ok();
        debug_assert!(first, "a rank has one helper");
    }

    /// Starts the node's helper here, if the rank that had it has left.
    pub(super) fn replace(&self, node_state: &NodeState) {
        if node_state.lacks_helper()
            && let Some(start) = self.0.get()
        {
            start();
        }
    }
}
