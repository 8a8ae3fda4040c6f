//! The rank's side of joining a job: its requests to the rendezvous server, and the connection that
//! shows that it lives.

use super::Membership;
use super::settings::{LauncherSettings, ServerAddress, Settings};
use super::wire::{self, Greeting, Request, ServerReply};
use crate::base::{Cause, Error, Rank, Result};
use crate::node::node_state::{NodeState, RankStage};
use crate::os::membarrier::{self, FenceScope};
use crate::os::memfile::MemFile;
use crate::os::{process, socket};
use crate::segment::{MappedRange, layout};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// The name, in errors, of the rendezvous server of a job that was not started through PMI.
pub(super) const LAUNCHER: &str = "`tasuki run`";

/// The connection to the rendezvous server, open while the rank lives. If it closes before the rank
/// has left, the rank is dead, even if its process is not a child of the launcher.
#[derive(Debug)]
pub struct LauncherConnection {
    stream: UnixStream,
    node_state: Arc<NodeState>,
    rank: Rank,
    pid: u32,
}

impl LauncherConnection {
    /// Leaves the job in order: no other rank needs this one any more. Does nothing in a forked child.
    pub fn leave(self) {
        if std::process::id() == self.pid {
            self.node_state.rank_state(self.rank).set_stage(RankStage::Left);
        }
        drop(self.stream);
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub(super) fn node_state(&self) -> &Arc<NodeState> {
        &self.node_state
    }
}

/// Joins a job at its rendezvous server, which errors call `server_name`. Waits until all ranks have joined. Error: the
/// server refused the rank, or a rank has ended before it joined.
///
/// Costs a descriptor and a system call for each rank's memory file.
pub(super) fn join(
    settings: &Settings,
    launched: &LauncherSettings,
    server_name: &str,
) -> Result<(Membership, LauncherConnection)> {
    let (rank, size) = (launched.rank, launched.size);
    process::allow_descriptors(size as u64)?;
    let file = MappedRange::create_file()?;
    // Before Hello: as long as a fence would skip this process, no other rank may get an address of
    // its memory, and it may get none of theirs.
    let has_membarrier = membarrier::register(FenceScope::Registered, settings.disabled);
    let greeting = Greeting::own();
    let (layout, key, expected) = (layout::HASH, launched.server.key, size as u32);
    let hello = Request::Hello { greeting, layout, key, rank, size: expected, has_membarrier };
    let stream = send_request(&launched.server, &hello, &[file.as_fd()], server_name)?;
    let mut descriptors = receive_membership(&stream, size, server_name)?.into_iter();
    let node_state = descriptors.next().ok_or_else(|| broken("the node state is missing"))?;
    let node_state = Arc::new(NodeState::adopt(node_state, size)?);
    let mut files = Vec::with_capacity(size);
    for descriptor in descriptors {
        files.push(Arc::new(MemFile::adopt(descriptor, layout::RANGE_BYTES)?));
    }
    files[rank.index()] = file;
    let pid = std::process::id();
    node_state.rank_state(rank).set_stage(RankStage::Joined);
    let connection = LauncherConnection { stream, node_state: node_state.clone(), rank, pid };
    Ok((Membership { rank, node_state, files }, connection))
}

/// The most ranks of one process whose memory files are sent to the launcher.
const FILES_MAX: usize = 64;

/// Sends the node state of a job of threads to the launcher that started the process, so that it can report what the
/// ranks wait for; and their memory files, if there are at most 64, so that it can report what is in their queues.
/// Returns the connection, which must stay open while the job runs.
pub fn send_node_state(
    server: &ServerAddress,
    node_state: &NodeState,
    files: &[Arc<MemFile>],
) -> Result<UnixStream> {
    let size = node_state.size() as u32;
    let request = Request::Host { greeting: Greeting::own(), layout: layout::HASH, key: server.key, size };
    // All or none: the kernel limits how many descriptors of a user are in flight at a time.
    let files = if files.len() <= FILES_MAX { files } else { &[] };
    let all: Vec<BorrowedFd<'_>> = std::iter::once(node_state.file())
        .chain(files.iter().map(|file| &**file))
        .map(MemFile::as_fd)
        .collect();
    let stream = send_request(server, &request, &all, LAUNCHER)?;
    match receive_reply(&stream, LAUNCHER)? {
        (ServerReply::Welcome { .. }, _) => Ok(stream),
        (other, _) => Err(refusal_error(other)),
    }
}

/// Asks the job that listens at `socket` for its status. Returns a text. Waits at most `limit`.
pub fn ask(socket: &str, limit: Duration) -> Result<String> {
    let stream = connect_to_server(socket)?;
    let bounded = stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)));
    bounded.map_err(|error| Error::from_io("setsockopt", &error))?;
    socket::send(&stream, &Request::Ask(Greeting::own()).encode(), &[])?;
    match receive_reply(&stream, LAUNCHER)? {
        (ServerReply::Report(text), _) => Ok(text),
        (other, _) => Err(refusal_error(other)),
    }
}

/// Connects to a server of the same user, and sends a request.
fn send_request(
    server: &ServerAddress,
    request: &Request,
    files: &[BorrowedFd<'_>],
    server_name: &str,
) -> Result<UnixStream> {
    let stream = connect_to_server(&server.socket)
        .map_err(|error| error.note(format!("is {server_name} still running?")))?;
    socket::send(&stream, &request.encode(), files)?;
    Ok(stream)
}

fn connect_to_server(name: &str) -> Result<UnixStream> {
    let stream = socket::connect(name)?;
    let (theirs, ours) = (socket::credentials(&stream)?.user, process::effective_user());
    if theirs == ours {
        return Ok(stream);
    }
    Err(Cause::Join(format!("the job belongs to user {theirs}; this process acts as user {ours}")).into())
}

/// Receives all descriptors of the membership: the node state's, then the memory files'.
fn receive_membership(stream: &UnixStream, size: usize, server_name: &str) -> Result<Vec<OwnedFd>> {
    let mut all = Vec::with_capacity(size + 1);
    while all.len() < size + 1 {
        let (reply, descriptors) = receive_reply(stream, server_name)?;
        let expected = match reply {
            ServerReply::Welcome { size: all_ranks, descriptors }
                if all.is_empty() && all_ranks as usize == size =>
            {
                descriptors
            }
            ServerReply::More { descriptors } if !all.is_empty() => descriptors,
            other => return Err(refusal_error(other)),
        };
        if descriptors.len() != expected as usize || descriptors.is_empty() {
            return Err(broken("some of its descriptors are missing"));
        }
        all.extend(descriptors);
        socket::send(stream, &Request::Received.encode(), &[])?;
    }
    if all.len() == size + 1 { Ok(all) } else { Err(broken("there are too many descriptors")) }
}

/// Receives the server's next reply, with its descriptors.
fn receive_reply(stream: &UnixStream, server_name: &str) -> Result<(ServerReply, Vec<OwnedFd>)> {
    let gone = || Error::new(Cause::Join(format!("{server_name} closed the connection")));
    let mut length = [0; wire::LENGTH_BYTES];
    let descriptors = socket::receive(stream, &mut length)?.ok_or_else(gone)?;
    let length = wire::length(&length, wire::REPLY_BYTES_MAX)?.ok_or_else(gone)?;
    let mut message = vec![0; length];
    socket::receive(stream, &mut message)?.ok_or_else(gone)?;
    ServerReply::decode(&message).map(|reply| (reply, descriptors))
}

/// Returns the error for a reply other than the expected one.
fn refusal_error(reply: ServerReply) -> Error {
    match reply {
        ServerReply::Refused(why) => Cause::Join(why).into(),
        ServerReply::Dead { rank, how } => Cause::PeerDied { peer: rank, how, ago: Duration::ZERO }.into(),
        other => broken(&format!("{other:?} is not expected")),
    }
}

fn broken(what: &str) -> Error {
    Cause::Bug(format!("a reply of the rendezvous server is wrong: {what}")).into()
}

#[cfg(test)]
mod tests {
    use super::super::join;
    use super::super::rendezvous::{Rendezvous, Terms, Verdict};
    use super::super::settings::{Key, Start};
    use super::*;
    use crate::base::log::Level;
    use crate::os::disabled_features::DisabledFeatures;
    use std::thread;

    fn address(name: &str) -> ServerAddress {
        ServerAddress { socket: format!("tasuki-test-{name}-{}", std::process::id()), key: Key([3; 16]) }
    }

    fn settings(rank: usize, size: usize, server: &ServerAddress) -> Settings {
        let launched = LauncherSettings { rank: Rank(rank), size, server: server.clone() };
        Settings {
            abort_on_failure: false,
            call_timeout: None,
            send_buffer: None,
            log: Level::Warn,
            disabled: DisabledFeatures::default(),
            wake: None,
            own_memory_by_request: false,
            direct: true,
            direct_from: u64::MAX,
            costs: String::new(),
            collectives: String::new(),
            helper: crate::bootstrap::helper_setting::Helper::default(),
            any_source: crate::bootstrap::AnySourceSize::default(),
            trace: None,
            start: Start::Launched(launched),
        }
    }

    /// Reads one request as a launcher would.
    fn request(stream: &UnixStream) -> (Request, Vec<OwnedFd>) {
        let mut length = [0; wire::LENGTH_BYTES];
        let files = socket::receive(stream, &mut length).unwrap().unwrap();
        let mut message = vec![0; wire::length(&length, wire::REQUEST_BYTES_MAX).unwrap().unwrap()];
        socket::receive(stream, &mut message).unwrap().unwrap();
        (Request::decode(&message).unwrap(), files)
    }

    /// A launcher that admits `size` ranks in the order in which they connect, and keeps their connections.
    fn serve(server: &ServerAddress, size: usize) -> thread::JoinHandle<(Rendezvous, Vec<UnixStream>)> {
        let listener = socket::listen(&server.socket).unwrap();
        let terms = Terms { key: server.key, user: process::effective_user(), own: Greeting::own() };
        let mut rendezvous = Rendezvous::new(terms, size, None, size).unwrap();
        thread::spawn(move || {
            let mut connections = Vec::new();
            while !rendezvous.is_complete() {
                let (stream, _) = listener.accept().unwrap();
                let (hello, files) = request(&stream);
                match rendezvous.admit(hello, socket::credentials(&stream).unwrap(), files) {
                    Verdict::Refused(why) => {
                        socket::send(&stream, &ServerReply::Refused(why).encode(), &[]).unwrap()
                    }
                    _ => connections.push(stream),
                }
            }
            for stream in &connections {
                let (reply, descriptors) = rendezvous.part(0).unwrap();
                socket::send(stream, &reply.encode(), &descriptors).unwrap();
                assert_eq!(request(stream).0, Request::Received);
            }
            (rendezvous, connections)
        })
    }

    #[test]
    fn ranks_join_and_leave() {
        let server = address("join");
        let launcher = serve(&server, 3);
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                let settings = settings(rank, 3, &server);
                thread::spawn(move || join(&settings).unwrap())
            })
            .collect();
        let ranks: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        let (rendezvous, connections) = launcher.join().unwrap();
        for (index, (membership, connection)) in ranks.into_iter().enumerate() {
            assert_eq!((membership.rank.index(), membership.size(), membership.files.len()), (index, 3, 3));
            assert_eq!(rendezvous.node_state().rank_state(membership.rank).stage(), RankStage::Joined);
            assert_eq!(rendezvous.node_state().rank_state(membership.rank).pid(), std::process::id());
            connection.leave();
            assert_eq!(rendezvous.node_state().rank_state(membership.rank).stage(), RankStage::Left);
        }
        for stream in connections {
            assert!(socket::receive(&stream, &mut [0]).unwrap().is_none(), "the connection is closed");
        }
    }

    #[test]
    fn a_refusal_names_the_rank_and_the_reason() {
        let server = address("refuse");
        let launcher = serve(&server, 1);
        let error = join(&settings(5, 6, &server)).unwrap_err();
        let text =
            "rank 5: join: TASUKI_SIZE is 6 for rank 5, but the job has 1 ranks: let `tasuki run` set it";
        assert_eq!(error.to_string(), text);
        let (membership, _) = join(&settings(0, 1, &server)).unwrap();
        assert_eq!(membership.rank, Rank(0));
        launcher.join().unwrap();
    }

    #[test]
    fn joining_without_a_launcher_is_an_error() {
        let error = join(&settings(0, 1, &address("nobody"))).unwrap_err().to_string();
        assert!(error.contains("rank 0: join: connect") && error.contains("tasuki run"), "{error}");
    }
}
