//! Broadcasts over nodes by queues in session mode: each queue holds its commands from the start on, and each arrival
//! tells how many more of them may begin.
//!
//! The scheduling pointer of a queue is a signal, its *credit*: command i of the queue waits until the credit has
//! counted i + 1. A put that arrives carries a *session progress step*: the number of commands that may begin. The
//! interface has few bits for it; a larger number needs further puts that carry nothing else.
//!
//! One rank serves the ranks of a node: the root on its node, the first rank on others. Its queues run the paths
//! between nodes, one queue each, and the copies inside. Readiness signals climb each path: a node signals when all its
//! ranks have started and all its children have signalled. So the root starts a path only when no rank there still uses
//! the data of the start before.
//!
//! Source: Morie, Hatanaka, Takagi, Hori, Ishikawa, on a persistent broadcast inside and between nodes run by the
//! network interface: bucket relay and two-phase.

#[cfg(test)]
mod formula_tests;
mod node_chain;
#[cfg(test)]
mod tests;

pub use node_chain::streams;

use crate::shape::{DATA, Shape};
use crate::{RankPart, SignalId, started};

/// Number of engines of a node.
pub(crate) const ENGINES: usize = 4;
/// The largest session progress step: it has four bits.
pub(crate) const PROGRESS_MAX: u64 = 15;

/// The first queue for readiness signals, after all others.
pub(crate) const READY_QUEUE: u16 = 32;

/// The trees along which segments go from node to node.
pub(crate) trait Paths {
    /// Number of paths; each carries an equal share of the message.
    fn count(&self) -> usize;

    /// The node from which `node` receives along `path`; `None` at the root's node.
    fn parent(&self, path: usize, node: usize) -> Option<usize>;

    /// The most children of a node.
    fn children_max(&self) -> u64;

    /// The nodes to which `node` forwards along `path`.
    fn children(&self, path: usize, node: usize) -> Vec<usize>;
}

/// The distribution inside a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inner {
    /// Copies each segment when it has arrived, by the last engine, which has a queue for each path.
    Bucket,
    /// Copies the whole message when all of it has arrived; each engine copies a part.
    TwoPhase,
}

/// The parameters of a broadcast in session mode.
pub(crate) struct Session<'s> {
    pub(crate) shape: &'s Shape,
    pub(crate) paths: &'s dyn Paths,
    pub(crate) inner: Inner,
    /// Number of segments of a path.
    pub(crate) segments: u64,
    /// The largest session progress step.
    pub(crate) progress_max: u64,
}

/// The signals of a rank.
struct Signals {
    /// One for each path.
    credit: Vec<SignalId>,
    ready: Vec<SignalId>,
    /// One for each queue inside the node.
    inner: Vec<SignalId>,
    /// Counts the other ranks of the node that have started.
    free: SignalId,
    sent: SignalId,
    arrived: SignalId,
}

impl Session<'_> {
    /// Fills in the part of a rank.
    pub(crate) fn prepare(&self, part: &mut RankPart) {
        let node = part.rank() / self.per_node();
        part.buffer("data", self.shape.buffer_bytes(part.rank())[0]);
        let leads = part.rank() == self.leader(node);
        let signals = self.name_signals(node, leads, part);
        if !leads {
            part.join(started()).then(signals.free.on(self.leader(node), 1));
            part.finish(signals.arrived.reaches(self.pieces()));
            return;
        }
        for path in 0..self.paths.count() {
            self.report(path, node, &signals, part);
            self.forward(path, node, &signals, part);
        }
        if self.others() > 0 {
            match self.inner {
                Inner::Bucket => self.copy_segments(node, &signals, part),
                Inner::TwoPhase => self.copy_all(node, &signals, part),
            }
        }
        for (path, credit) in signals.credit.iter().enumerate() {
            part.finish(credit.reaches(self.credits(path, node)));
        }
        part.finish(signals.sent.reaches(self.sends(node)));
    }

    fn per_node(&self) -> usize {
        self.shape.placement.per_node
    }

    /// Number of other ranks of a node.
    fn others(&self) -> u64 {
        self.per_node() as u64 - 1
    }

    /// The rank that serves a node.
    fn leader(&self, node: usize) -> usize {
        if self.shape.root / self.per_node() == node { self.shape.root } else { node * self.per_node() }
    }

    fn name_signals(&self, node: usize, leads: bool, part: &mut RankPart) -> Signals {
        let if_leads = |count: u64| if leads { count } else { 0 };
        let paths = 0..self.paths.count();
        let credit = paths.clone().map(|path| part.signal("credit", if_leads(self.credits(path, node))));
        let credit = credit.collect();
        let children = |path: usize| self.paths.children(path, node).len() as u64;
        let ready = paths.map(|path| part.signal("ready", if_leads(children(path)))).collect();
        let (queues, inner) = match self.inner {
            _ if self.others() == 0 => (0, 0),
            Inner::Bucket => (self.paths.count(), self.segments * self.others()),
            Inner::TwoPhase => (ENGINES, self.paths.count() as u64 + self.released().iter().sum::<u64>()),
        };
        Signals {
            credit,
            ready,
            inner: (0..queues).map(|_| part.signal("inner", if_leads(inner))).collect(),
            free: part.signal("free", if_leads(self.others())),
            sent: part.signal("sent", if_leads(self.sends(node))),
            arrived: part.signal("arrived", if leads { 0 } else { self.pieces() }),
        }
    }

    /// Number of pieces in which a rank gets the message from the rank that serves its node.
    fn pieces(&self) -> u64 {
        match self.inner {
            Inner::Bucket => self.paths.count() as u64 * self.segments,
            Inner::TwoPhase => ENGINES as u64,
        }
    }

    /// Number of copies that a node's serving rank makes, to other nodes and inside.
    fn sends(&self, node: usize) -> u64 {
        let children = (0..self.paths.count()).map(|path| self.paths.children(path, node).len() as u64);
        children.sum::<u64>() * self.segments + self.pieces() * self.others()
    }

    /// Number of commands after the forwards of a segment in a path's queue, which start the copies inside the node.
    fn tail(&self, is_last: bool) -> u64 {
        match self.inner {
            _ if self.others() == 0 => 0,
            Inner::Bucket => self.others().div_ceil(self.progress_max),
            Inner::TwoPhase => {
                if is_last {
                    ENGINES as u64
                } else {
                    0
                }
            }
        }
    }

    /// Number of commands in the queue of a path at a node for one segment: the forwards, each with as many puts as the
    /// progress step of the child needs, and the commands that follow them.
    fn commands(&self, path: usize, node: usize, is_last: bool) -> u64 {
        let (children, tail) = (self.paths.children(path, node), self.tail(is_last));
        if self.paths.children_max() + tail <= self.progress_max {
            return children.len() as u64 + tail; // one put is enough for each child
        }
        let puts = |child: usize| self.credit(path, child, is_last).div_ceil(self.progress_max);
        children.into_iter().map(puts).sum::<u64>() + tail
    }

    /// The credit that the arrival of a segment adds to a path at a node. At least one: if no command may begin, the
    /// credit just counts the arrival.
    fn credit(&self, path: usize, node: usize, is_last: bool) -> u64 {
        self.commands(path, node, is_last).max(1)
    }

    /// The credit that all segments together add.
    fn credits(&self, path: usize, node: usize) -> u64 {
        (self.segments - 1) * self.credit(path, node, false) + self.credit(path, node, true)
    }

    /// Adds the readiness signals that climb the path; at the root's node they start the whole path.
    fn report(&self, path: usize, node: usize, signals: &Signals, part: &mut RankPart) {
        part.in_queue(READY_QUEUE + path as u16);
        part.join(started());
        part.join(signals.free.reaches(self.others()));
        let below = self.paths.children(path, node).len() as u64;
        let effect = match self.paths.parent(path, node) {
            Some(parent) => signals.ready[path].on(self.leader(parent), 1),
            None => signals.credit[path].on(part.rank(), self.credits(path, node)),
        };
        part.join(signals.ready[path].reaches(below)).then(effect);
    }

    /// Adds the forwards of segments along a path, and the commands that start the copies inside the node.
    fn forward(&self, path: usize, node: usize, signals: &Signals, part: &mut RankPart) {
        let (me, credit) = (part.rank(), signals.credit[path]);
        part.in_queue(path as u16);
        let children = self.paths.children(path, node);
        for segment in 0..self.segments {
            let is_last = segment + 1 == self.segments;
            let mut wanted = segment * self.credit(path, node, false);
            let mut next = || {
                wanted += 1;
                credit.reaches(wanted)
            };
            let (from, to) = self.span(path, segment);
            for &child in &children {
                let child_leader = self.leader(child);
                let mut steps = self.split(self.credit(path, child, is_last)).into_iter();
                part.copy(next(), DATA.on(me, from), DATA.on(child_leader, from), to - from)
                    .then(credit.on(child_leader, steps.next().unwrap_or(1)))
                    .then(signals.sent.on(me, 1));
                for step in steps {
                    part.join(next()).then(credit.on(child_leader, step));
                }
            }
            match self.inner {
                Inner::Bucket => {
                    for step in self.split(self.others()) {
                        part.join(next()).then(signals.inner[path].on(me, step));
                    }
                }
                Inner::TwoPhase if is_last => {
                    // The path's own engine comes last: its copies would delay the signals to the other engines.
                    let (before, after) = signals.inner.split_at(signals.inner.len().min(path + 1));
                    for inner in after.iter().chain(before) {
                        part.join(next()).then(inner.on(me, 1));
                    }
                }
                Inner::TwoPhase => {}
            }
        }
    }

    /// Begin and end of a segment of a path, as offsets in bytes.
    fn span(&self, path: usize, segment: u64) -> (u64, u64) {
        let bytes = self.shape.buffer_bytes(self.shape.root)[0];
        let (all, place) = (self.paths.count() as u64 * self.segments, path as u64 * self.segments + segment);
        (self.shape.cut(bytes, all, place), self.shape.cut(bytes, all, place + 1))
    }

    /// Splits a number of commands into progress steps.
    fn split(&self, commands: u64) -> Vec<u64> {
        let (whole, rest) = (commands / self.progress_max, commands % self.progress_max);
        let mut steps = vec![self.progress_max; whole as usize];
        steps.extend((rest > 0).then_some(rest));
        steps
    }

    /// Fills the queues of the last engine: the copies of a segment begin when its path signals the arrival.
    fn copy_segments(&self, node: usize, signals: &Signals, part: &mut RankPart) {
        for (path, inner) in signals.inner.iter().enumerate() {
            part.in_queue((ENGINES - 1 + path * ENGINES) as u16);
            let mut wanted = 0;
            for segment in 0..self.segments {
                let (from, to) = self.span(path, segment);
                self.copy_to_others(node, (from, to), signals, part, || {
                    wanted += 1;
                    inner.reaches(wanted)
                });
            }
        }
    }

    /// Fills a queue of each engine: an empty command for each path but the last one to end, the commands that release
    /// the copies, then the copies.
    fn copy_all(&self, node: usize, signals: &Signals, part: &mut RankPart) {
        let (me, bytes) = (part.rank(), self.shape.buffer_bytes(part.rank())[0]);
        for (engine, inner) in signals.inner.iter().enumerate() {
            part.in_queue((ENGINES + engine) as u16);
            let mut wanted = 0;
            let mut next = || {
                wanted += 1;
                inner.reaches(wanted)
            };
            (1..self.paths.count()).for_each(|_| {
                part.join(next());
            });
            for step in self.released() {
                part.join(next()).then(inner.on(me, step));
            }
            let cut = |place: usize| self.shape.cut(bytes, ENGINES as u64, place as u64);
            self.copy_to_others(node, (cut(engine), cut(engine + 1)), signals, part, next);
        }
    }

    /// The credits that the releasing commands of a queue add: each but the last also releases the next one.
    fn released(&self) -> Vec<u64> {
        let mut triggers = 1;
        while triggers * self.progress_max < triggers - 1 + self.others() {
            triggers += 1;
        }
        self.split(triggers - 1 + self.others())
    }

    fn copy_to_others(
        &self,
        node: usize,
        (from, to): (u64, u64),
        signals: &Signals,
        part: &mut RankPart,
        mut next: impl FnMut() -> crate::StepTrigger,
    ) {
        let me = part.rank();
        let ranks = node * self.per_node()..(node + 1) * self.per_node();
        for other in ranks.filter(|&other| other != me) {
            part.copy(next(), DATA.on(me, from), DATA.on(other, from), to - from)
                .then(signals.arrived.on(other, 1))
                .then(signals.sent.on(me, 1));
        }
    }
}
