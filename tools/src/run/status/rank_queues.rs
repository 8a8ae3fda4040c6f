//! The command queues of ranks and what their commands wait for, for `tasuki ps`. The launcher
//! reads the ranks' memory, since ranks may be computing.

use crate::run::job::Job;
use crate::run::rank_names::names;
use crate::run::snapshot::RankState;
use serde::{Deserialize, Serialize};
use std::fmt;
use tasuki_core::base::Rank;
use tasuki_core::queue::inspect::{AwaitedSignal, QueueKind, QueueReport, queues_in};

/// A queue that is not empty.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(crate) struct RankQueue {
    /// The number of a command queue at its rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<u32>,
    /// For a queue of calls: how many levels of further calls they may cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calls_of_level: Option<u32>,
    /// Number of lines in its ring.
    pub(crate) capacity: u64,
    /// Lines that were posted but not read yet.
    pub(crate) unread: u64,
    /// Commands that wait for their triggers.
    pub(crate) waiting: u64,
    /// Commands that have fired but whose effects have not happened.
    pub(crate) under_way: u64,
    /// Commands that have failed.
    pub(crate) failed: u64,
    /// The signal that the head of a session queue waits for, or the nearest that a command waits
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) awaits: Option<Awaits>,
    /// Ranks that run the commands under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) run_by: Vec<usize>,
    /// Ranks that must run commands and have not begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_to: Vec<LeftTo>,
}

/// A signal of the queue's rank, its value and the awaited value.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(crate) struct Awaits {
    pub(crate) signal: u32,
    pub(crate) value: u64,
    pub(crate) wanted: u64,
    /// True for the credit of a session queue.
    pub(crate) is_credit: bool,
}

/// Commands that only one rank may run.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(crate) struct LeftTo {
    pub(crate) rank: usize,
    pub(crate) commands: u64,
    /// True if that rank is not in a waiting call, in which it would run them.
    pub(crate) computes: bool,
}

impl Job {
    /// Adds the ranks' queues, if the launcher has their memory files.
    pub(in crate::run) fn add_queues(&self, ranks: &mut [RankState]) {
        let computes: Vec<bool> = ranks.iter().map(RankState::computes).collect();
        for (rank, rank_state) in Rank::all(ranks.len()).zip(ranks) {
            let Some(file) = self.server.file(rank) else { continue };
            let queues =
                queues_in(file, rank).into_iter().map(|queue_report| RankQueue::of(queue_report, &computes));
            rank_state.queues = queues.filter(RankQueue::is_busy).collect();
        }
    }
}

impl RankQueue {
    fn of(queue_report: QueueReport, computes: &[bool]) -> RankQueue {
        let awaits = |need: AwaitedSignal, is_credit| {
            let AwaitedSignal { signal, value, wanted } = need;
            Awaits { signal, value, wanted, is_credit }
        };
        let credit = queue_report.credit.map(|need| awaits(need, true));
        let left_to = |(rank, commands): (Rank, u64)| {
            let rank = rank.index();
            LeftTo { rank, commands, computes: computes.get(rank).copied().unwrap_or(false) }
        };
        let (queue, calls_of_level) = match queue_report.kind {
            QueueKind::Commands(number) => (Some(number), None),
            QueueKind::Calls(level) => (None, Some(level)),
        };
        RankQueue {
            queue,
            calls_of_level,
            capacity: queue_report.capacity,
            unread: queue_report.unread,
            waiting: queue_report.waiting,
            under_way: queue_report.in_flight,
            failed: queue_report.failed,
            awaits: credit.or_else(|| queue_report.nearest.map(|need| awaits(need, false))),
            run_by: queue_report.run_by.into_iter().map(Rank::index).collect(),
            left_to: queue_report.left_to.into_iter().map(left_to).collect(),
        }
    }

    fn is_busy(&self) -> bool {
        self.unread + self.waiting + self.under_way > 0
    }
}

impl fmt::Display for RankQueue {
    /// `queue 0 of 64 lines: 3 waiting (signal 5 at 2, wants 4); 1 under way, 1 waits for rank 3, which computes`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let need = |awaits: &Awaits| {
            format!("signal {} at {}, wants {}", awaits.signal, awaits.value, awaits.wanted)
        };
        let credit = self.awaits.as_ref().filter(|awaits| awaits.is_credit);
        let nearest = self.awaits.as_ref().filter(|awaits| !awaits.is_credit);
        match (self.unread, credit) {
            (0, _) => {}
            (unread, Some(credit)) => parts.push(format!("{unread} unread, head needs {}", need(credit))),
            (unread, None) => parts.push(format!("{unread} unread")),
        }
        match (self.waiting, nearest) {
            (0, _) => {}
            (waiting, Some(nearest)) => parts.push(format!("{waiting} waiting ({})", need(nearest))),
            (waiting, None) => parts.push(format!("{waiting} waiting")),
        }
        if self.under_way > 0 {
            parts.push(format!("{} under way", self.under_way));
        }
        if !self.run_by.is_empty() {
            parts.push(format!("run by {}", names(&self.run_by)));
        }
        for LeftTo { rank, commands, computes } in &self.left_to {
            let verb = if *commands == 1 { "waits" } else { "wait" };
            let why = if *computes { ", which computes" } else { "" };
            parts.push(format!("{commands} {verb} for rank {rank}{why}"));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        match (self.queue, self.calls_of_level) {
            (Some(number), _) => write!(f, "queue {number}")?,
            (None, Some(0)) => f.write_str("queue of calls")?,
            (None, level) => write!(f, "queue of calls with {} levels below", level.unwrap_or(0))?,
        }
        write!(f, " of {} lines: {}", self.capacity, parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_report() -> QueueReport {
        QueueReport {
            kind: QueueKind::Commands(2),
            capacity: 64,
            unread: 0,
            waiting: 0,
            nearest: None,
            credit: None,
            in_flight: 0,
            run_by: Vec::new(),
            left_to: Vec::new(),
            failed: 0,
        }
    }

    fn said(queue_report: QueueReport) -> String {
        RankQueue::of(queue_report, &[false, true]).to_string()
    }

    #[test]
    fn a_line_says_what_keeps_commands() {
        let need = AwaitedSignal { signal: 5, value: 2, wanted: 4 };
        let waiting = QueueReport { waiting: 3, nearest: Some(need), ..queue_report() };
        assert_eq!(said(waiting), "queue 2 of 64 lines: 3 waiting (signal 5 at 2, wants 4)");
        let session = QueueReport { unread: 1, credit: Some(need), ..queue_report() };
        assert_eq!(said(session), "queue 2 of 64 lines: 1 unread, head needs signal 5 at 2, wants 4");
        let left_to = vec![(Rank(0), 2), (Rank(1), 1)];
        let flying =
            QueueReport { in_flight: 4, run_by: vec![Rank(0)], left_to, failed: 1, ..queue_report() };
        let expected = "queue 2 of 64 lines: 4 under way; run by rank 0; 2 wait for rank 0; 1 waits for rank 1, which \
                        computes; 1 failed";
        assert_eq!(said(flying), expected);
        let left_to = vec![(Rank(1), 3)];
        let calls = QueueReport { kind: QueueKind::Calls(0), unread: 3, left_to, ..queue_report() };
        let expected = "queue of calls of 64 lines: 3 unread; 3 wait for rank 1, which computes";
        assert_eq!(said(calls.clone()), expected);
        let above = said(QueueReport { kind: QueueKind::Calls(1), ..calls });
        assert!(above.starts_with("queue of calls with 1 levels below of 64 lines: "), "{above}");
        assert!(!RankQueue::of(queue_report(), &[]).is_busy());
    }
}
