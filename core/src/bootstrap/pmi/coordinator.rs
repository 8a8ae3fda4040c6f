//! The thread of rank 0 that runs the rendezvous server if no launcher does: it admits all ranks,
//! and watches them until all have left.

use crate::base::log::{Level, Log};
use crate::base::{Error, Rank, Result};
use crate::bootstrap::rendezvous_server::{JoinEvent, RendezvousServer, ServerSource};
use crate::node::node_state::{NodeState, RankStage};
use crate::os::disabled_features::DisabledFeatures;
use crate::os::poll::PollSet;
use crate::os::{clock, process};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The period of checks for processes that have not connected, where the kernel has no pidfd. A
/// rank that has connected is watched by its connection.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// The thread.
#[derive(Debug)]
pub(super) struct Coordinator(JoinHandle<()>);

/// The sources of events that the thread waits for.
#[derive(Clone, Copy)]
enum Source {
    Server(ServerSource),
    /// The process of this rank has ended.
    ProcessEnd(Rank),
}

/// A rank's process.
struct RankWatch {
    pid: u32,
    /// A pidfd, readable when the process has ended.
    pidfd: Option<OwnedFd>,
    /// True if the rank has left or is dead.
    gone: bool,
}

/// The state of the thread.
struct CoordinatorState {
    server: RendezvousServer,
    node_state: Arc<NodeState>,
    /// By rank.
    ranks: Vec<RankWatch>,
    log: Log,
}

impl Coordinator {
    /// Starts the thread with an open server. `pids` are the ranks' processes by rank; this process is rank 0.
    pub(super) fn start(
        server: RendezvousServer,
        pids: &[u32],
        disabled: DisabledFeatures,
        log: Log,
    ) -> Result<Coordinator> {
        let node_state =
            server.node_state().cloned().ok_or_else(|| Error::argument("the server has no node state"))?;
        let own = std::process::id();
        let pidfd = |pid: u32| if pid == own { None } else { process::pidfd(pid, disabled) };
        let ranks = pids.iter().map(|&pid| RankWatch { pid, pidfd: pidfd(pid), gone: false }).collect();
        let mut state = CoordinatorState { server, node_state, ranks, log };
        let thread = std::thread::Builder::new().name("coordinator".into()).spawn(move || state.run());
        thread.map(Coordinator).map_err(|error| Error::from_io("starting the coordinator thread", &error))
    }

    /// Waits until all ranks have left, or one has died.
    pub(super) fn join_all(self) {
        let _ = self.0.join(); // it panics only for a bug of Tasuki, and this rank has left
    }
}

impl CoordinatorState {
    fn run(&mut self) {
        while !self.is_over() {
            let mut set = PollSet::default();
            self.server.watch(&mut set, Source::Server);
            for (rank, watch) in (0..).map(Rank).zip(&self.ranks) {
                watch.pidfd.iter().for_each(|pidfd| set.read(Source::ProcessEnd(rank), pidfd.as_fd()));
            }
            for source in set.wait(self.deadline()) {
                match source {
                    Source::Server(source) => {
                        let events = self.server.handle(source);
                        events.into_iter().for_each(|event| self.handle_event(event));
                        self.server.send_memberships();
                    }
                    Source::ProcessEnd(rank) => {
                        self.ranks[rank.index()].pidfd = None;
                        self.ended(rank);
                    }
                }
            }
            self.handle_deadlines();
        }
    }

    /// Returns true if no rank needs the server any more: all have left or died, or all have the
    /// membership and can see a death in the node state.
    fn is_over(&self) -> bool {
        let all_can_see_death = self.node_state.is_over() && self.server.has_sent_memberships();
        all_can_see_death || self.ranks.iter().all(|watch| watch.gone)
    }

    fn deadline(&self) -> Option<Instant> {
        let check = self.unwatched().next().map(|_| Instant::now() + CHECK_PERIOD);
        [self.server.deadline(), check].into_iter().flatten().min()
    }

    /// Returns the ranks that have not connected and have no pidfd.
    fn unwatched(&self) -> impl Iterator<Item = Rank> {
        let unwatched = |(rank, watch): &(Rank, &RankWatch)| {
            let own = watch.pid == std::process::id();
            !own && !watch.gone && watch.pidfd.is_none() && !self.server.has_come(*rank)
        };
        (0..).map(Rank).zip(&self.ranks).filter(unwatched).map(|(rank, _)| rank)
    }

    fn handle_deadlines(&mut self) {
        if self.server.deadline().is_some_and(|when| when <= Instant::now()) {
            self.server.send_memberships();
        }
        let ended: Vec<Rank> =
            self.unwatched().filter(|rank| !process::exists(self.ranks[rank.index()].pid)).collect();
        ended.into_iter().for_each(|rank| self.ended(rank));
    }

    fn handle_event(&mut self, event: JoinEvent) {
        match event {
            // A rank that connects after a death must learn of it, too.
            JoinEvent::Came(_) => {
                if let Some(death) = self.node_state.death() {
                    self.server.broadcast_death(death.rank, &death.how);
                }
            }
            JoinEvent::Lost(rank) => self.ended(rank),
            JoinEvent::CannotAccept(number) => {
                let error = std::io::Error::from_raw_os_error(number);
                let text = format_args!(
                    "a rank that joins cannot be accepted yet: {error}; is `ulimit -n` too low?"
                );
                self.log.say(Level::Warn, text);
            }
            JoinEvent::Asks(id) => self.server.refuse(id, "a job that mpiexec started reports no status"),
        }
    }

    /// Handles the end of a rank's process or connection: the rank has left in order, or it is dead.
    fn ended(&mut self, rank: Rank) {
        let watch = &mut self.ranks[rank.index()];
        if std::mem::replace(&mut watch.gone, true) {
            return;
        }
        let how = match self.node_state.rank_state(rank).stage() {
            RankStage::Left => return,
            RankStage::Absent => format!("process {} ended without joining the job", watch.pid),
            RankStage::Joined | RankStage::Leaving => {
                format!("process {} ended without leaving the job", watch.pid)
            }
        };
        self.node_state.declare_dead(rank, &how, clock::now_ns());
        self.server.broadcast_death(rank, &how);
    }
}
