//! The rendezvous server: ranks connect to it to join the job, and `tasuki ps` to get its status.
//! It runs in the launcher, or in rank 0.

use super::rendezvous::{Rendezvous, Terms, Verdict};
use super::server_connection::{ConnectionRole, ServerConnection};
use super::settings::{Key, ServerAddress as Address};
use super::wire::{Greeting, Request, ServerReply};
use crate::base::{Error, Rank, Result};
use crate::node::node_state::NodeState;
use crate::node::park::WakeMode;
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

/// The kernel limits the descriptors that a user has in flight to the process's limit of open
/// files. This server uses at most this many sixteenths of the limit; the rest is for the user's
/// other jobs.
const IN_FLIGHT_SIXTEENTHS: u64 = 12;
/// The time after which the server tries again, if other jobs have too many descriptors in flight.
const RETRY: Duration = Duration::from_millis(10);
/// The time after which the server tries again to accept a connection. The socket stays readable
/// until then, so a poll of it would return at once.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// ETOOMANYREFS, on both architectures.
const TOO_MANY_IN_FLIGHT: i32 = 109;

/// Returns the prefix of the socket names of a user's jobs.
pub fn prefix(user: u32) -> String {
    format!("tasuki-{user}-")
}

/// The processes that a server expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// This many ranks, each a process.
    Ranks(usize),
    /// One process that runs this many ranks as threads.
    Host(usize),
}

/// The state of joining.
#[derive(Debug)]
enum Joining {
    /// Each rank is a process, and joins by itself.
    Ranks(Rendezvous),
    /// One process runs all ranks. It may send their node state and memory files.
    Host { terms: Terms, size: usize, node_state: Option<Arc<NodeState>>, files: Vec<MemFile> },
}

/// The sources of events that a server waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerSource {
    /// The listening socket: a process connects.
    Listener,
    /// A connection can be read or written, or has ended.
    Connection(u64),
}

/// An event that the launcher, or rank 0, must handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinEvent {
    /// A rank has asked to join.
    Came(Rank),
    /// A rank's connection has ended.
    Lost(Rank),
    /// A process asks for the job's status, on the connection with this number.
    Asks(u64),
    /// A connection cannot be accepted: the error number, most often because this process has no free descriptors.
    /// Reported once; the server tries again until it succeeds.
    CannotAccept(i32),
}

/// A listening socket with its connections.
#[derive(Debug)]
pub struct RendezvousServer {
    address: Address,
    listener: UnixListener,
    joining: Joining,
    connections: BTreeMap<u64, ServerConnection>,
    /// The number of the next connection.
    next: u64,
    /// Descriptors sent whose arrival the ranks have not confirmed.
    in_flight: usize,
    in_flight_max: usize,
    retry: Option<Instant>,
    /// No connection is accepted before this time.
    accept_again: Option<Instant>,
    /// True if [`JoinEvent::CannotAccept`] was reported.
    has_reported: bool,
    has_sent_memberships: bool,
    keeps_files: bool,
}

impl RendezvousServer {
    /// Opens a server for a new job, with a random socket name that begins with `prefix`, and a random key. `wake` and
    /// `processors` decide the wake mode, as for [`Rendezvous::new`].
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
        let joining = match expected {
            Expected::Ranks(size) => Joining::Ranks(Rendezvous::new(terms, size, wake, processors)?),
            Expected::Host(size) => Joining::Host { terms, size, node_state: None, files: Vec::new() },
        };
        let in_flight_max = (process::descriptors_allowed() / 16).saturating_mul(IN_FLIGHT_SIXTEENTHS);
        Ok(RendezvousServer {
            address,
            listener,
            joining,
            connections: BTreeMap::new(),
            next: 0,
            in_flight: 0,
            in_flight_max: in_flight_max as usize,
            retry: None,
            accept_again: None,
            has_reported: false,
            has_sent_memberships: false,
            keeps_files: false,
        })
    }

    /// Returns the address, which ranks need to connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the job's short name.
    pub fn job(&self) -> &str {
        self.address.socket.rsplit('-').next().unwrap_or_default()
    }

    /// Returns the node state, if there is one already.
    pub fn node_state(&self) -> Option<&Arc<NodeState>> {
        match &self.joining {
            Joining::Ranks(rendezvous) => Some(rendezvous.node_state()),
            Joining::Host { node_state, .. } => node_state.as_ref(),
        }
    }

    /// Keeps the ranks' memory files open, one descriptor each, so that this process can read them.
    pub fn keep_files(&mut self) {
        self.keeps_files = true;
    }

    /// Returns the memory file of a rank, if it was kept.
    pub fn file(&self, rank: Rank) -> Option<&MemFile> {
        match &self.joining {
            Joining::Ranks(rendezvous) => rendezvous.file(rank).map(|file| &**file),
            Joining::Host { files, .. } => files.get(rank.index()),
        }
    }

    /// Returns true if `rank` has asked to join, and waits for other ranks.
    pub fn is_joining(&self, rank: Rank) -> bool {
        matches!(&self.joining, Joining::Ranks(rendezvous) if rendezvous.has(rank) && !rendezvous.is_complete())
    }

    /// Returns true if `rank` has asked to join and was admitted.
    pub fn has_come(&self, rank: Rank) -> bool {
        matches!(&self.joining, Joining::Ranks(rendezvous) if rendezvous.has(rank))
    }

    /// Returns true if all ranks have got the whole membership.
    pub fn has_sent_memberships(&self) -> bool {
        self.has_sent_memberships
    }

    /// Returns true if connected ranks wait for others that have not asked to join.
    pub fn is_awaited(&self) -> bool {
        self.connections
            .values()
            .any(|connection| matches!(connection.role, ConnectionRole::Rank(rank) if self.is_joining(rank)))
    }

    /// Adds the server's descriptors to a poll set. `source` converts a source to the caller's type.
    pub fn watch<'f, S: Copy>(&'f self, set: &mut PollSet<'f, S>, source: impl Fn(ServerSource) -> S) {
        if self.accept_pause().is_none() {
            set.read(source(ServerSource::Listener), self.listener.as_fd());
        }
        for (&id, connection) in &self.connections {
            set.read(source(ServerSource::Connection(id)), connection.descriptor());
            if connection.has_outgoing() {
                set.write(source(ServerSource::Connection(id)), connection.descriptor());
            }
        }
    }

    /// Handles a source that is ready. The caller must handle the events returned, and then call
    /// [`RendezvousServer::send_memberships`]: by then the code that ends ranks knows all ranks that have come.
    pub fn handle(&mut self, source: ServerSource) -> Vec<JoinEvent> {
        match source {
            ServerSource::Listener => self.accept().into_iter().collect(),
            ServerSource::Connection(id) => self.handle_connection(id),
        }
    }

    /// Returns the time when [`RendezvousServer::send_memberships`] must be called again, or the
    /// server be watched again.
    pub fn deadline(&self) -> Option<Instant> {
        [self.retry, self.accept_pause()].into_iter().flatten().min()
    }

    /// Returns the time until which no connection is accepted, if it has not passed.
    fn accept_pause(&self) -> Option<Instant> {
        self.accept_again.filter(|&when| when > Instant::now())
    }

    /// Accepts all pending connections. Returns the event to report if that fails.
    fn accept(&mut self) -> Option<JoinEvent> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    self.accept_again = Some(Instant::now() + ACCEPT_RETRY);
                    let is_first = !std::mem::replace(&mut self.has_reported, true);
                    return is_first.then(|| JoinEvent::CannotAccept(error.raw_os_error().unwrap_or(0)));
                }
            };
            let Ok(from) = socket::credentials(&stream) else { continue };
            let Ok(mut connection) = ServerConnection::new(stream, from) else { continue };
            if let Err(why) = self.terms().check_user(from) {
                connection.send(&ServerReply::Refused(why));
                continue;
            }
            self.connections.insert(self.next, connection);
            self.next += 1;
        }
    }

    fn terms(&self) -> &Terms {
        match &self.joining {
            Joining::Ranks(rendezvous) => rendezvous.terms(),
            Joining::Host { terms, .. } => terms,
        }
    }

    /// Handles a connection that is ready.
    fn handle_connection(&mut self, id: u64) -> Vec<JoinEvent> {
        let Some(connection) = self.connections.get_mut(&id) else { return Vec::new() };
        connection.write();
        let received = connection.receive();
        let requests = received.requests.into_iter();
        let mut events: Vec<JoinEvent> =
            requests.filter_map(|(request, files)| self.handle_request(id, request, files)).collect();
        let is_answered = |c: &ServerConnection| c.role == ConnectionRole::OneReply && !c.has_outgoing();
        let answered = self.connections.get(&id).is_some_and(is_answered);
        if received.ended || (answered && events.is_empty()) {
            events.extend(self.close_connection(id));
        }
        events
    }

    fn handle_request(&mut self, id: u64, request: Request, files: Vec<OwnedFd>) -> Option<JoinEvent> {
        match request {
            Request::Hello { rank, .. } => self.handle_hello(id, rank, request, files),
            Request::Host { ref greeting, layout, key, size } => {
                let from = self.connections.get(&id)?.from;
                let checked = self.terms().check(greeting, layout, key, from);
                let adopted = checked.and_then(|()| self.adopt_host(size as usize, from.pid, files));
                let reply = match adopted {
                    Ok(()) => ServerReply::Welcome { size, descriptors: 0 },
                    Err(why) => ServerReply::Refused(why),
                };
                let connection = self.connections.get_mut(&id)?;
                connection.role = ConnectionRole::Host;
                connection.send(&reply);
                None
            }
            Request::Received => {
                let connection = self.connections.get_mut(&id)?;
                self.in_flight -= connection.in_flight;
                connection.in_flight = 0;
                None
            }
            Request::Ask(_) => {
                self.connections.get_mut(&id)?.role = ConnectionRole::OneReply;
                Some(JoinEvent::Asks(id))
            }
            Request::OtherVersion(greeting) => {
                let why = self.terms().mismatch(&greeting, "versions");
                self.reply(id, &ServerReply::Refused(why));
                None
            }
        }
    }

    fn handle_hello(
        &mut self,
        id: u64,
        rank: Rank,
        hello: Request,
        files: Vec<OwnedFd>,
    ) -> Option<JoinEvent> {
        let from = self.connections.get(&id)?.from;
        let Joining::Ranks(rendezvous) = &mut self.joining else {
            self.reply(id, &ServerReply::Refused("all ranks of this job are threads of one process".into()));
            return None;
        };
        match rendezvous.admit(hello, from, files) {
            Verdict::Refused(why) => {
                self.reply(id, &ServerReply::Refused(why));
                None
            }
            Verdict::Waits | Verdict::Complete => {
                self.connections.get_mut(&id)?.role = ConnectionRole::Rank(rank);
                Some(JoinEvent::Came(rank))
            }
        }
    }

    /// Adopts the node state and the memory files of a process that runs all ranks. `pid` is its id
    /// in this process's PID namespace.
    fn adopt_host(&mut self, size: usize, pid: u32, files: Vec<OwnedFd>) -> Result<(), String> {
        let Joining::Host { size: expected, node_state, files: kept, .. } = &mut self.joining else {
            return Err("each rank of this job is a process".into());
        };
        if size != *expected {
            return Err(format!("the job was started with {expected} ranks, but the program runs {size}"));
        }
        let mut files = files.into_iter();
        let file = files.next().ok_or("the request came without the node state")?;
        let text = |error: Error| error.to_string();
        let adopted = NodeState::adopt(file, size).map_err(text)?;
        Rank::all(size).for_each(|rank| adopted.rank_state(rank).set_pid(pid));
        *node_state = Some(Arc::new(adopted));
        let files: Result<Vec<MemFile>> =
            files.map(|file| MemFile::adopt(file, layout::RANGE_BYTES)).collect();
        *kept = files.map_err(text)?;
        Ok(())
    }

    /// Sends a reply on a connection, and closes it then.
    pub fn reply(&mut self, id: u64, reply: &ServerReply) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.role = ConnectionRole::OneReply;
            connection.send(reply);
            if !connection.has_outgoing() {
                self.close_connection(id);
            }
        }
    }

    /// Refuses a request with a reason, and closes the connection.
    pub fn refuse(&mut self, id: u64, why: &str) {
        self.reply(id, &ServerReply::Refused(why.to_string()));
    }

    fn close_connection(&mut self, id: u64) -> Option<JoinEvent> {
        let connection = self.connections.remove(&id)?;
        self.in_flight -= connection.in_flight;
        let ConnectionRole::Rank(rank) = connection.role else { return None };
        if let Joining::Ranks(rendezvous) = &mut self.joining {
            rendezvous.withdraw(rank);
        }
        Some(JoinEvent::Lost(rank))
    }

    /// Notifies the ranks that still wait for others that one has died.
    pub fn broadcast_death(&mut self, rank: Rank, how: &str) {
        if matches!(&self.joining, Joining::Ranks(rendezvous) if !rendezvous.is_complete()) {
            for connection in
                self.connections.values_mut().filter(|v| matches!(v.role, ConnectionRole::Rank(_)))
            {
                connection.send(&ServerReply::Dead { rank, how: how.to_string() });
            }
        }
    }

    /// Sends each rank the next part of the membership, once all ranks have asked to join, as far
    /// as the kernel allows at a time.
    pub fn send_memberships(&mut self) {
        self.retry = None;
        let Joining::Ranks(rendezvous) = &mut self.joining else { return };
        if !rendezvous.is_complete() || self.has_sent_memberships {
            return;
        }
        let mut unfinished = 0;
        for connection in self.connections.values_mut().filter(|v| matches!(v.role, ConnectionRole::Rank(_)))
        {
            let Some(part) = connection.part else { continue };
            unfinished += 1;
            if self.in_flight >= self.in_flight_max {
                break; // until some descriptors have arrived
            }
            if connection.in_flight > 0 {
                continue;
            }
            let Some((reply, descriptors)) = rendezvous.part(part) else {
                connection.part = None;
                unfinished -= 1;
                continue;
            };
            match connection.send_with_descriptors(&reply, &descriptors) {
                Ok(()) => {
                    connection.part = Some(part + 1);
                    connection.in_flight = descriptors.len();
                    self.in_flight += descriptors.len();
                }
                Err(error) if is_full(&error) => self.retry = Some(Instant::now() + RETRY),
                // The connection has ended: reading it reports that.
                Err(_) => {}
            }
        }
        self.has_sent_memberships = unfinished == 0;
        if self.has_sent_memberships && !self.keeps_files {
            rendezvous.release();
        }
    }
}

/// Returns true if the kernel accepts no more descriptors at the moment.
fn is_full(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(TOO_MANY_IN_FLIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sources that are ready, without a wait.
    fn ready(server: &RendezvousServer) -> Vec<ServerSource> {
        let mut set = PollSet::default();
        server.watch(&mut set, |source| source);
        set.wait(Some(Instant::now()))
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens sockets and memory files")]
    fn a_pause_of_accepting_hides_the_listener_and_has_a_deadline() {
        let mut server = RendezvousServer::open("tasuki-test-", Expected::Ranks(1), None, 1).unwrap();
        let _connects = socket::connect(&server.address.socket).unwrap();
        assert_eq!((ready(&server), server.deadline()), (vec![ServerSource::Listener], None));
        let later = Instant::now() + Duration::from_secs(3600);
        server.accept_again = Some(later);
        assert_eq!(ready(&server), [], "a poll would return at once, again and again");
        assert_eq!(server.deadline(), Some(later), "nothing else wakes the server");
        server.accept_again = Some(Instant::now());
        assert_eq!((ready(&server), server.deadline()), (vec![ServerSource::Listener], None));
    }
}
