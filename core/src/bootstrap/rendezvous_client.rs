//! What a rank says at the door of its job, and the line from there that shows that it lives.

use super::Membership;
use super::settings::{LauncherSettings, ServerAddress, Settings};
use super::wire::{self, Answer, Greeting, Request};
use crate::base::{Cause, Error, Rank, Result};
use crate::engine::node_state::{NodeState, Stage};
use crate::os::membarrier::{self, FenceScope};
use crate::os::memfile::MemFile;
use crate::os::{process, socket};
use crate::segment::{MappedRange, layout};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Who keeps the door of a job that was not started through PMI.
pub(super) const LAUNCHER: &str = "`tasuki run`";

/// The line to whoever brought the ranks together, open while the rank lives. A rank whose line closes before it has
/// left is dead, even where its process is not a child of the launcher.
#[derive(Debug)]
pub struct LauncherConnection {
    stream: UnixStream,
    node_state: Arc<NodeState>,
    rank: Rank,
    pid: u32,
}

impl LauncherConnection {
    /// The rank has left in order: nobody needs it any more. In a forked child it does nothing.
    pub fn leave(self) {
        if std::process::id() == self.pid {
            self.node_state.rank_state(self.rank).set_stage(Stage::Left);
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

/// Comes to the door of a job. Waits until all its ranks are there; `keeper`, who keeps the door, ends the wait with
/// an error when one of them cannot come any more.
///
/// Costs one system call a rank for its memory file, and a descriptor a rank.
pub(super) fn enter(
    settings: &Settings,
    launched: &LauncherSettings,
    keeper: &str,
) -> Result<(Membership, LauncherConnection)> {
    let (rank, size) = (launched.rank, launched.size);
    process::allow_descriptors(size as u64)?;
    let file = MappedRange::create_file()?;
    // Before Hello: nobody may get an address of ours, nor we of others, while a fence would skip us.
    let barrier = membarrier::register(FenceScope::Registered, settings.denied);
    let greeting = Greeting::own();
    let (layout, key, told) = (layout::HASH, launched.door.key, size as u32);
    let hello = Request::Hello { greeting, layout, key, rank, size: told, barrier };
    let stream = call(&launched.door, &hello, &[file.as_fd()], keeper)?;
    let mut descriptors = welcome(&stream, size, keeper)?.into_iter();
    let node_state = descriptors.next().ok_or_else(|| broken("the node state is missing"))?;
    let node_state = Arc::new(NodeState::adopt(node_state, size)?);
    let mut files = Vec::with_capacity(size);
    for descriptor in descriptors {
        files.push(Arc::new(MemFile::adopt(descriptor, layout::RANGE_BYTES)?));
    }
    files[rank.index()] = file;
    let pid = std::process::id();
    node_state.rank_state(rank).set_stage(Stage::Joined);
    let line = LauncherConnection { stream, node_state: node_state.clone(), rank, pid };
    Ok((Membership { rank, node_state, files }, line))
}

/// Most ranks of one process whose memory files its launcher is shown.
const SHOWN_MAX: usize = 64;

/// Shows the node state of a job of threads to the launcher that started the process, so that it can say what the ranks
/// wait for, and their memory files, if there are some and not more than 64, for what is in their queues. The answer
/// stays open while the job runs.
pub fn send_node_state(
    door: &ServerAddress,
    node_state: &NodeState,
    files: &[Arc<MemFile>],
) -> Result<UnixStream> {
    let size = node_state.size() as u32;
    let request = Request::Host { greeting: Greeting::own(), layout: layout::HASH, key: door.key, size };
    // All or none: the kernel lets a user have so many on their way at a time.
    let files = if files.len() <= SHOWN_MAX { files } else { &[] };
    let all: Vec<BorrowedFd<'_>> = std::iter::once(node_state.file())
        .chain(files.iter().map(|file| &**file))
        .map(MemFile::as_fd)
        .collect();
    let stream = call(door, &request, &all, LAUNCHER)?;
    match answer(&stream, LAUNCHER)? {
        (Answer::Welcome { .. }, _) => Ok(stream),
        (other, _) => Err(refusal_error(other)),
    }
}

/// Asks the job behind `socket` how it is. The answer is a text; `limit` bounds the wait for it.
pub fn ask(socket: &str, limit: Duration) -> Result<String> {
    let stream = connect_to_server(socket)?;
    let bounded = stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)));
    bounded.map_err(|error| Error::from_io("setsockopt", &error))?;
    socket::send(&stream, &Request::Ask(Greeting::own()).encode(), &[])?;
    match answer(&stream, LAUNCHER)? {
        (Answer::Report(text), _) => Ok(text),
        (other, _) => Err(refusal_error(other)),
    }
}

/// Connects to a door, if it is of the same user, and says something.
fn call(
    door: &ServerAddress,
    request: &Request,
    files: &[BorrowedFd<'_>],
    keeper: &str,
) -> Result<UnixStream> {
    let stream =
        connect_to_server(&door.socket).map_err(|error| error.note(format!("is {keeper} still there?")))?;
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

/// All descriptors that come with the welcome: the node state's, then the memory files'.
fn welcome(stream: &UnixStream, size: usize, keeper: &str) -> Result<Vec<OwnedFd>> {
    let mut all = Vec::with_capacity(size + 1);
    while all.len() < size + 1 {
        let (said, descriptors) = answer(stream, keeper)?;
        let promised = match said {
            Answer::Welcome { size: said, descriptors } if all.is_empty() && said as usize == size => {
                descriptors
            }
            Answer::More { descriptors } if !all.is_empty() => descriptors,
            other => return Err(refusal_error(other)),
        };
        if descriptors.len() != promised as usize || descriptors.is_empty() {
            return Err(broken("descriptors were lost on the way"));
        }
        all.extend(descriptors);
        socket::send(stream, &Request::Taken.encode(), &[])?;
    }
    if all.len() == size + 1 { Ok(all) } else { Err(broken("there are too many descriptors")) }
}

/// The door's next message, with its descriptors.
fn answer(stream: &UnixStream, keeper: &str) -> Result<(Answer, Vec<OwnedFd>)> {
    let gone = || Error::new(Cause::Join(format!("{keeper} hung up")));
    let mut length = [0; wire::LENGTH_BYTES];
    let descriptors = socket::receive(stream, &mut length)?.ok_or_else(gone)?;
    let length = wire::length(&length, wire::ANSWER_BYTES_MAX)?.ok_or_else(gone)?;
    let mut message = vec![0; length];
    socket::receive(stream, &mut message)?.ok_or_else(gone)?;
    Answer::decode(&message).map(|answer| (answer, descriptors))
}

/// The error behind an answer that is not the wished one.
fn refusal_error(answer: Answer) -> Error {
    match answer {
        Answer::Refused(why) => Cause::Join(why).into(),
        Answer::Dead { rank, how } => Cause::PeerDied { peer: rank, how, ago: Duration::ZERO }.into(),
        other => broken(&format!("{other:?} was not expected")),
    }
}

fn broken(what: &str) -> Error {
    Cause::Bug(format!("an answer at the job's door is wrong: {what}")).into()
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

    fn door(name: &str) -> ServerAddress {
        ServerAddress { socket: format!("tasuki-test-{name}-{}", std::process::id()), key: Key([3; 16]) }
    }

    fn settings(rank: u32, size: usize, door: &ServerAddress) -> Settings {
        let launched = LauncherSettings { rank: Rank(rank), size, door: door.clone() };
        Settings {
            log: Level::Warn,
            denied: DisabledFeatures::default(),
            wake: None,
            own_memory_by_request: false,
            direct: true,
            direct_from: u64::MAX,
            costs: String::new(),
            collectives: String::new(),
            helper: crate::bootstrap::helper_setting::Helper::default(),
            trace: None,
            start: Start::LauncherSettings(launched),
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

    /// A launcher that admits `size` ranks in the order in which they come, and keeps their lines.
    fn serve(door: &ServerAddress, size: usize) -> thread::JoinHandle<(Rendezvous, Vec<UnixStream>)> {
        let listener = socket::listen(&door.socket).unwrap();
        let terms = Terms { key: door.key, user: process::effective_user(), own: Greeting::own() };
        let mut meeting = Rendezvous::new(terms, size, None, size).unwrap();
        thread::spawn(move || {
            let mut lines = Vec::new();
            while !meeting.is_complete() {
                let (line, _) = listener.accept().unwrap();
                let (hello, files) = request(&line);
                match meeting.admit(hello, socket::credentials(&line).unwrap(), files) {
                    Verdict::Refused(why) => {
                        socket::send(&line, &Answer::Refused(why).encode(), &[]).unwrap()
                    }
                    _ => lines.push(line),
                }
            }
            for line in &lines {
                let (answer, descriptors) = meeting.part(0).unwrap();
                socket::send(line, &answer.encode(), &descriptors).unwrap();
                assert_eq!(request(line).0, Request::Taken);
            }
            (meeting, lines)
        })
    }

    #[test]
    fn ranks_meet_and_leave() {
        let door = door("meet");
        let launcher = serve(&door, 3);
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                let settings = settings(rank, 3, &door);
                thread::spawn(move || join(&settings).unwrap())
            })
            .collect();
        let ranks: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        let (meeting, lines) = launcher.join().unwrap();
        for (index, (membership, connection)) in ranks.into_iter().enumerate() {
            assert_eq!((membership.rank.index(), membership.size(), membership.files.len()), (index, 3, 3));
            assert_eq!(meeting.node_state().rank_state(membership.rank).stage(), Stage::Joined);
            assert_eq!(meeting.node_state().rank_state(membership.rank).pid(), std::process::id());
            connection.leave();
            assert_eq!(meeting.node_state().rank_state(membership.rank).stage(), Stage::Left);
        }
        for line in lines {
            assert!(socket::receive(&line, &mut [0]).unwrap().is_none(), "the line is closed");
        }
    }

    #[test]
    fn a_refusal_names_the_rank_and_why() {
        let door = door("refuse");
        let launcher = serve(&door, 1);
        let error = join(&settings(5, 6, &door)).unwrap_err();
        let text = "rank 5: join: TASUKI_SIZE is 6 for rank 5, and the job has 1: leave that variable to `tasuki run`";
        assert_eq!(error.to_string(), text);
        let (membership, _) = join(&settings(0, 1, &door)).unwrap();
        assert_eq!(membership.rank, Rank(0));
        launcher.join().unwrap();
    }

    #[test]
    fn without_a_launcher_there_is_an_error() {
        let error = join(&settings(0, 1, &door("nobody"))).unwrap_err().to_string();
        assert!(error.contains("rank 0: join: connect") && error.contains("tasuki run"), "{error}");
    }
}
