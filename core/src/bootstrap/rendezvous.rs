//! The rendezvous of the ranks of a job: which processes may join, and what each rank gets once all have joined.
//!
//! This code uses no sockets and no clocks: the server receives the requests, and sends the replies that it returns.

use super::settings::Key;
use super::wire::{Greeting, Request, ServerReply};
use crate::base::{Rank, Result};
use crate::node::node_state::NodeState;
use crate::node::park::WakeMode;
use crate::os::memfile::MemFile;
use crate::os::socket::{Credentials, DESCRIPTORS_A_MESSAGE};
use crate::segment::layout;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The conditions for joining.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The job's key.
    pub key: Key,
    /// The user whose processes may join.
    pub user: u32,
    /// The server's own executable and version.
    pub own: Greeting,
}

impl Terms {
    /// Checks that the process at the other end acts as the job's user.
    pub fn check_user(&self, from: Credentials) -> Result<(), String> {
        if from.user == self.user {
            return Ok(());
        }
        Err(format!("the job belongs to user {}; user {} may not join it", self.user, from.user))
    }

    /// Returns the refusal of a process of another version.
    pub fn mismatch(&self, other: &Greeting, what: &str) -> String {
        format!(
            "the {what} of program and launcher differ: {} has Tasuki {} (protocol {}), {} has Tasuki {} \
             (protocol {}); build both from the same version",
            other.executable,
            other.version,
            other.protocol,
            self.own.executable,
            self.own.version,
            self.own.protocol
        )
    }

    /// Checks that a process may join: user, key, version and memory layout.
    pub fn check(&self, greeting: &Greeting, hash: u64, key: Key, from: Credentials) -> Result<(), String> {
        self.check_user(from)?;
        if key != self.key {
            return Err(format!("process {} has another job's key", from.pid));
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

/// The outcome of a request to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The rank waits until all have asked to join.
    Waits,
    /// The rank was the last: now all get the membership.
    Complete,
    /// The request is refused, for this reason.
    Refused(String),
}

/// A process that has asked to join as a rank.
#[derive(Clone, Debug)]
struct Applicant {
    pid: u32,
    executable: String,
    file: Option<Arc<MemFile>>,
    /// True if it has registered for fences by membarrier.
    has_membarrier: bool,
}

/// The ranks of one job until all have joined.
#[derive(Debug)]
pub struct Rendezvous {
    terms: Terms,
    node_state: Arc<NodeState>,
    applicants: Vec<Option<Applicant>>,
    wake: Option<WakeMode>,
    processors: usize,
    complete: bool,
}

impl Rendezvous {
    /// Makes a rendezvous of `size` ranks. `wake` is the wake mode that the user chose. Without it,
    /// the mode is MEMBARRIER if all ranks can use it and each has one of the `processors` for
    /// itself.
    pub fn new(terms: Terms, size: usize, wake: Option<WakeMode>, processors: usize) -> Result<Rendezvous> {
        let node_state = Arc::new(NodeState::create(size)?);
        Ok(Rendezvous { terms, node_state, applicants: vec![None; size], wake, processors, complete: false })
    }

    /// Returns the node state that all ranks will share.
    pub fn node_state(&self) -> &Arc<NodeState> {
        &self.node_state
    }

    /// Returns the conditions for joining.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns true if all ranks have asked to join.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns true if `rank` has asked to join.
    pub fn has(&self, rank: Rank) -> bool {
        self.applicants.get(rank.index()).is_some_and(Option::is_some)
    }

    /// Handles a [`Request::Hello`] that came with `files`.
    pub fn admit(&mut self, hello: Request, from: Credentials, files: Vec<OwnedFd>) -> Verdict {
        match self.applicant(hello, from, files) {
            Err(why) => Verdict::Refused(why),
            Ok((rank, applicant)) => {
                self.node_state.rank_state(rank).set_pid(applicant.pid);
                self.applicants[rank.index()] = Some(applicant);
                if self.applicants.iter().any(Option::is_none) {
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
        let Request::Hello { greeting, layout, key, rank, size: expected, has_membarrier } = hello else {
            return Err("the request is not one to join".into());
        };
        self.terms.check(&greeting, layout, key, from)?;
        let size = self.applicants.len();
        if expected as usize != size {
            return Err(format!(
                "TASUKI_SIZE is {expected} for rank {rank}, but the job has {size} ranks: let `tasuki run` set it"
            ));
        }
        let Some(taken) = self.applicants.get(rank.index()) else {
            return Err(format!("there is no rank {rank} in this job of {size}"));
        };
        if let Some(Applicant { pid, executable, .. }) = taken {
            if *pid == from.pid {
                return Err(format!(
                    "this process has joined as rank {rank} already: call tasuki::main once; tasuki::local starts jobs \
                     inside a process"
                ));
            }
            return Err(format!(
                "rank {rank} has joined already, as process {pid} ({executable}). If a rank started this program, unset \
                 TASUKI_RANK, TASUKI_SIZE, TASUKI_JOB_SOCKET and TASUKI_KEY for it"
            ));
        }
        let [file]: [OwnedFd; 1] =
            files.try_into().map_err(|_| "the request came without its memory file".to_string())?;
        let file = MemFile::adopt(file, layout::RANGE_BYTES).map_err(|error| error.to_string())?;
        let (pid, executable, file) = (from.pid, greeting.executable, Some(Arc::new(file)));
        Ok((rank, Applicant { pid, executable, file, has_membarrier }))
    }

    fn decide_wake_mode(&self) -> Result<WakeMode, String> {
        let cannot = self.applicants.iter().flatten().position(|applicant| !applicant.has_membarrier);
        match (self.wake, cannot) {
            (Some(WakeMode::Membarrier), Some(rank)) => Err(format!(
                "TASUKI_WAKE=membarrier is not possible: rank {rank} may not use membarrier(2) here; unset it"
            )),
            (Some(mode), _) => Ok(mode),
            (None, None) if self.applicants.len() <= self.processors => Ok(WakeMode::Membarrier),
            (None, _) => Ok(WakeMode::Fence),
        }
    }

    /// Removes a rank whose connection has ended while it waited.
    pub fn withdraw(&mut self, rank: Rank) {
        if !self.complete {
            self.applicants[rank.index()] = None;
        }
    }

    /// Returns part `index` of the membership, with its descriptors: the node state, then the
    /// memory files by rank. `None` after the last part, or before all ranks have asked to join.
    pub fn part(&self, index: usize) -> Option<(ServerReply, Vec<BorrowedFd<'_>>)> {
        if !self.complete {
            return None;
        }
        let files = self
            .applicants
            .iter()
            .flatten()
            .filter_map(|applicant| applicant.file.as_ref())
            .map(|file| file.as_fd());
        let all = std::iter::once(self.node_state.file().as_fd()).chain(files);
        let part: Vec<_> = all.skip(index * DESCRIPTORS_A_MESSAGE).take(DESCRIPTORS_A_MESSAGE).collect();
        let (size, descriptors) = (self.applicants.len() as u32, part.len() as u32);
        match (index, descriptors) {
            (0, _) => Some((ServerReply::Welcome { size, descriptors }, part)),
            (_, 0) => None,
            _ => Some((ServerReply::More { descriptors }, part)),
        }
    }

    /// Returns the memory file of a rank that has asked to join, until the files are released.
    pub fn file(&self, rank: Rank) -> Option<&Arc<MemFile>> {
        self.applicants.get(rank.index())?.as_ref()?.file.as_ref()
    }

    /// Closes the memory files: all ranks have the whole membership.
    pub fn release(&mut self) {
        self.applicants.iter_mut().flatten().for_each(|applicant| applicant.file = None);
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

    fn new_rendezvous(size: usize, wake: Option<WakeMode>) -> Rendezvous {
        let terms = Terms { key: KEY, user: USER, own: greeting("/bin/tasuki") };
        Rendezvous::new(terms, size, wake, 2).unwrap()
    }

    fn hello_of(size: u32, rank: u32, has_membarrier: bool) -> Request {
        Request::Hello {
            greeting: greeting("/bin/app"),
            layout: layout::HASH,
            key: KEY,
            rank: Rank::from_word(rank),
            size,
            has_membarrier,
        }
    }

    /// A request for a job of two ranks.
    fn hello(rank: u32, has_membarrier: bool) -> Request {
        hello_of(2, rank, has_membarrier)
    }

    fn files() -> Vec<OwnedFd> {
        vec![MappedRange::create_file().unwrap().as_fd().try_clone_to_owned().unwrap()]
    }

    fn admit(to: &mut Rendezvous, hello: Request) -> Verdict {
        to.admit(hello, Credentials { pid: 5, user: USER }, files())
    }

    fn refusal(verdict: Verdict) -> String {
        let Verdict::Refused(why) = verdict else { panic!("{verdict:?}") };
        why
    }

    #[test]
    fn ranks_get_the_membership_once_all_have_asked_to_join() {
        let mut rendezvous = new_rendezvous(2, None);
        assert_eq!(admit(&mut rendezvous, hello(1, true)), Verdict::Waits);
        assert!(rendezvous.part(0).is_none() && rendezvous.has(Rank(1)) && !rendezvous.has(Rank(0)));
        assert_eq!(admit(&mut rendezvous, hello(0, true)), Verdict::Complete);
        let (reply, descriptors) = rendezvous.part(0).unwrap();
        assert_eq!((reply, descriptors.len()), (ServerReply::Welcome { size: 2, descriptors: 3 }, 3));
        assert!(rendezvous.part(1).is_none());
        assert_eq!(rendezvous.node_state().wake_mode(), WakeMode::Membarrier);
    }

    #[test]
    fn the_membership_of_many_ranks_has_several_parts() {
        let size = DESCRIPTORS_A_MESSAGE + 1;
        let mut rendezvous = new_rendezvous(size, None);
        for rank in 0..size as u32 {
            admit(&mut rendezvous, hello_of(size as u32, rank, true));
        }
        let parts: Vec<_> =
            (0..).map_while(|part| rendezvous.part(part).map(|(_, files)| files.len())).collect();
        assert_eq!(parts, [DESCRIPTORS_A_MESSAGE, 2]);
        assert_eq!(rendezvous.node_state().wake_mode(), WakeMode::Fence, "there are two processors");
    }

    #[test]
    fn one_rank_without_membarrier_decides_the_wake_mode() {
        let mut rendezvous = new_rendezvous(2, None);
        admit(&mut rendezvous, hello(0, true));
        assert_eq!(admit(&mut rendezvous, hello(1, false)), Verdict::Complete);
        assert_eq!(rendezvous.node_state().wake_mode(), WakeMode::Fence);
        let mut rendezvous = new_rendezvous(2, Some(WakeMode::Membarrier));
        admit(&mut rendezvous, hello(0, true));
        assert!(refusal(admit(&mut rendezvous, hello(1, false))).contains("rank 1 may not use membarrier"));
    }

    #[test]
    fn wrong_requests_are_refused_with_the_reason() {
        let mut rendezvous = new_rendezvous(2, None);
        let other = rendezvous.admit(hello(0, true), Credentials { pid: 5, user: 7 }, files());
        assert_eq!(refusal(other), "the job belongs to user 1000; user 7 may not join it");
        assert!(refusal(admit(&mut rendezvous, hello(2, true))).contains("no rank 2"));
        let wrong = refusal(admit(&mut rendezvous, hello_of(3, 1, true)));
        assert!(wrong.contains("TASUKI_SIZE is 3 for rank 1, but the job has 2 ranks"), "{wrong}");
        admit(&mut rendezvous, hello(1, true));
        assert!(
            refusal(admit(&mut rendezvous, hello(1, true)))
                .contains("this process has joined as rank 1 already")
        );
        let second = rendezvous.admit(hello(1, true), Credentials { pid: 6, user: USER }, files());
        assert!(refusal(second).contains("joined already, as process 5 (/bin/app)"));
        let without = rendezvous.admit(hello(0, true), Credentials { pid: 5, user: USER }, vec![]);
        assert!(refusal(without).contains("memory file"));
        let wrong = std::fs::File::open("/proc/self/exe").unwrap();
        let unsealed =
            rendezvous.admit(hello(0, true), Credentials { pid: 5, user: USER }, vec![wrong.into()]);
        assert!(refusal(unsealed).contains("not a sealed memory file"));
    }

    #[test]
    fn the_refusal_of_another_layout_names_both_versions_and_executables() {
        let mut rendezvous = new_rendezvous(2, None);
        let old = Greeting { version: "0.0.9".into(), ..greeting("/bin/old") };
        let hello = Request::Hello {
            greeting: old,
            layout: layout::HASH + 1,
            key: KEY,
            rank: Rank(0),
            size: 2,
            has_membarrier: true,
        };
        let why = refusal(admit(&mut rendezvous, hello));
        for part in ["/bin/old", "0.0.9", "/bin/tasuki", "0.1.0", "layouts"] {
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn another_job_s_key_is_refused() {
        let mut rendezvous = new_rendezvous(1, None);
        let greeting = greeting("/bin/app");
        let hello = Request::Hello {
            greeting,
            layout: layout::HASH,
            key: Key([2; 16]),
            rank: Rank(0),
            size: 1,
            has_membarrier: true,
        };
        assert!(refusal(admit(&mut rendezvous, hello)).contains("another job's key"));
    }
}
