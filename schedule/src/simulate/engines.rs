//! The engines of all nodes: when each is free, and which queues wait for it.

use crate::network::Time;
use std::collections::VecDeque;

/// A queue of a rank, by its index among the rank's queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueHead {
    pub(super) rank: u32,
    pub(super) lane: u16,
}

/// An engine.
#[derive(Default, Debug)]
struct Engine {
    free: Time,
    waiting: VecDeque<QueueHead>,
    /// True if an event is scheduled for the time when it is free.
    is_called: bool,
}

/// The engines of all nodes.
#[derive(Debug)]
pub(super) struct Engines {
    all: Vec<Engine>,
    per_node: u64,
}

impl Engines {
    /// Creates `per_node` engines on each of `nodes` nodes.
    pub(super) fn new(nodes: u64, per_node: u32) -> Engines {
        let per_node = u64::from(per_node.max(1));
        let mut all = Vec::new();
        all.resize_with((nodes * per_node) as usize, Engine::default);
        Engines { all, per_node }
    }

    /// The engine of a queue. It depends on the queue's number and the rank's place on the node, so that the ranks of a
    /// node do not all use the first engine.
    pub(super) fn of(&self, node: u64, queue: u16, place: u64) -> usize {
        (node * self.per_node + self.number(queue, place)) as usize
    }

    /// The number of that engine on its node.
    pub(super) fn number(&self, queue: u16, place: u64) -> u64 {
        (u64::from(queue) + place) % self.per_node
    }

    /// Returns true if the engine is free and no queue waits for it.
    pub(super) fn is_idle(&self, engine: usize, now: Time) -> bool {
        let engine = &self.all[engine];
        engine.free <= now && engine.waiting.is_empty()
    }

    /// Marks the engine as taken until `until`.
    pub(super) fn take(&mut self, engine: usize, until: Time) {
        self.all[engine].free = until;
    }

    /// Adds a queue to those waiting for the engine. Returns the time for which an event must be scheduled, if none is
    /// yet.
    pub(super) fn wait(&mut self, engine: usize, head: QueueHead) -> Option<Time> {
        let engine = &mut self.all[engine];
        engine.waiting.push_back(head);
        (!std::mem::replace(&mut engine.is_called, true)).then_some(engine.free)
    }

    /// The next waiting queue, if the engine is free.
    pub(super) fn next(&mut self, engine: usize, now: Time) -> Option<QueueHead> {
        let engine = &mut self.all[engine];
        if engine.free <= now { engine.waiting.pop_front() } else { None }
    }

    /// Ends the handling of an event. Returns the time of the next event, if a queue still waits.
    pub(super) fn looked_at(&mut self, engine: usize) -> Option<Time> {
        let engine = &mut self.all[engine];
        engine.is_called = !engine.waiting.is_empty();
        engine.is_called.then_some(engine.free)
    }
}
