//! The thread of rank 0 that keeps the job's door where no launcher does: it lets all ranks in, and watches until
//! all have left.

use crate::base::log::{Level, Log};
use crate::base::{Error, Rank, Result};
use crate::bootstrap::rendezvous_server::{Caller, JoinEvent, RendezvousServer};
use crate::engine::node_state::{NodeState, Stage};
use crate::os::disabled_features::DisabledFeatures;
use crate::os::poll::PollSet;
use crate::os::{clock, process};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where the kernel tells of no process's end: how often to look whether those are there who have not come yet.
/// Whoever has come is known by his line.
const LOOK: Duration = Duration::from_millis(100);

/// The thread.
#[derive(Debug)]
pub(super) struct Coordinator(JoinHandle<()>);

/// What it sleeps for.
#[derive(Clone, Copy)]
enum Source {
    RendezvousServer(Caller),
    End(Rank),
}

/// A rank's process.
struct RankWatch {
    pid: u32,
    /// Readable when it has ended.
    end: Option<OwnedFd>,
    /// It has left, or is dead.
    gone: bool,
}

/// What the thread works on.
struct WatchedRank {
    door: RendezvousServer,
    node_state: Arc<NodeState>,
    guests: Vec<RankWatch>,
    log: Log,
}

impl Coordinator {
    /// Opens the door to those processes, by rank; this one is the first.
    pub(super) fn start(
        door: RendezvousServer,
        pids: &[u32],
        denied: DisabledFeatures,
        log: Log,
    ) -> Result<Coordinator> {
        let node_state =
            door.node_state().cloned().ok_or_else(|| Error::argument("a door for ranks has a node state"))?;
        let own = std::process::id();
        let end = |pid: u32| if pid == own { None } else { process::pidfd(pid, denied) };
        let guests = pids.iter().map(|&pid| RankWatch { pid, end: end(pid), gone: false }).collect();
        let mut watched = WatchedRank { door, node_state, guests, log };
        let thread = std::thread::Builder::new().name("porter".into()).spawn(move || watched.run());
        thread.map(Coordinator).map_err(|error| Error::from_io("starting the porter's thread", &error))
    }

    /// Waits until all ranks have left, or one has died.
    pub(super) fn join_all(self) {
        let _ = self.0.join(); // it panics for a bug of ours only, and the rank has left
    }
}

impl WatchedRank {
    fn run(&mut self) {
        while !self.is_over() {
            let mut watch = PollSet::default();
            self.door.watch(&mut watch, Source::RendezvousServer);
            for (rank, guest) in (0..).map(Rank).zip(&self.guests) {
                guest.end.iter().for_each(|end| watch.read(Source::End(rank), end.as_fd()));
            }
            for source in watch.wait(self.deadline()) {
                match source {
                    Source::RendezvousServer(caller) => {
                        self.door.deal_with(caller).into_iter().for_each(|event| self.hear(event));
                        self.door.send_memberships();
                    }
                    Source::End(rank) => {
                        self.guests[rank.index()].end = None;
                        self.ended(rank);
                    }
                }
            }
            self.keep_time();
        }
    }

    /// Whether nobody needs the door any more: all have gone, or all have what they came for and know of a death.
    fn is_over(&self) -> bool {
        let told = self.node_state.is_over() && self.door.has_sent_memberships();
        told || self.guests.iter().all(|guest| guest.gone)
    }

    fn deadline(&self) -> Option<Instant> {
        let look = self.unseen().next().map(|_| Instant::now() + LOOK);
        [self.door.deadline(), look].into_iter().flatten().min()
    }

    /// Ranks that have not come, and whose process's end the kernel does not tell.
    fn unseen(&self) -> impl Iterator<Item = Rank> {
        let unseen = |(rank, guest): &(Rank, &RankWatch)| {
            let own = guest.pid == std::process::id();
            !own && !guest.gone && guest.end.is_none() && !self.door.has_come(*rank)
        };
        (0..).map(Rank).zip(&self.guests).filter(unseen).map(|(rank, _)| rank)
    }

    fn keep_time(&mut self) {
        if self.door.deadline().is_some_and(|when| when <= Instant::now()) {
            self.door.send_memberships();
        }
        let missing: Vec<Rank> =
            self.unseen().filter(|rank| !process::exists(self.guests[rank.index()].pid)).collect();
        missing.into_iter().for_each(|rank| self.ended(rank));
    }

    fn hear(&mut self, event: JoinEvent) {
        match event {
            // Who comes too late learns what those before him were told.
            JoinEvent::Came(_) => {
                if let Some(death) = self.node_state.death() {
                    self.door.broadcast_death(death.rank, &death.how);
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
            JoinEvent::Asks(id) => self.door.refuse(id, "a job that mpiexec started does not tell how it is"),
        }
    }

    /// A rank's process, or its connection, has ended: in order, or it is dead.
    fn ended(&mut self, rank: Rank) {
        let guest = &mut self.guests[rank.index()];
        if std::mem::replace(&mut guest.gone, true) {
            return;
        }
        let how = match self.node_state.rank_state(rank).stage() {
            Stage::Left => return,
            Stage::Absent => format!("process {} ended without joining the job", guest.pid),
            Stage::Joined | Stage::Leaving => format!("process {} ended without leaving the job", guest.pid),
        };
        self.node_state.declare_dead(rank, &how, clock::now_ns());
        self.door.broadcast_death(rank, &how);
    }
}
