//! How ranks that know only a launcher come to know each other: who may join, and what all get once all are there.
//!
//! No sockets and no clocks in here: the launcher moves the messages and is told what to answer.

use super::settings::Key;
use super::wire::{Answer, Greeting, Request};
use crate::base::{Rank, Result};
use crate::engine::node_state::NodeState;
use crate::engine::park::WakeMode;
use crate::os::memfile::MemFile;
use crate::os::socket::{Credentials, DESCRIPTORS_A_MESSAGE};
use crate::segment::layout;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What a process must show before anything else is looked at.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The job's secret.
    pub key: Key,
    /// Who may join.
    pub user: u32,
    /// The launcher's own name and version.
    pub own: Greeting,
}

impl Terms {
    /// Whether whoever is at the other end acts as the user whose job this is.
    pub fn check_user(&self, from: Credentials) -> Result<(), String> {
        if from.user == self.user {
            return Ok(());
        }
        Err(format!("this is a job of user {}, and user {} may not join it", self.user, from.user))
    }

    /// What to tell somebody who speaks another version.
    pub fn mismatch(&self, other: &Greeting, what: &str) -> String {
        format!(
            "the {what} of program and launcher differ: {} is of Tasuki {} (protocol {}), {} is of Tasuki {} \
             (protocol {}); build both from the same version",
            other.executable,
            other.version,
            other.protocol,
            self.own.executable,
            self.own.version,
            self.own.protocol
        )
    }

    /// Whether a process may join at all.
    pub fn check(&self, greeting: &Greeting, hash: u64, key: Key, from: Credentials) -> Result<(), String> {
        self.check_user(from)?;
        if key != self.key {
            return Err(format!("process {} shows another job's key", from.pid));
        }
        if greeting.protocol != layout::PROTOCOL {
            return Err(self.mismatch(greeting, "versions"));
        }
        if hash != layout::HASH {
            return Err(self.mismatch(greeting, "memory layouts"));
        }
        Ok(())
    }
}

/// What to do with a request to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits until all are there.
    Waits,
    /// It was the last: all get their parts now.
    Complete,
    /// It gets this answer and no more.
    Refused(String),
}

/// Who has joined as a rank.
#[derive(Clone, Debug)]
struct Applicant {
    pid: u32,
    executable: String,
    file: Option<Arc<MemFile>>,
    barrier: bool,
}

/// The ranks of one job on their way to each other.
#[derive(Debug)]
pub struct Rendezvous {
    terms: Terms,
    node_state: Arc<NodeState>,
    seats: Vec<Option<Applicant>>,
    wake: Option<WakeMode>,
    processors: usize,
    complete: bool,
}

impl Rendezvous {
    /// Waits for `size` ranks. `wake` is what the user asked for; otherwise the mode follows from what the ranks
    /// can do and whether each of them finds one of the `processors` for itself.
    pub fn new(terms: Terms, size: usize, wake: Option<WakeMode>, processors: usize) -> Result<Rendezvous> {
        let node_state = Arc::new(NodeState::create(size)?);
        Ok(Rendezvous { terms, node_state, seats: vec![None; size], wake, processors, complete: false })
    }

    /// The node state that all will share.
    pub fn node_state(&self) -> &Arc<NodeState> {
        &self.node_state
    }

    /// What a process must show.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether all are there.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether that rank has asked to join.
    pub fn has(&self, rank: Rank) -> bool {
        self.seats.get(rank.index()).is_some_and(Option::is_some)
    }

    /// Looks at a [`Request::Hello`] that came with `files`.
    pub fn admit(&mut self, hello: Request, from: Credentials, files: Vec<OwnedFd>) -> Verdict {
        match self.applicant(hello, from, files) {
            Err(why) => Verdict::Refused(why),
            Ok((rank, applicant)) => {
                self.node_state.rank_state(rank).set_pid(applicant.pid);
                self.seats[rank.index()] = Some(applicant);
                if self.seats.iter().any(Option::is_none) {
                    return Verdict::Waits;
                }
                match self.decide_wake_mode() {
                    Err(why) => Verdict::Refused(why),
                    Ok(mode) => {
                        self.node_state.set_wake_mode(mode);
                        self.complete = true;
                        Verdict::Complete
                    }
                }
            }
        }
    }

    fn applicant(
        &self,
        hello: Request,
        from: Credentials,
        files: Vec<OwnedFd>,
    ) -> Result<(Rank, Applicant), String> {
        let Request::Hello { greeting, layout, key, rank, size: told, barrier } = hello else {
            return Err("only a rank can join".into());
        };
        self.terms.check(&greeting, layout, key, from)?;
        let size = self.seats.len();
        if told as usize != size {
            return Err(format!(
                "TASUKI_SIZE is {told} for rank {rank}, and the job has {size}: leave that variable to `tasuki run`"
            ));
        }
        let Some(rank_state) = self.seats.get(rank.index()) else {
            return Err(format!("there is no rank {rank} in this job of {size}"));
        };
        if let Some(Applicant { pid, executable, .. }) = rank_state {
            if *pid == from.pid {
                return Err(format!(
                    "this process has joined as rank {rank} already: tasuki::main is called once; jobs inside a \
                     process are started by tasuki::local"
                ));
            }
            return Err(format!(
                "rank {rank} has joined already, as process {pid} ({executable}): only one program can be a rank. \
                 Unset TASUKI_RANK, TASUKI_SIZE, TASUKI_JOB_SOCKET and TASUKI_KEY for a program that a rank starts"
            ));
        }
        let [file]: [OwnedFd; 1] =
            files.try_into().map_err(|_| "its memory file did not come along".to_string())?;
        let file = MemFile::adopt(file, layout::RANGE_BYTES).map_err(|error| error.to_string())?;
        let applicant =
            Applicant { pid: from.pid, executable: greeting.executable, file: Some(Arc::new(file)), barrier };
        Ok((rank, applicant))
    }

    fn decide_wake_mode(&self) -> Result<WakeMode, String> {
        let cannot = self
            .seats
            .iter()
            .position(|rank_state| rank_state.as_ref().is_some_and(|rank_state| !rank_state.barrier));
        match (self.wake, cannot) {
            (Some(WakeMode::Membarrier), Some(rank)) => Err(format!(
                "TASUKI_WAKE=membarrier cannot be had: rank {rank} may not use membarrier(2) here; unset it"
            )),
            (Some(mode), _) => Ok(mode),
            (None, None) if self.seats.len() <= self.processors => Ok(WakeMode::Membarrier),
            (None, _) => Ok(WakeMode::Fence),
        }
    }

    /// A rank that waits has gone away.
    pub fn withdraw(&mut self, rank: Rank) {
        if !self.complete {
            self.seats[rank.index()] = None;
        }
    }

    /// Part `index` of what each rank gets, with its descriptors: the node state, then the files by rank. `None` after
    /// the last part, or before all are there.
    pub fn part(&self, index: usize) -> Option<(Answer, Vec<BorrowedFd<'_>>)> {
        if !self.complete {
            return None;
        }
        let files = self
            .seats
            .iter()
            .flatten()
            .filter_map(|rank_state| rank_state.file.as_ref())
            .map(|file| file.as_fd());
        let all = std::iter::once(self.node_state.file().as_fd()).chain(files);
        let part: Vec<_> = all.skip(index * DESCRIPTORS_A_MESSAGE).take(DESCRIPTORS_A_MESSAGE).collect();
        let (size, descriptors) = (self.seats.len() as u32, part.len() as u32);
        match (index, descriptors) {
            (0, _) => Some((Answer::Welcome { size, descriptors }, part)),
            (_, 0) => None,
            _ => Some((Answer::More { descriptors }, part)),
        }
    }

    /// The memory file of a rank that has come, until they are released.
    pub fn file(&self, rank: Rank) -> Option<&Arc<MemFile>> {
        self.seats.get(rank.index())?.as_ref()?.file.as_ref()
    }

    /// Everybody has all parts: whoever handed them out needs the files no more.
    pub fn release(&mut self) {
        self.seats.iter_mut().flatten().for_each(|rank_state| rank_state.file = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::MappedRange;

    const USER: u32 = 1000;
    const KEY: Key = Key([1; 16]);

    fn greeting(name: &str) -> Greeting {
        Greeting { protocol: layout::PROTOCOL, version: "0.1.0".into(), executable: name.into() }
    }

    fn rendezvous(size: usize, wake: Option<WakeMode>) -> Rendezvous {
        let terms = Terms { key: KEY, user: USER, own: greeting("/bin/tasuki") };
        Rendezvous::new(terms, size, wake, 2).unwrap()
    }

    fn hello_of(size: u32, rank: u32, barrier: bool) -> Request {
        Request::Hello {
            greeting: greeting("/bin/app"),
            layout: layout::HASH,
            key: KEY,
            rank: Rank(rank),
            size,
            barrier,
        }
    }

    /// For a job of two.
    fn hello(rank: u32, barrier: bool) -> Request {
        hello_of(2, rank, barrier)
    }

    fn files() -> Vec<OwnedFd> {
        vec![MappedRange::create_file().unwrap().as_fd().try_clone_to_owned().unwrap()]
    }

    fn come(to: &mut Rendezvous, hello: Request) -> Verdict {
        to.admit(hello, Credentials { pid: 5, user: USER }, files())
    }

    fn refusal(verdict: Verdict) -> String {
        let Verdict::Refused(why) = verdict else { panic!("{verdict:?}") };
        why
    }

    #[test]
    fn all_get_everything_once_all_are_there() {
        let mut meeting = rendezvous(2, None);
        assert_eq!(come(&mut meeting, hello(1, true)), Verdict::Waits);
        assert!(meeting.part(0).is_none() && meeting.has(Rank(1)) && !meeting.has(Rank(0)));
        assert_eq!(come(&mut meeting, hello(0, true)), Verdict::Complete);
        let (answer, descriptors) = meeting.part(0).unwrap();
        assert_eq!((answer, descriptors.len()), (Answer::Welcome { size: 2, descriptors: 3 }, 3));
        assert!(meeting.part(1).is_none());
        assert_eq!(meeting.node_state().wake_mode(), WakeMode::Membarrier);
    }

    #[test]
    fn many_ranks_come_in_parts() {
        let size = DESCRIPTORS_A_MESSAGE + 1;
        let mut meeting = rendezvous(size, None);
        for rank in 0..size as u32 {
            come(&mut meeting, hello_of(size as u32, rank, true));
        }
        let parts: Vec<_> =
            (0..).map_while(|part| meeting.part(part).map(|(_, files)| files.len())).collect();
        assert_eq!(parts, [DESCRIPTORS_A_MESSAGE, 2]);
        assert_eq!(meeting.node_state().wake_mode(), WakeMode::Fence, "there are two processors");
    }

    #[test]
    fn one_rank_that_cannot_decides_the_wake_mode_for_all() {
        let mut meeting = rendezvous(2, None);
        come(&mut meeting, hello(0, true));
        assert_eq!(come(&mut meeting, hello(1, false)), Verdict::Complete);
        assert_eq!(meeting.node_state().wake_mode(), WakeMode::Fence);
        let mut meeting = rendezvous(2, Some(WakeMode::Membarrier));
        come(&mut meeting, hello(0, true));
        assert!(refusal(come(&mut meeting, hello(1, false))).contains("rank 1 may not use membarrier"));
    }

    #[test]
    fn strangers_are_refused_with_the_reason() {
        let mut meeting = rendezvous(2, None);
        let other = meeting.admit(hello(0, true), Credentials { pid: 5, user: 7 }, files());
        assert_eq!(refusal(other), "this is a job of user 1000, and user 7 may not join it");
        assert!(refusal(come(&mut meeting, hello(2, true))).contains("no rank 2"));
        let wrong = refusal(come(&mut meeting, hello_of(3, 1, true)));
        assert!(wrong.contains("TASUKI_SIZE is 3 for rank 1, and the job has 2"), "{wrong}");
        come(&mut meeting, hello(1, true));
        assert!(
            refusal(come(&mut meeting, hello(1, true))).contains("this process has joined as rank 1 already")
        );
        let second = meeting.admit(hello(1, true), Credentials { pid: 6, user: USER }, files());
        assert!(refusal(second).contains("joined already, as process 5 (/bin/app)"));
        let without = meeting.admit(hello(0, true), Credentials { pid: 5, user: USER }, vec![]);
        assert!(refusal(without).contains("memory file"));
        let wrong = std::fs::File::open("/proc/self/exe").unwrap();
        let unsealed = meeting.admit(hello(0, true), Credentials { pid: 5, user: USER }, vec![wrong.into()]);
        assert!(refusal(unsealed).contains("not a sealed memory file"));
    }

    #[test]
    fn another_layout_names_both_versions_and_files() {
        let mut meeting = rendezvous(2, None);
        let old = Greeting { version: "0.0.9".into(), ..greeting("/bin/old") };
        let hello = Request::Hello {
            greeting: old,
            layout: layout::HASH + 1,
            key: KEY,
            rank: Rank(0),
            size: 2,
            barrier: true,
        };
        let why = refusal(come(&mut meeting, hello));
        for part in ["/bin/old", "0.0.9", "/bin/tasuki", "0.1.0", "layouts"] {
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn another_job_s_key_is_refused() {
        let mut meeting = rendezvous(1, None);
        let greeting = greeting("/bin/app");
        let hello = Request::Hello {
            greeting,
            layout: layout::HASH,
            key: Key([2; 16]),
            rank: Rank(0),
            size: 1,
            barrier: true,
        };
        assert!(refusal(come(&mut meeting, hello)).contains("another job's key"));
    }
}
