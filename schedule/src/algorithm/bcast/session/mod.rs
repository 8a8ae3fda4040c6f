//! Broadcasts over nodes by queues in session mode: each queue holds its commands from the start, and what arrives says
//! how many more of them may begin.
//!
//! A queue's scheduling pointer is a signal, its *credit*: command i of the queue waits until that has counted i + 1. A
//! put that arrives carries a *session progress step*, the number of commands that it lets begin, of at most so many,
//! as the interface has few bits for it; more need further puts, which carry nothing else.
//!
//! The ranks of a node are served by one of them, the root or else the first: its queues run the paths between nodes,
//! one each, and the copies inside. Ready climbs each path: a node reports when all its ranks have started and all
//! below it have reported; so the root lets a path go only when nobody there still uses what the start before brought.
//!
//! Source: Morie, Hatanaka, Takagi, Hori, Ishikawa, on a persistent broadcast inside and between nodes run by the
//! network interface: bucket relay and two-phase.

#[cfg(test)]
mod formulas;
mod node_chain;
#[cfg(test)]
mod tests;

pub use node_chain::streams;

use crate::shape::{DATA, Shape};
use crate::{RankPart, SignalId, started};

/// Engines of a node.
pub(crate) const ENGINES: usize = 4;
/// What a session progress step counts to at most: it has four bits.
pub(crate) const PROGRESS_MAX: u64 = 15;

/// Where queues that report readiness begin, behind all others.
pub(crate) const READY_QUEUE: u16 = 32;

/// The trees along which segments go from node to node.
pub(crate) trait Paths {
    /// CombineWith many there are; each carries an equal share of the message.
    fn count(&self) -> usize;

    /// From which node a node gets what comes along that path; the root's node from nobody.
    fn parent(&self, path: usize, node: usize) -> Option<usize>;

    /// The most children that a node has.
    fn children_max(&self) -> u64;

    /// The nodes to which it hands it on.
    fn children(&self, path: usize, node: usize) -> Vec<usize>;
}

/// CombineWith the other ranks of a node get it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Inner {
    /// Each segment is copied when it has come, by the last engine, which has a queue for each path.
    Bucket,
    /// All is copied when all has come, by all engines, a part each.
    TwoPhase,
}

/// A broadcast that is to be prepared.
pub(crate) struct Session<'s> {
    pub(crate) shape: &'s Shape,
    pub(crate) paths: &'s dyn Paths,
    pub(crate) inner: Inner,
    /// Segments of a path.
    pub(crate) segments: u64,
    /// The most that a session progress step says.
    pub(crate) progress_max: u64,
}

/// The signals of a rank.
struct Signals {
    /// Of each path.
    credit: Vec<SignalId>,
    ready: Vec<SignalId>,
    /// Of each queue inside the node.
    inner: Vec<SignalId>,
    /// Other ranks of the node that have started.
    free: SignalId,
    sent: SignalId,
    arrived: SignalId,
}

impl Session<'_> {
    /// Fills in the part of a rank.
    pub(crate) fn prepare(&self, part: &mut RankPart) {
        let node = part.rank() / self.per_node();
        part.buffer("data", self.shape.rooms(part.rank())[0]);
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

    /// Other ranks of a node.
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

    /// In how many pieces a rank gets the message from its node's.
    fn pieces(&self) -> u64 {
        match self.inner {
            Inner::Bucket => self.paths.count() as u64 * self.segments,
            Inner::TwoPhase => ENGINES as u64,
        }
    }

    /// Copies that a node's rank makes, to other nodes and inside.
    fn sends(&self, node: usize) -> u64 {
        let children = (0..self.paths.count()).map(|path| self.paths.children(path, node).len() as u64);
        children.sum::<u64>() * self.segments + self.pieces() * self.others()
    }

    /// Commands that follow the forwards of a segment in a path's queue: what starts the copies inside the node.
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

    /// Commands of a path's queue at a node for a segment: forwards, each with as many puts as the progress step of the
    /// child needs, and what follows them.
    fn commands(&self, path: usize, node: usize, is_last: bool) -> u64 {
        let (children, tail) = (self.paths.children(path, node), self.tail(is_last));
        if self.paths.children_max() + tail <= self.progress_max {
            return children.len() as u64 + tail; // one put is enough everywhere
        }
        let puts = |child: usize| self.credit(path, child, is_last).div_ceil(self.progress_max);
        children.into_iter().map(puts).sum::<u64>() + tail
    }

    /// What a segment's arrival adds to the credit of a path at a node. One where it lets nothing begin, which then
    /// counts that it has come.
    fn credit(&self, path: usize, node: usize, is_last: bool) -> u64 {
        self.commands(path, node, is_last).max(1)
    }

    /// What all segments together add.
    fn credits(&self, path: usize, node: usize) -> u64 {
        (self.segments - 1) * self.credit(path, node, false) + self.credit(path, node, true)
    }

    /// Ready climbs the path; the root's host then lets all of it begin.
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

    /// Segments go on along a path, and start what is to happen inside the node.
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
                    // The path's own engine last: its copies would stand before what is to be told to others.
                    let (before, after) = signals.inner.split_at(signals.inner.len().min(path + 1));
                    for inner in after.iter().chain(before) {
                        part.join(next()).then(inner.on(me, 1));
                    }
                }
                Inner::TwoPhase => {}
            }
        }
    }

    /// Where a segment of a path begins and ends.
    fn span(&self, path: usize, segment: u64) -> (u64, u64) {
        let bytes = self.shape.rooms(self.shape.root)[0];
        let (all, place) = (self.paths.count() as u64 * self.segments, path as u64 * self.segments + segment);
        (self.shape.cut(bytes, all, place), self.shape.cut(bytes, all, place + 1))
    }

    /// A number of commands as progress steps.
    fn split(&self, commands: u64) -> Vec<u64> {
        let (whole, rest) = (commands / self.progress_max, commands % self.progress_max);
        let mut steps = vec![self.progress_max; whole as usize];
        steps.extend((rest > 0).then_some(rest));
        steps
    }

    /// The queues of the last engine: a segment's copies begin when its path says that it has come.
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

    /// A queue of each engine: a command that does nothing for each path but the last to end, then those that let the
    /// copies begin, then these.
    fn copy_all(&self, node: usize, signals: &Signals, part: &mut RankPart) {
        let (me, bytes) = (part.rank(), self.shape.rooms(part.rank())[0]);
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

    /// What each of the commands that let a queue's copies begin adds: each but the last lets the next one begin, too.
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
