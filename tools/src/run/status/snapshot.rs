//! The state of a job at one moment, for `tasuki ps` and for the report of a job that fails.

use crate::run::deadlock::Deadlock;
use crate::run::rank_names::names;
use crate::run::rank_queues::RankQueue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use tasuki_core::base::Rank;
use tasuki_core::node::node_state::SendBuffer;

/// The state of a job.
#[derive(Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Its short name.
    pub(crate) job: String,
    /// The program, as the user typed it.
    pub(crate) program: String,
    /// `processes`, `threads` or `simulated`.
    pub(crate) way: String,
    /// The launcher's process number.
    pub(crate) launcher: u32,
    /// How long the job has been running, in seconds.
    pub(crate) uptime_s: f64,
    /// All ranks, in order.
    pub(crate) ranks: Vec<RankState>,
    /// Ranks that wait for each other for ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) deadlocks: Vec<Deadlock>,
}

/// The stage of a rank that is not in a waiting call and has a running thread.
pub(in crate::run) const RUNNING: &str = "running";
/// The stage of a rank that is not in a waiting call but sleeps in a system call of the program.
pub(in crate::run) const SLEEPING: &str = "sleeping";
/// The stage of a rank in a waiting call.
pub(in crate::run) const WAITING: &str = "waiting";

/// The state of a rank.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(crate) struct RankState {
    /// Its number.
    pub(crate) rank: usize,
    /// Its process number.
    pub(crate) pid: u32,
    /// Its stage, as `tasuki ps` shows it.
    pub(crate) stage: String,
    /// The call in which it waits, with peer and object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_in: Option<String>,
    /// How long it has waited, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_s: Option<f64>,
    /// The only rank that can end the wait, if there is just one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for: Option<usize>,
    /// The rank that has called the handler that it runs, if it runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handles_for: Option<usize>,
    /// The messages in its send buffer, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) send_buffer: Option<BufferedMessages>,
    /// Its command queues that are not empty, if its memory can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) queues: Vec<RankQueue>,
}

/// Messages whose sends have returned, and that nobody has received.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
pub(crate) struct BufferedMessages {
    /// How many there are.
    pub(crate) messages: u32,
    /// The receiver, the slot and the bytes of the oldest one.
    pub(crate) to: usize,
    pub(crate) slot: u32,
    pub(crate) bytes: u64,
}

impl From<SendBuffer> for BufferedMessages {
    fn from(SendBuffer { messages, to, slot, bytes }: SendBuffer) -> BufferedMessages {
        BufferedMessages { messages, to: to.index(), slot, bytes }
    }
}

impl fmt::Display for BufferedMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BufferedMessages { messages, to, slot, bytes } = *self;
        SendBuffer { messages, to: Rank(to), slot, bytes }.fmt(f)
    }
}

impl RankState {
    /// Returns true if the rank is not in a waiting call, so that it does not see commands that
    /// others leave to it.
    pub(in crate::run) fn computes(&self) -> bool {
        self.stage == RUNNING || self.stage == SLEEPING
    }

    /// Returns what it does, as far as that is known: the call in which it waits, and whether it runs a handler.
    pub(crate) fn does(&self) -> Option<String> {
        let handler = self.handles_for.map(|caller| format!("a handler that rank {caller} has called"));
        match (&self.waits_in, handler) {
            (Some(call), Some(handler)) => Some(format!("{call}, where it runs {handler}")),
            (Some(call), None) => Some(call.clone()),
            (None, handler) => handler,
        }
    }
}

/// One line for all ranks in equal states, ordered by the first rank of each line; then one for all ranks with equal
/// messages in their send buffers.
pub(crate) fn report(ranks: &[RankState]) -> String {
    let mut groups: BTreeMap<(&str, String), Vec<&RankState>> = BTreeMap::new();
    for rank_state in ranks {
        groups
            .entry((&rank_state.stage, rank_state.does().unwrap_or_default()))
            .or_default()
            .push(rank_state);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, ranks)| ranks[0].rank);
    let mut text = String::new();
    for ((stage, call), ranks) in groups {
        let who = names(&ranks.iter().map(|rank_state| rank_state.rank).collect::<Vec<_>>());
        let _ = if call.is_empty() {
            write!(text, "\n  {who}: {stage}")
        } else {
            write!(text, "\n  {who}: {stage} {}in {call}", waited(&ranks))
        };
    }
    let mut buffers: BTreeMap<&BufferedMessages, Vec<usize>> = BTreeMap::new();
    for rank_state in ranks {
        if let Some(buffer) = &rank_state.send_buffer {
            buffers.entry(buffer).or_default().push(rank_state.rank);
        }
    }
    let mut buffers: Vec<_> = buffers.into_iter().collect();
    buffers.sort_by_key(|(_, ranks)| ranks[0]);
    for (buffer, ranks) in buffers {
        let _ = write!(text, "\n  {}: {buffer}", names(&ranks));
    }
    text
}

/// `for 4.1 s ` or `for 0.2 to 4.1 s `.
fn waited(ranks: &[&RankState]) -> String {
    let times = || ranks.iter().filter_map(|rank_state| rank_state.waited_s);
    let (least, most) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    match (format!("{least:.1}"), format!("{most:.1}")) {
        (least, most) if least == most => format!("for {most} s "),
        (least, most) if times().next().is_some() => format!("for {least} to {most} s "),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_state(rank: usize, stage: &str, wait: Option<(&str, f64)>) -> RankState {
        let (waits_in, waited_s) = wait.map(|(call, time)| (call.to_string(), time)).unzip();
        let (stage, waits_for, queues) = (stage.into(), None, Vec::new());
        let (handles_for, send_buffer) = (None, None);
        RankState { rank, pid: 1, stage, waits_in, waited_s, waits_for, handles_for, send_buffer, queues }
    }

    #[test]
    fn messages_that_nobody_receives_are_shown() {
        let mut ranks: Vec<_> = (0..4).map(|rank| rank_state(rank, "ended", None)).collect();
        let buffer = |messages| Some(BufferedMessages { messages, to: 0, slot: 4, bytes: 8 });
        (ranks[1].send_buffer, ranks[2].send_buffer, ranks[3].send_buffer) =
            (buffer(3), buffer(1), buffer(3));
        assert_eq!(
            report(&ranks),
            "\n  ranks 0-3: ended\n  \
             ranks 1, 3: send buffer: 3 messages, not received; the oldest for rank 0 on slot 4, 8 bytes\n  \
             rank 2: send buffer: 1 message, not received; for rank 0 on slot 4, 8 bytes"
        );
    }

    #[test]
    fn a_rank_that_runs_a_handler_says_so() {
        let mut in_wait = rank_state(0, "waiting", Some(("recv(slot 3 from rank 1)", 4.1)));
        let mut outside = rank_state(1, "sleeping", None);
        (in_wait.handles_for, outside.handles_for) = (Some(1), Some(0));
        assert_eq!(
            report(&[in_wait, outside]),
            "\n  rank 0: waiting for 4.1 s in recv(slot 3 from rank 1), where it runs a handler that rank 1 has called\n  \
             rank 1: sleeping in a handler that rank 0 has called"
        );
    }

    #[test]
    fn ranks_that_do_the_same_share_a_line() {
        let wait = |time| Some(("barrier(world)", time));
        let ranks = [
            rank_state(0, "waiting", wait(4.13)),
            rank_state(1, "running", None),
            rank_state(2, "waiting", wait(4.11)),
            rank_state(3, "waiting", Some(("wait(signal 7 >= 4)", 0.2))),
            rank_state(4, "waiting", wait(0.2)),
        ];
        assert_eq!(
            report(&ranks),
            "\n  ranks 0, 2, 4: waiting for 0.2 to 4.1 s in barrier(world)\n  rank 1: running\n  \
             rank 3: waiting for 0.2 s in wait(signal 7 >= 4)"
        );
    }
}
