//! Where ranks, and those who ask after the job, come to whoever brings them together: a launcher, or a rank.

use super::rendezvous::{Rendezvous, Terms, Verdict};
use super::server_connection::{ConnectionRole, ServerConnection};
use super::settings::{Key, ServerAddress as Address};
use super::wire::{Answer, Greeting, Request};
use crate::base::{Error, Rank, Result};
use crate::engine::node_state::NodeState;
use crate::engine::park::WakeMode;
use crate::os::memfile::MemFile;
use crate::os::poll::PollSet;
use crate::os::{process, random, socket};
use crate::segment::layout;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of the descriptors that the kernel lets a user have on their way at a time, as many as this process may have open
/// files, this many in 16 are ours; the rest is for the user's other jobs.
const IN_FLIGHT_SIXTEENTHS: u64 = 12;
/// When the kernel says that too many are on their way, those of other jobs: how soon to ask again.
const RETRY: Duration = Duration::from_millis(10);
/// When a connection could not be accepted: how soon to try again. It stays ready until then, so that a wait for it
/// would return at once.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// ETOOMANYREFS, on both architectures.
const TOO_MANY_IN_FLIGHT: i32 = 109;

/// What the names of a user's jobs begin with.
pub fn prefix(user: u32) -> String {
    format!("tasuki-{user}-")
}

/// Who is to come to a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// That many ranks, each a process.
    Ranks(usize),
    /// One process that has that many ranks as threads.
    Host(usize),
}

/// How ranks come to be.
#[derive(Debug)]
enum Meeting {
    /// They come one by one.
    Ranks(Rendezvous),
    /// One process has them all, and shows their node state if it likes.
    Host { terms: Terms, size: usize, node_state: Option<Arc<NodeState>>, files: Vec<MemFile> },
}

/// What a door sleeps for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Somebody connects.
    Knock,
    /// A connection can be read, written, or has ended.
    ServerConnection(u64),
}

/// What the job must know of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinEvent {
    /// A rank wants to join.
    Came(Rank),
    /// A rank's connection has ended.
    Lost(Rank),
    /// Somebody wants to know how the job is.
    Asks(u64),
    /// Somebody who connects cannot be let in: the number of the system's error, most often that this process has no
    /// free descriptors. Told once; the door tries again until it can.
    CannotAccept(i32),
}

/// A listening socket with everybody who has come.
#[derive(Debug)]
pub struct RendezvousServer {
    address: Address,
    listener: UnixListener,
    meeting: Meeting,
    visitors: BTreeMap<u64, ServerConnection>,
    next: u64,
    in_flight: usize,
    in_flight_max: usize,
    retry: Option<Instant>,
    /// Nobody is accepted before this moment.
    accept_again: Option<Instant>,
    /// It has told that somebody could not be accepted.
    has_told: bool,
    all_have_all: bool,
    keeps_files: bool,
}

impl RendezvousServer {
    /// Opens a door for a new job, under a random name that begins with `prefix`, and with a random key. The wake
    /// mode of ranks that come one by one follows from what was asked for, and from how many `processors` they have.
    pub fn open(
        prefix: &str,
        expected: Expected,
        wake: Option<WakeMode>,
        processors: usize,
    ) -> Result<RendezvousServer> {
        let (job, key) = (u32::from_le_bytes(random::bytes()?), Key(random::bytes()?));
        let address = Address { socket: format!("{prefix}{job:08x}"), key };
        let listener = socket::listen(&address.socket)?;
        listener.set_nonblocking(true).map_err(|error| Error::from_io("fcntl(O_NONBLOCK)", &error))?;
        let terms = Terms { key, user: process::effective_user(), own: Greeting::own() };
        let meeting = match expected {
            Expected::Ranks(size) => Meeting::Ranks(Rendezvous::new(terms, size, wake, processors)?),
            Expected::Host(size) => Meeting::Host { terms, size, node_state: None, files: Vec::new() },
        };
        let in_flight_max = (process::descriptors_allowed() / 16).saturating_mul(IN_FLIGHT_SIXTEENTHS);
        Ok(RendezvousServer {
            address,
            listener,
            meeting,
            visitors: BTreeMap::new(),
            next: 0,
            in_flight: 0,
            in_flight_max: in_flight_max as usize,
            retry: None,
            accept_again: None,
            has_told: false,
            all_have_all: false,
            keeps_files: false,
        })
    }

    /// What ranks are told.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The job's short name.
    pub fn job(&self) -> &str {
        self.address.socket.rsplit('-').next().unwrap_or_default()
    }

    /// The ranks' node state, where there is one already.
    pub fn node_state(&self) -> Option<&Arc<NodeState>> {
        match &self.meeting {
            Meeting::Ranks(meeting) => Some(meeting.node_state()),
            Meeting::Host { node_state, .. } => node_state.as_ref(),
        }
    }

    /// Keeps the ranks' memory files, one descriptor each, to be able to look into them.
    pub fn keep_files(&mut self) {
        self.keeps_files = true;
    }

    /// The memory file of a rank, where there is one that was kept.
    pub fn file(&self, rank: Rank) -> Option<&MemFile> {
        match &self.meeting {
            Meeting::Ranks(meeting) => meeting.file(rank).map(|file| &**file),
            Meeting::Host { files, .. } => files.get(rank.index()),
        }
    }

    /// Whether that rank has come, and waits for others.
    pub fn is_joining(&self, rank: Rank) -> bool {
        matches!(&self.meeting, Meeting::Ranks(meeting) if meeting.has(rank) && !meeting.is_complete())
    }

    /// Whether that rank has come, and was let in.
    pub fn has_come(&self, rank: Rank) -> bool {
        matches!(&self.meeting, Meeting::Ranks(meeting) if meeting.has(rank))
    }

    /// Whether all ranks have got all that they share.
    pub fn has_sent_memberships(&self) -> bool {
        self.all_have_all
    }

    /// Whether ranks wait for others that have not come.
    pub fn is_awaited(&self) -> bool {
        self.visitors
            .values()
            .any(|visitor| matches!(visitor.role, ConnectionRole::Rank(rank) if self.is_joining(rank)))
    }

    /// Says what it sleeps for, each under the name that `source` gives it.
    pub fn watch<'f, S: Copy>(&'f self, watch: &mut PollSet<'f, S>, source: impl Fn(Caller) -> S) {
        if self.accept_pause().is_none() {
            watch.read(source(Caller::Knock), self.listener.as_fd());
        }
        for (&id, visitor) in &self.visitors {
            watch.read(source(Caller::ServerConnection(id)), visitor.descriptor());
            if visitor.has_outgoing() {
                watch.write(source(Caller::ServerConnection(id)), visitor.descriptor());
            }
        }
    }

    /// Deals with what it slept for. Afterwards, when the events have been dealt with, [`RendezvousServer::send_memberships`] is due: by
    /// then whoever ends the ranks knows all that have come.
    pub fn deal_with(&mut self, caller: Caller) -> Vec<JoinEvent> {
        match caller {
            Caller::Knock => self.accept().into_iter().collect(),
            Caller::ServerConnection(id) => self.serve(id),
        }
    }

    /// When it wants to be asked to [`RendezvousServer::send_memberships`] again, or to be watched again.
    pub fn deadline(&self) -> Option<Instant> {
        [self.retry, self.accept_pause()].into_iter().flatten().min()
    }

    /// Until when nobody is accepted, if that is not over.
    fn accept_pause(&self) -> Option<Instant> {
        self.accept_again.filter(|&when| when > Instant::now())
    }

    /// Lets in everybody who has knocked. What to tell if that is not possible.
    fn accept(&mut self) -> Option<JoinEvent> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    self.accept_again = Some(Instant::now() + ACCEPT_AGAIN);
                    let is_first = !std::mem::replace(&mut self.has_told, true);
                    return is_first.then(|| JoinEvent::CannotAccept(error.raw_os_error().unwrap_or(0)));
                }
            };
            let Ok(from) = socket::credentials(&stream) else { continue };
            let Ok(mut visitor) = ServerConnection::new(stream, from) else { continue };
            if let Err(why) = self.terms().check_user(from) {
                visitor.say(&Answer::Refused(why));
                continue;
            }
            self.visitors.insert(self.next, visitor);
            self.next += 1;
        }
    }

    fn terms(&self) -> &Terms {
        match &self.meeting {
            Meeting::Ranks(meeting) => meeting.terms(),
            Meeting::Host { terms, .. } => terms,
        }
    }

    /// Looks after a visitor whose connection has something to tell.
    fn serve(&mut self, id: u64) -> Vec<JoinEvent> {
        let Some(visitor) = self.visitors.get_mut(&id) else { return Vec::new() };
        visitor.write();
        let heard = visitor.listen();
        let mut events: Vec<JoinEvent> =
            heard.requests.into_iter().filter_map(|(request, files)| self.hear(id, request, files)).collect();
        let answered =
            self.visitors.get(&id).is_some_and(|v| v.role == ConnectionRole::Asker && !v.has_outgoing());
        if heard.ended || (answered && events.is_empty()) {
            events.extend(self.close_connection(id));
        }
        events
    }

    fn hear(&mut self, id: u64, request: Request, files: Vec<OwnedFd>) -> Option<JoinEvent> {
        match request {
            Request::Hello { rank, .. } => self.hello(id, rank, request, files),
            Request::Host { ref greeting, layout, key, size } => {
                let from = self.visitors.get(&id)?.from;
                let shown = self.terms().check(greeting, layout, key, from);
                let answer = match shown.and_then(|()| self.show(size as usize, from.pid, files)) {
                    Ok(()) => Answer::Welcome { size, descriptors: 0 },
                    Err(why) => Answer::Refused(why),
                };
                let visitor = self.visitors.get_mut(&id)?;
                visitor.role = ConnectionRole::Host;
                visitor.say(&answer);
                None
            }
            Request::Taken => {
                let visitor = self.visitors.get_mut(&id)?;
                self.in_flight -= visitor.in_flight;
                visitor.in_flight = 0;
                None
            }
            Request::Ask(_) => {
                self.visitors.get_mut(&id)?.role = ConnectionRole::Asker;
                Some(JoinEvent::Asks(id))
            }
            Request::Stranger(greeting) => {
                let why = self.terms().mismatch(&greeting, "versions");
                self.answer(id, &Answer::Refused(why));
                None
            }
        }
    }

    fn hello(&mut self, id: u64, rank: Rank, hello: Request, files: Vec<OwnedFd>) -> Option<JoinEvent> {
        let from = self.visitors.get(&id)?.from;
        let Meeting::Ranks(meeting) = &mut self.meeting else {
            self.answer(id, &Answer::Refused("all ranks of this job are threads of one process".into()));
            return None;
        };
        match meeting.admit(hello, from, files) {
            Verdict::Refused(why) => {
                self.answer(id, &Answer::Refused(why));
                None
            }
            Verdict::Waits | Verdict::Complete => {
                self.visitors.get_mut(&id)?.role = ConnectionRole::Rank(rank);
                Some(JoinEvent::Came(rank))
            }
        }
    }

    /// Takes the node state of a process that runs all ranks. `pid` is that process as this one knows it.
    fn show(&mut self, size: usize, pid: u32, files: Vec<OwnedFd>) -> Result<(), String> {
        let Meeting::Host { size: expected, node_state, files: kept, .. } = &mut self.meeting else {
            return Err("each rank of this job is a process".into());
        };
        if size != *expected {
            return Err(format!("the job was started with {expected} ranks, and the program runs {size}"));
        }
        let mut files = files.into_iter();
        let file = files.next().ok_or("the node state did not come along")?;
        let told = |error: Error| error.to_string();
        let shown = NodeState::adopt(file, size).map_err(told)?;
        Rank::all(size).for_each(|rank| shown.rank_state(rank).set_pid(pid));
        *node_state = Some(Arc::new(shown));
        let files: Result<Vec<MemFile>> =
            files.map(|file| MemFile::adopt(file, layout::RANGE_BYTES)).collect();
        *kept = files.map_err(told)?;
        Ok(())
    }

    /// Answers a visitor who then leaves.
    pub fn answer(&mut self, id: u64, answer: &Answer) {
        if let Some(visitor) = self.visitors.get_mut(&id) {
            visitor.role = ConnectionRole::Asker;
            visitor.say(answer);
            if !visitor.has_outgoing() {
                self.close_connection(id);
            }
        }
    }

    /// Tells a visitor why he is not answered.
    pub fn refuse(&mut self, id: u64, why: &str) {
        self.answer(id, &Answer::Refused(why.to_string()));
    }

    fn close_connection(&mut self, id: u64) -> Option<JoinEvent> {
        let visitor = self.visitors.remove(&id)?;
        self.in_flight -= visitor.in_flight;
        let ConnectionRole::Rank(rank) = visitor.role else { return None };
        if let Meeting::Ranks(meeting) = &mut self.meeting {
            meeting.withdraw(rank);
        }
        Some(JoinEvent::Lost(rank))
    }

    /// Tells those who still wait for others that one died.
    pub fn broadcast_death(&mut self, rank: Rank, how: &str) {
        if matches!(&self.meeting, Meeting::Ranks(meeting) if !meeting.is_complete()) {
            for visitor in self.visitors.values_mut().filter(|v| matches!(v.role, ConnectionRole::Rank(_))) {
                visitor.say(&Answer::Dead { rank, how: how.to_string() });
            }
        }
    }

    /// Once all ranks are there: gives each of them the next part of what they all share, as far as the kernel
    /// allows at a time.
    pub fn send_memberships(&mut self) {
        self.retry = None;
        let Meeting::Ranks(meeting) = &mut self.meeting else { return };
        if !meeting.is_complete() || self.all_have_all {
            return;
        }
        let mut owed = 0;
        for visitor in self.visitors.values_mut().filter(|v| matches!(v.role, ConnectionRole::Rank(_))) {
            let Some(part) = visitor.part else { continue };
            owed += 1;
            if self.in_flight >= self.in_flight_max {
                break; // until some have arrived
            }
            if visitor.in_flight > 0 {
                continue;
            }
            let Some((answer, descriptors)) = meeting.part(part) else {
                visitor.part = None;
                owed -= 1;
                continue;
            };
            match visitor.hand(&answer, &descriptors) {
                Ok(()) => {
                    visitor.part = Some(part + 1);
                    visitor.in_flight = descriptors.len();
                    self.in_flight += descriptors.len();
                }
                Err(error) if is_full(&error) => self.retry = Some(Instant::now() + RETRY),
                // It has gone, which shows when it is read.
                Err(_) => {}
            }
        }
        self.all_have_all = owed == 0;
        if self.all_have_all && !self.keeps_files {
            meeting.release();
        }
    }
}

/// Whether the kernel takes no more for the moment.
fn is_full(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(TOO_MANY_IN_FLIGHT)
}
