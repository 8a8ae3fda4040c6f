//! Finds ranks that wait for each other for ever.
//!
//! If a wait has no time limit and only one rank can end it, the waiting rank publishes that rank.
//! A cycle of such waits is a deadlock, with these exceptions:
//!
//! - The awaited event has happened, but the rank has not looked yet. So all ranks of a cycle must
//!   be asleep in two samples, some ms apart, in the same waits, and not woken between them.
//! - While its program waits, a rank also makes progress on other operations, and such an operation
//!   is all that the rank before it needs. A rank publishes the operations that it has begun
//!   ([`UnderWay`]).
//! - Another thread of a rank does what is awaited. If such a thread runs, no deadlock is reported;
//!   if one sleeps, the report says that this may be a deadlock.

use crate::run::job::Job;
use crate::run::options::Way;
use crate::run::proc_threads::{Thread, threads_of};
use crate::run::snapshot::RankState;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tasuki_core::base::Rank;
use tasuki_core::node::node_state::{EndedBy, NodeState, PublishedWait, RankStage, UnderWay};

/// A cycle of ranks each of which waits for the next, or one rank that waits for a rank that has
/// left.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Deadlock {
    /// In the order in which they wait.
    pub(crate) ranks: Vec<usize>,
    /// Rank that the last one waits for, if that one has left the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<usize>,
    /// True if no rank has other threads that could end the deadlock.
    pub(crate) is_certain: bool,
}

/// A report names at most this number of ranks of a cycle, each with its call.
const NAMED_MAX: usize = 8;
/// Time between two samples.
const APART: Duration = Duration::from_millis(5);
/// How many times ranks are sampled again if they were awake: sleepers look around now and then.
const LOOKS_MAX: usize = 20;

/// The state of a rank at one moment.
#[derive(Clone, PartialEq, Debug)]
struct WaitSample {
    by: Option<EndedBy>,
    under_way: UnderWay,
    since_ns: u64,
    thread: u32,
    /// The rank's total number of wake-ups.
    wakes: u32,
    is_asleep: bool,
    has_left: bool,
}

impl WaitSample {
    fn at(node_state: &NodeState, rank: Rank) -> WaitSample {
        let rank_state = node_state.rank_state(rank);
        let wait = rank_state.published_wait();
        let by = wait.as_ref().and_then(|wait| wait.ended_by);
        let under_way = wait.as_ref().map_or(UnderWay::default(), |wait| wait.under_way);
        let (since_ns, thread) =
            wait.map_or((0, 0), |PublishedWait { since_ns, thread, .. }| (since_ns, thread));
        let (wakes, is_asleep) =
            (rank_state.park().futex().load(Ordering::Acquire), rank_state.park().is_asleep());
        let has_left = rank_state.stage() == RankStage::Left;
        WaitSample { by, under_way, since_ns, thread, wakes, is_asleep, has_left }
    }
}

/// The rank that a rank waits for, if only that rank's program can end the wait.
fn awaited(samples: &[WaitSample], rank: usize) -> Option<usize> {
    let by = samples[rank].by?;
    let other = by.rank().index();
    let look = samples.get(other)?;
    let may_go_on = match by {
        EndedBy::Message(_) => look.under_way.sends,
        EndedBy::Signal(_) => look.under_way.signals,
    };
    (look.has_left || !may_go_on).then_some(other)
}

/// All cycles, each once and beginning with its lowest rank; and ranks that wait for a rank that
/// has left.
fn deadlocks(samples: &[WaitSample]) -> Vec<Deadlock> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for first in 0..samples.len() {
        let (mut path, mut at) = (Vec::new(), first);
        while seen.insert(at) {
            path.push(at);
            let Some(next) = awaited(samples, at) else { break };
            if samples[next].has_left {
                found.push(Deadlock { ranks: vec![at], left: Some(next), is_certain: true });
                break;
            }
            at = next;
            if let Some(begin) = path.iter().position(|&rank| rank == at) {
                let mut ranks = path.split_off(begin);
                let lowest = (0..ranks.len()).min_by_key(|&place| ranks[place]).unwrap_or(0);
                ranks.rotate_left(lowest);
                found.push(Deadlock { ranks, left: None, is_certain: true });
                break;
            }
        }
    }
    found.sort_by_key(|deadlock| deadlock.ranks[0]);
    found
}

impl Deadlock {
    /// `deadlock: rank 0 waits for rank 1 (recv(slot 1 from rank 1)), rank 1 waits for rank 0 (...)`
    pub(crate) fn text(&self, ranks: &[RankState]) -> String {
        let mut text = String::from(match self.is_certain {
            true => "deadlock: ",
            false => "perhaps a deadlock (other threads of these ranks sleep): ",
        });
        for (place, &rank) in self.ranks.iter().enumerate().take(NAMED_MAX) {
            let next = self.ranks.get(place + 1).copied();
            let next = next.or(self.left).unwrap_or(self.ranks[0]);
            let call =
                ranks.get(rank).and_then(|rank_state| rank_state.waits_in.as_deref()).unwrap_or("a call");
            let comma = if place > 0 { ", " } else { "" };
            let left = if self.left == Some(next) { ", which has left" } else { "" };
            let _ = write!(text, "{comma}rank {rank} waits for rank {next}{left} ({call})");
        }
        if self.ranks.len() > NAMED_MAX {
            let _ = write!(text, ", and so on through {} ranks", self.ranks.len());
        }
        text
    }
}

impl Job {
    /// All deadlocks. Takes a few ms if there are candidates.
    pub(in crate::run) fn deadlocks(&self) -> Vec<Deadlock> {
        let Some(node_state) =
            self.server.node_state().filter(|_| !matches!(self.options.way, Way::Simulated { .. }))
        else {
            return Vec::new();
        };
        let look =
            || Rank::all(self.options.ranks).map(|rank| WaitSample::at(node_state, rank)).collect::<Vec<_>>();
        let mut before = look();
        let mut candidates = deadlocks(&before);
        let mut certain = Vec::new();
        for _ in 0..LOOKS_MAX {
            if candidates.is_empty() {
                break;
            }
            std::thread::sleep(APART);
            let now = look();
            let still = deadlocks(&now);
            candidates.retain(|deadlock| still.contains(deadlock));
            let is_certain = |deadlock: &Deadlock| {
                let mut ranks = deadlock.ranks.iter();
                ranks.all(|&rank| now[rank].is_asleep && now[rank] == before[rank])
            };
            certain.extend(candidates.extract_if(.., |deadlock| is_certain(deadlock)));
            before = now;
        }
        certain.retain_mut(|deadlock| {
            let others: Vec<Thread> =
                deadlock.ranks.iter().flat_map(|&rank| self.others(rank, &before)).collect();
            deadlock.is_certain = others.is_empty();
            others.iter().all(|thread| thread.sleeps)
        });
        certain.sort_by_key(|deadlock| deadlock.ranks[0]);
        certain
    }

    /// The threads of a rank other than the one that waits. If one process has all ranks, the
    /// threads that may belong to this rank.
    fn others(&self, rank: usize, samples: &[WaitSample]) -> Vec<Thread> {
        let (pid, name) = (self.pid(rank), self.thread_name(rank));
        let is_another_ranks = |thread: &Thread| {
            let named =
                name.as_ref().is_some_and(|name| thread.name.starts_with("rank ") && thread.name != *name);
            named || name.is_some() && thread.id == pid
        };
        let is_other = |thread: &Thread| thread.id != samples[rank].thread && !is_another_ranks(thread);
        threads_of(pid).into_iter().filter(is_other).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> WaitSample {
        let under_way = UnderWay::default();
        WaitSample {
            by: None,
            under_way,
            since_ns: 0,
            thread: 0,
            wakes: 0,
            is_asleep: false,
            has_left: false,
        }
    }

    fn waits(by: EndedBy) -> WaitSample {
        WaitSample { by: Some(by), is_asleep: true, ..runs() }
    }

    fn message(rank: u32) -> WaitSample {
        waits(EndedBy::Message(Rank::from_word(rank)))
    }

    fn circle(ranks: &[usize]) -> Deadlock {
        Deadlock { ranks: ranks.to_vec(), left: None, is_certain: true }
    }

    #[test]
    fn each_cycle_is_found_once() {
        let samples =
            [message(2), message(4), message(5), message(3), message(1), message(0), message(0), runs()];
        assert_eq!(deadlocks(&samples), [circle(&[0, 2, 5]), circle(&[1, 4]), circle(&[3])]);
        assert_eq!(deadlocks(&[message(1), message(2), runs()]), []);
    }

    #[test]
    fn a_rank_with_work_under_way_is_not_in_a_cycle() {
        let signal = |rank| waits(EndedBy::Signal(Rank(rank)));
        let busy =
            |look: WaitSample, sends, signals| WaitSample { under_way: UnderWay { sends, signals }, ..look };
        assert_eq!(deadlocks(&[signal(1), message(0)]), [circle(&[0, 1])]);
        assert_eq!(deadlocks(&[signal(1), busy(message(0), true, false)]), [circle(&[0, 1])]);
        assert_eq!(deadlocks(&[signal(1), busy(message(0), false, true)]), []);
        assert_eq!(deadlocks(&[message(1), busy(message(0), true, false)]), []);
        assert_eq!(deadlocks(&[busy(message(1), false, true), message(0)]), [circle(&[0, 1])]);
    }

    #[test]
    fn a_wait_for_a_rank_that_left_is_a_deadlock() {
        let gone = WaitSample { has_left: true, ..runs() };
        let found = deadlocks(&[message(1), message(2), gone]);
        assert_eq!(found, [Deadlock { left: Some(2), ..circle(&[1]) }]);
        let ranks = [None, Some("recv(slot 3 from rank 2)"), None].map(|call| RankState {
            rank: 0,
            pid: 1,
            stage: "waiting".into(),
            waits_in: call.map(Into::into),
            handles_for: None,
            send_buffer: None,
            waited_s: None,
            waits_for: None,
            queues: Vec::new(),
        });
        let expected = "deadlock: rank 1 waits for rank 2, which has left (recv(slot 3 from rank 2))";
        assert_eq!(found[0].text(&ranks), expected);
        let many = circle(&(0..20).collect::<Vec<_>>()).text(&ranks);
        assert!(many.ends_with("rank 7 waits for rank 8 (a call), and so on through 20 ranks"), "{many}");
        let perhaps = Deadlock { is_certain: false, ..circle(&[0]) }.text(&ranks);
        assert!(perhaps.starts_with("perhaps a deadlock "), "{perhaps}");
    }
}
