//! Reports the first failure of a communicator to all members, and ends their calls.

use crate::call_name::CallName;
use crate::current_call::{CallWord, CurrentCall};
use crate::failure::call_history::{CallHistory, CallMark};
use crate::failure::call_log::CallLog;
use crate::failure::call_notices::CallNotices;
use crate::failure::job_call::JobCallSignature;
use crate::failure::member::{CALLS, MonitoredMember, NOTICE, RECORD};
use crate::failure::published_wait::{Lane, PublishedWaits, StartedPlans};
use crate::failure::signature::CallSignature;
use bytemuck::{Pod, Zeroable};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tasuki_core::base::sync::{AtomicBool, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Error, ErrorKind, Rank};
use tasuki_core::engine::{AlarmHandler, Awaited, Condition, WaitProbe, Worker};
use tasuki_core::fabric::{DirectCell, Fabric, LinePayload, SignalCell, SignalLine};
use tasuki_core::segment::GlobalAddress;
use tasuki_core::segment::layout::{LINE_PAYLOAD, signal_offset};
use tasuki_schedule::selection::MEMBERS_MAX;

/// Tests of calls look once in this number whether members are in different calls.
const LOOKED_EVERY: u64 = 64;
/// A task that awaits a call is polled after this time, so that it looks, too.
const LOOK_AFTER_NS: u64 = 10_000_000;
/// The counter of a record that was written.
const WRITTEN: u64 = 1;

/// Why a call has failed on a member, as it is reported to other members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailureReason {
    /// Members disagree about the bytes of a block: the smallest and the largest number.
    Bytes(u64, u64),
    /// Members made different calls, or calls with different arguments.
    Calls,
    /// It was in the second call, and that member in the first one.
    Different(usize, CallSignature, CallSignature),
    /// It waited in the second call, and that member in the first one, each for the other.
    Waits(usize, CallSignature, CallSignature),
    /// An argument was wrong on that member.
    Argument,
    /// The program's own operation panicked or failed.
    Program,
    /// The call has reached its time limit on that member.
    TimedOut,
    /// That rank has left the job.
    Left(Rank),
    /// Something else has gone wrong at another rank.
    Peer,
    /// The system has refused something.
    System,
}

impl FailureReason {
    fn of(cause: &Cause) -> FailureReason {
        match *cause {
            Cause::Disagree { what: "bytes", least, most, .. } => FailureReason::Bytes(least, most),
            Cause::PeerLeft { peer } => FailureReason::Left(peer),
            _ => FailureReason::of_kind(cause.kind()),
        }
    }

    fn of_kind(kind: ErrorKind) -> FailureReason {
        match kind {
            ErrorKind::Misuse => FailureReason::Argument,
            ErrorKind::Disagreement => FailureReason::Calls,
            ErrorKind::Program => FailureReason::Program,
            ErrorKind::TimedOut => FailureReason::TimedOut,
            ErrorKind::PeerFailed => FailureReason::Peer,
            _ => FailureReason::System,
        }
    }

    fn kind(self) -> ErrorKind {
        match self {
            FailureReason::Bytes(..)
            | FailureReason::Calls
            | FailureReason::Different(..)
            | FailureReason::Waits(..)
            | FailureReason::Argument => ErrorKind::Disagreement,
            FailureReason::Program => ErrorKind::Program,
            // Not a time limit of the calls that end for it.
            FailureReason::Left(_) | FailureReason::Peer | FailureReason::TimedOut => ErrorKind::PeerFailed,
            FailureReason::System => ErrorKind::System,
        }
    }

    /// Returns the reason in words, the first one its number.
    fn words(self) -> [u64; 3] {
        match self {
            FailureReason::Bytes(least, most) => [1, least, most],
            FailureReason::Calls => [2, 0, 0],
            FailureReason::Program => [3, 0, 0],
            FailureReason::Left(rank) => [4, rank.0 as u64, 0],
            FailureReason::Peer => [5, 0, 0],
            FailureReason::System => [6, 0, 0],
            FailureReason::Argument => [7, 0, 0],
            FailureReason::TimedOut => [10, 0, 0],
            FailureReason::Waits(member, a, b) => [8 | (member as u64) << 8, a.bits(), b.bits()],
            FailureReason::Different(member, a, b) => [9 | (member as u64) << 8, a.bits(), b.bits()],
        }
    }

    fn from_words([number, one, two]: [u64; 3]) -> FailureReason {
        match number & 0xff {
            1 => FailureReason::Bytes(one, two),
            2 => FailureReason::Calls,
            3 => FailureReason::Program,
            4 => FailureReason::Left(Rank(one as usize)),
            5 => FailureReason::Peer,
            7 => FailureReason::Argument,
            10 => FailureReason::TimedOut,
            is @ (8 | 9) => {
                let ([a, b], member) = ([one, two].map(CallSignature::in_word), (number >> 8) as usize);
                if is == 8 {
                    FailureReason::Waits(member, a, b)
                } else {
                    FailureReason::Different(member, a, b)
                }
            }
            _ => FailureReason::System,
        }
    }

    /// Returns the amount by which a notice is raised: a count of failures for each kind.
    fn raise(self) -> u64 {
        let at = KINDS.iter().position(|&kind| kind == self.kind()).unwrap_or(0);
        1 << (COUNT_BITS * at)
    }

    /// Returns the reason that the count of a notice shows, without details.
    fn in_notice(count: u64) -> FailureReason {
        let is_raised = |at: &usize| count >> (COUNT_BITS * at) & ((1 << COUNT_BITS) - 1) != 0;
        FailureReason::of_kind((0..KINDS.len()).find(is_raised).map_or(ErrorKind::PeerFailed, |at| KINDS[at]))
    }
}

/// The bits of each count in a notice.
const COUNT_BITS: usize = 12;
/// The amount by which a notice is raised, besides, for a call of the job that was given up.
const JOB_CALL_GIVEN_UP: u64 = 1 << (COUNT_BITS * KINDS.len());

/// The kinds of failures that notices tell apart, the most informative one first.
const KINDS: [ErrorKind; 4] =
    [ErrorKind::Disagreement, ErrorKind::Program, ErrorKind::PeerFailed, ErrorKind::System];

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureReason::Bytes(least, most) => {
                write!(f, "the ranks disagree about bytes: the smallest is {least}, the largest {most}")
            }
            FailureReason::Calls => {
                f.write_str("its members made different calls, or disagree about arguments")
            }
            FailureReason::Different(member, theirs, ours) if theirs.to_string() == ours.to_string() => {
                write!(f, "member {member} was in {theirs} {}", ours.hidden_difference())
            }
            FailureReason::Different(member, theirs, ours) => {
                write!(f, "member {member} was in another call, {theirs}, while that one was in {ours}")
            }
            FailureReason::Waits(member, theirs, ours) => {
                write!(f, "{ours} here and {theirs} of member {member} waited for each other")
            }
            FailureReason::Argument => {
                f.write_str("an argument was wrong there, so it has not made the call")
            }
            FailureReason::Program => f.write_str("the program's own operation panicked or failed"),
            FailureReason::TimedOut => f.write_str("it has reached its time limit there"),
            FailureReason::Left(rank) => write!(f, "rank {rank} has left the job"),
            FailureReason::Peer => f.write_str("a member has left the job, died, or did not come in time"),
            FailureReason::System => f.write_str("the system refused something"),
        }
    }
}

/// What a member writes about its failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
struct FailureRecord {
    when_ns: u64,
    /// The [`CallWord`] of the failed call.
    call: u64,
    reason: [u64; 3],
}

const _: () = assert!(size_of::<FailureRecord>() <= LINE_PAYLOAD);

/// Nonblocking calls, which end when the communicator fails.
pub(crate) trait EndsWithCommunicator: Send + Sync + fmt::Debug {
    /// Returns true if they are over.
    fn is_over(&self) -> bool;

    /// Ends them without a result.
    fn abandon(self: Arc<Self>);
}

/// The first failure of a communicator.
#[derive(Debug)]
struct FirstFailure {
    text: String,
    reason: FailureReason,
    /// The rank of the job on which it happened, if that is known and is not this one.
    rank: Option<Rank>,
}

/// A communicator's failure, as one member knows it.
#[derive(Debug)]
pub(crate) struct FailureMonitor {
    pub(super) fabric: Arc<dyn Fabric>,
    pub(super) me: usize,
    pub(super) members: Box<[MonitoredMember]>,
    /// The number of each rank's alarm.
    alarm: u32,
    current_call: Arc<CurrentCall>,
    notice: (SignalCell, u64),
    /// True if this member has failed itself, or has read that another one has.
    has_failed: AtomicBool,
    /// True once a call has told the program of the failure.
    is_known_to_program: AtomicBool,
    /// True once it has failed and the nonblocking calls that were under way have ended.
    has_ended: AtomicBool,
    /// The first failure, once it was looked for.
    first_failure: OnceLock<FirstFailure>,
    /// True if the ranks of the job read each other's words.
    pub(super) reads_words: bool,
    /// All calls of this member.
    history: CallHistory,
    /// Opened by the first call.
    records: OnceLock<CallRecords>,
    /// Nonblocking calls that may be under way.
    calls: Mutex<Vec<Weak<dyn EndsWithCommunicator>>>,
    /// The number of the probe by which waits ask this monitor. It lasts as long as the monitor, which plans and
    /// requests keep after their communicator is dropped.
    probe: u32,
    pub(super) worker: Weak<Worker>,
    of_rank: Arc<RankMonitors>,
    /// Number of tests of calls that were not complete.
    tests: AtomicU64,
    /// When a poll of a call looks again, in ns.
    look_at_ns: AtomicU64,
    /// True while a thread is in a call of the job. A second one at the same time is refused, and counts for nothing.
    pub(super) is_in_job_call: AtomicBool,
    /// True if a rank has given up a call of the job, as far as this one knows.
    has_given_up_job_calls: AtomicBool,
    pub(super) waits: PublishedWaits,
}

/// Where members look for those in other calls.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each call writes to the log, at no further address")]
enum CallRecords {
    /// They read each other's words.
    Log(CallLog),
    /// They cannot, or are too many to read the words of all, and pass on notices.
    Notices(Arc<CallNotices>),
    /// There is neither: the system has refused it.
    None,
}

/// The probe of a monitor, which does not keep the monitor.
#[derive(Debug)]
pub(crate) struct MonitorProbe {
    pub(crate) monitor: Weak<FailureMonitor>,
    pub(crate) reads_words: bool,
}

/// The monitors of a rank, for its alarm.
#[derive(Debug, Default)]
pub(crate) struct RankMonitors {
    all: Mutex<Vec<Weak<FailureMonitor>>>,
    /// A failure that this rank reports ends the job.
    aborts: AtomicBool,
}

impl FailureMonitor {
    /// Makes the monitor of member `me`, and registers it with its rank.
    pub(crate) fn new(
        worker: &Arc<Worker>,
        me: usize,
        members: Box<[MonitoredMember]>,
        alarm: u32,
        current_call: Arc<CurrentCall>,
        of_rank: &Arc<RankMonitors>,
        plans: Arc<dyn StartedPlans>,
    ) -> Result<Arc<FailureMonitor>, Cause> {
        let fabric = worker.shared_fabric().clone();
        let cell = fabric.own_signal(members[me].first + NOTICE)?;
        // Its count was 0 when the members agreed on it. Another member may have failed since.
        let notice = (cell, 0);
        let reads_words = worker.reaches_words();
        let monitor = Arc::new_cyclic(|monitor: &Weak<FailureMonitor>| FailureMonitor {
            fabric,
            me,
            members,
            alarm,
            current_call,
            notice,
            has_failed: AtomicBool::new(false),
            is_known_to_program: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            first_failure: OnceLock::new(),
            reads_words,
            history: CallHistory::default(),
            records: OnceLock::new(),
            calls: Mutex::default(),
            probe: worker.wait_probes().add(Arc::new(MonitorProbe { monitor: monitor.clone(), reads_words })),
            worker: Arc::downgrade(worker),
            of_rank: of_rank.clone(),
            tests: AtomicU64::new(0),
            look_at_ns: AtomicU64::new(0),
            is_in_job_call: AtomicBool::new(false),
            has_given_up_job_calls: AtomicBool::new(false),
            waits: PublishedWaits::new(plans),
        });
        let mut all = of_rank.lock();
        // One that has failed and has ended its calls needs no alarm.
        all.retain(|monitor| {
            monitor.upgrade().is_some_and(|monitor| !monitor.has_ended.load(Ordering::Relaxed))
        });
        all.push(Arc::downgrade(&monitor));
        drop(all);
        Ok(monitor)
    }

    /// Returns the failure of the communicator, if there was one, for a call that tells the program.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Cause> {
        if self.is_failed() { Err(self.failure()) } else { Ok(()) }
    }

    /// Returns true if the communicator has failed.
    #[inline]
    pub(crate) fn is_failed(&self) -> bool {
        let is_noticed = match &self.notice {
            (SignalCell::Direct(cell), initial) => cell.counter().load(Ordering::Acquire) != *initial, // SYNC signal-raise
            (SignalCell::Via(_), _) => false, // `read_notice` sets the flag
        };
        is_noticed || self.has_failed.load(Ordering::Relaxed)
    }

    /// Reads the notice, also where that takes a call of the fabric. Returns the failure, if there was one, for a call
    /// that tells the program.
    pub(crate) fn read_notice(&self) -> Option<Cause> {
        if self.is_noticed() { Some(self.failure()) } else { None }
    }

    /// Reads the notice, also where that takes a call of the fabric. Returns true if the communicator has failed.
    fn is_noticed(&self) -> bool {
        let (cell, initial) = &self.notice;
        if cell.read(&*self.fabric) != *initial {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        self.is_failed()
    }

    /// Returns the failure of the communicator, of which the caller tells the program.
    #[cold]
    pub(crate) fn failure(&self) -> Cause {
        self.is_known_to_program.store(true, Ordering::Relaxed);
        self.has_failed.store(true, Ordering::Relaxed); // the notice may come later than what the caller has read
        let FirstFailure { text, reason, rank } = self.first_failure();
        let peer = if let FailureReason::Left(rank) = reason { Some(*rank) } else { *rank };
        Cause::CommunicatorFailed { first: text.clone(), kind: reason.kind(), peer }
    }

    fn first_failure(&self) -> &FirstFailure {
        self.first_failure.get_or_init(|| self.find_first_failure())
    }

    /// Reads the records of all members.
    fn find_first_failure(&self) -> FirstFailure {
        let name = self.current_call.communicator_name();
        let all = (0..self.members.len()).filter_map(|member| Some((self.record_of(member)?, member)));
        let Some((record, member)) = all.min_by_key(|(record, member)| (record.when_ns, *member)) else {
            let (cell, initial) = &self.notice;
            let reason = FailureReason::in_notice(cell.read(&*self.fabric).wrapping_sub(*initial));
            let text = format!("a call on {name} has failed on another member: {reason}");
            return FirstFailure { text, reason, rank: None };
        };
        let call = self.text_of(CallWord::from_bits(record.call));
        let (rank, reason) = (self.members[member].rank, FailureReason::from_words(record.reason));
        let text = format!("{call} failed on rank {rank}: {reason}");
        FirstFailure { text, reason, rank: (member != self.me).then_some(rank) }
    }

    fn record_of(&self, member: usize) -> Option<FailureRecord> {
        let cell = self.cell(member, RECORD)?;
        let is_written = cell.counter().load(Ordering::Acquire) == WRITTEN; // SYNC signal-raise
        let payload = cell.payload(WRITTEN, size_of::<FailureRecord>() / 8).filter(|_| is_written)?;
        Some(payload.to())
    }

    /// Returns a signal of a member, if this member reaches it by loads.
    pub(super) fn cell(&self, member: usize, number: u32) -> Option<DirectCell> {
        let place = &self.members[member];
        if member == self.me {
            let SignalCell::Direct(cell) = self.fabric.own_signal(place.first + number).ok()? else {
                return None;
            };
            return Some(cell);
        }
        let SignalLine::Direct(line) = self.fabric.line(place.signal(number)).ok()? else { return None };
        Some(line.cell())
    }

    pub(crate) fn text_of(&self, call: CallWord) -> String {
        let name = self.current_call.communicator_name();
        call.text(name).unwrap_or_else(|| format!("a call on {name}"))
    }

    /// Reports to all members that `call` has failed on this member for that cause. A report has no effect if the
    /// communicator has failed before.
    #[cold]
    pub(crate) fn report(&self, worker: &Worker, call: CallWord, cause: &Cause) {
        let different = match cause {
            Cause::Mismatch { .. } => self.opened_log().and_then(CallLog::find_different),
            _ => None,
        };
        let reason = match different {
            Some((member, theirs, ours)) => FailureReason::Different(member, theirs, ours),
            None => FailureReason::of(cause),
        };
        self.report_reason(worker, call, reason);
    }

    /// Notes that all members have refused `call`, each for a cause about arguments. Each member notes that itself.
    #[cold]
    pub(crate) fn note_agreed(&self, worker: &Worker, call: CallWord, cause: &Cause) {
        if !self.is_failed() {
            self.report_raising(worker, call, FailureReason::of(cause), 0);
        }
    }

    /// Reports to all members that the program's operation has panicked in `call`.
    #[cold]
    pub(crate) fn report_panic(&self, worker: &Worker, call: CallWord) {
        self.report_reason(worker, call, FailureReason::Program);
    }

    pub(super) fn report_reason(&self, worker: &Worker, call: CallWord, reason: FailureReason) {
        match self.is_failed() {
            false => self.report_raising(worker, call, reason, reason.raise()),
            true => self.is_known_to_program.store(true, Ordering::Relaxed), // by the error that the caller returns
        }
    }

    /// Reports to all ranks that this one has given up a call of the job, because its time limit was reached. No call
    /// of the job can succeed afterwards, also if the communicator has failed before: the ranks no longer agree about
    /// how many they have made.
    #[cold]
    pub(crate) fn give_up_job_calls(&self, worker: &Worker, call: JobCallSignature) {
        self.has_given_up_job_calls.store(true, Ordering::Relaxed);
        let reason = FailureReason::TimedOut;
        let call = CallWord::of_name(call.lane().name());
        self.report_raising(worker, call, reason, reason.raise() + JOB_CALL_GIVEN_UP);
    }

    /// Returns why no call of the job can succeed any more, if a rank has given up one.
    pub(crate) fn job_calls_given_up(&self) -> Option<Cause> {
        let (cell, initial) = &self.notice;
        let is_noticed = || cell.read(&*self.fabric).wrapping_sub(*initial) >= JOB_CALL_GIVEN_UP;
        if !self.has_given_up_job_calls.load(Ordering::Relaxed) {
            if !is_noticed() {
                return None;
            }
            self.has_given_up_job_calls.store(true, Ordering::Relaxed);
            self.has_failed.store(true, Ordering::Relaxed);
        }
        let given_up = |member: usize| {
            let call = CallWord::from_bits(self.record_of(member)?.call);
            let rank = self.members[member].rank;
            let text = || format!("{} has reached its time limit on rank {rank}", self.text_of(call));
            call.name()?.is_of_job().then(|| (text(), (member != self.me).then_some(rank)))
        };
        let (first, peer) = (0..self.members.len()).find_map(given_up).unwrap_or_else(|| {
            ("a barrier or an allocation of the job has reached its time limit".into(), None)
        });
        Some(Cause::CommunicatorFailed { first, kind: ErrorKind::PeerFailed, peer })
    }

    /// Records the failure, and raises the notices of the other members by `amount`, unless that is 0.
    fn report_raising(&self, worker: &Worker, call: CallWord, reason: FailureReason, amount: u64) {
        // A rank that was killed or is leaving cannot report anything; other members detect that it is gone.
        if worker.check().is_err() || worker.fabric().is_cut_off().is_some() {
            return;
        }
        let record = FailureRecord { when_ns: worker.now_ns(), call: call.bits(), reason: reason.words() };
        if let Ok(SignalLine::Direct(line)) = self.fabric.line(self.members[self.me].signal(RECORD)) {
            line.write(LinePayload::of(&record), WRITTEN);
        } else {
            let call = self.text_of(call);
            let text = format!("{call} failed on this rank: {reason}");
            let _ = self.first_failure.set(FirstFailure { text, reason, rank: None });
        }
        self.has_failed.store(true, Ordering::Relaxed);
        self.is_known_to_program.store(true, Ordering::Relaxed); // the call that has failed tells the program
        if self.of_rank.aborts.load(Ordering::Relaxed) {
            let how = format!("{} failed ({reason}), and the job is set to end then", self.text_of(call));
            worker.node_state().declare_dead(worker.rank(), &how, worker.now_ns());
            return;
        }
        for member in (0..self.members.len()).filter(|&member| member != self.me && amount != 0) {
            // Fails if that member has left, which needs no notice.
            let _ = worker.raise(self.members[member].signal(NOTICE), amount);
            self.raise_alarm(worker, member);
        }
        self.end_calls();
    }

    pub(super) fn raise_alarm(&self, worker: &Worker, member: usize) {
        let _ = worker.raise(GlobalAddress::new(self.members[member].rank, signal_offset(self.alarm)), 1);
    }

    /// Returns true if the communicator has failed because a member was in a call of the job, and another one was not.
    pub(crate) fn is_about_job_calls(&self) -> bool {
        let is_of_job = |call: &CallSignature| call.name().is_some_and(CallName::is_of_job);
        self.is_failed()
            && matches!(&self.first_failure().reason, FailureReason::Waits(_, theirs, ours)
                if is_of_job(theirs) || is_of_job(ours))
    }

    /// Returns true if a call has told the program of the failure.
    pub(crate) fn is_known_to_program(&self) -> bool {
        self.is_known_to_program.load(Ordering::Relaxed)
    }

    /// Returns why calls of the communicator cannot succeed, for a poll. Now and then, also if only a look at all
    /// members shows that.
    pub(crate) fn look(&self, worker: &Worker) -> Option<Cause> {
        if !self.is_poll_to_look(worker) {
            return self.check().err();
        }
        worker.wait_probes().error_of(self.probe())
    }

    /// Returns true if a poll of a call that is not complete should look whether members are in different calls: that
    /// reads words of all members. Of members that poll different calls, the last one finds that at its first poll.
    pub(crate) fn is_poll_to_look(&self, worker: &Worker) -> bool {
        if !worker.platform().lets_threads_sleep() {
            return true; // no later poll comes without an event
        }
        let now_ns = worker.now_ns();
        let is_due = now_ns >= self.look_at_ns.load(Ordering::Relaxed);
        if is_due {
            self.look_at_ns.store(now_ns.saturating_add(LOOK_AFTER_NS), Ordering::Relaxed);
        }
        is_due
    }

    /// Describes a condition that a task awaits, and what the probe is asked about meanwhile. The task is polled now
    /// and then, so that it can look whether the call can still be complete. Not in a simulation: its time would go
    /// on for ever, instead of ending in a deadlock that is reported.
    pub(crate) fn awaited(&self, worker: &Worker, condition: Condition, about: u32) -> Awaited {
        let again_at_ns = match worker.platform().lets_threads_sleep() {
            true => worker.now_ns().saturating_add(LOOK_AFTER_NS),
            false => u64::MAX,
        };
        Awaited { condition, again_at_ns, probe: (self.probe, about) }
    }

    /// Counts a test of a call that is not complete. Returns true if the test should look whether members are in
    /// different calls.
    pub(crate) fn is_look_due(&self) -> bool {
        self.tests.fetch_add(1, Ordering::Relaxed) % LOOKED_EVERY == LOOKED_EVERY - 1
    }

    /// Registers a nonblocking call, which ends when the communicator fails.
    pub(crate) fn add_call(&self, call: &Arc<dyn EndsWithCommunicator>) {
        let mut calls = self.lock_calls();
        if calls.len() == calls.capacity() {
            calls.retain(|call| call.upgrade().is_some_and(|call| !call.is_over()));
        }
        calls.push(Arc::downgrade(call));
    }

    /// Ends the nonblocking calls that are under way, if the communicator has failed. Returns true if it has. The alarm
    /// of this rank may not have been handled yet.
    pub(crate) fn end_calls_if_failed(&self) -> bool {
        let has_failed = self.is_noticed();
        if has_failed {
            self.end_calls();
        }
        has_failed
    }

    /// Ends the nonblocking calls that are under way.
    fn end_calls(&self) {
        let calls = std::mem::take(&mut *self.lock_calls());
        calls.iter().filter_map(Weak::upgrade).for_each(|call| call.abandon());
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Returns the number by which waits ask this monitor.
    #[inline]
    pub(crate) fn probe(&self) -> u32 {
        self.probe
    }

    /// Returns the mark of the next call, if it has that signature.
    pub(crate) fn mark_of_next(&self, call: CallSignature) -> CallMark {
        self.history.mark_of_next(call)
    }

    /// Records the next call, which this thread is entering. Returns its mark.
    #[inline]
    pub(crate) fn note(&self, call: CallSignature) -> CallMark {
        match self.records() {
            CallRecords::Log(log) => log.note(call),
            CallRecords::Notices(notices) => notices.note(call),
            CallRecords::None => {}
        }
        self.history.add(call)
    }

    /// Replaces the error of a step by one that tells more. If it has found a member in another call, or with other
    /// calls before, it names the first calls that differ, if the log of calls still holds them. If a member has
    /// failed and has left the job since, it is that failure, and not that the member has left.
    #[cold]
    pub(crate) fn explain(&self, error: Error, worker: &Worker, call: &dyn Fn() -> String) -> Error {
        let cause = match error.cause() {
            Cause::Mismatch { .. } => self.opened_log().and_then(CallLog::find_mismatch),
            Cause::PeerLeft { .. } => self.read_notice(),
            _ => None,
        };
        self.name_rank(cause.map_or(error, |cause| worker.fault(cause, call)))
    }

    /// Adds the rank of the member that the error names.
    #[cold]
    pub(crate) fn name_rank(&self, error: Error) -> Error {
        error.of_members(|member| self.members.get(member).map(|member| member.rank))
    }

    /// Returns the log of calls, if members read each other's words.
    #[inline]
    pub(crate) fn log(&self) -> Option<&CallLog> {
        if let CallRecords::Log(log) = self.records() { Some(log) } else { None }
    }

    /// Returns the word of the blocking call that this member is in, or 0.
    pub(super) fn word_of_call(&self) -> u64 {
        self.current_call.one_call.word()
    }

    /// Returns the log of calls, if this member has made a call.
    pub(super) fn opened_log(&self) -> Option<&CallLog> {
        if let Some(CallRecords::Log(log)) = self.records.get() { Some(log) } else { None }
    }

    /// Returns the notices of calls, if members do not read each other's words, or are too many.
    pub(crate) fn call_notices(&self) -> Option<&Arc<CallNotices>> {
        if let CallRecords::Notices(notices) = self.records() { Some(notices) } else { None }
    }

    #[inline]
    fn records(&self) -> &CallRecords {
        match self.records.get() {
            Some(records) => records,
            None => self.open_records(),
        }
    }

    #[cold]
    fn open_records(&self) -> &CallRecords {
        let log = || {
            let is_among_few = self.members.len() <= MEMBERS_MAX;
            let cells = is_among_few.then(|| self.log_cells()).flatten()?;
            Some(CallRecords::Log(CallLog::new(self.me, cells)))
        };
        let notices = || {
            let notices = CallNotices::new(&self.fabric, self.me, &self.members).ok()?;
            Some(CallRecords::Notices(Arc::new(notices)))
        };
        let open = || self.reads_words.then(log).flatten().or_else(notices);
        self.records.get_or_init(|| open().unwrap_or(CallRecords::None))
    }

    /// Returns the words of all members; None if this member does not reach them.
    fn log_cells(&self) -> Option<Vec<[DirectCell; CALLS as usize]>> {
        let cells = |member: usize| {
            let cell = |number| self.cell(member, number);
            Some([cell(0)?, cell(1)?, cell(2)?, cell(3)?])
        };
        (0..self.members.len()).map(cells).collect()
    }

    fn lock_calls(&self) -> MutexGuard<'_, Vec<Weak<dyn EndsWithCommunicator>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FailureMonitor {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.upgrade() {
            worker.wait_probes().remove(self.probe);
        }
    }
}

impl WaitProbe for MonitorProbe {
    fn probe_error(&self, about: u32) -> Option<Cause> {
        let monitor = self.monitor.upgrade()?;
        if about == Lane::JobAlone.about(0) {
            return monitor.job_calls_given_up();
        }
        let find_mismatch = || match monitor.records.get()? {
            CallRecords::Log(log) => log.find_mismatch(),
            CallRecords::Notices(notices) => notices.find_mismatch(),
            CallRecords::None => None,
        };
        let error = monitor.check().err().or_else(find_mismatch);
        // The call that recreates the communicator goes on if that has failed.
        error.or_else(|| monitor.find_crossed_wait(about)).filter(|_| about != Lane::Recreate.about(1))
    }

    fn failure(&self, about: u32) -> Option<Cause> {
        let monitor = self.monitor.upgrade()?;
        if about == Lane::JobAlone.about(0) {
            return monitor.job_calls_given_up();
        }
        monitor.read_notice().filter(|_| about != Lane::Recreate.about(1))
    }

    fn wait_ended(&self) {
        self.monitor.upgrade().into_iter().for_each(|monitor| monitor.withdraw_wait());
    }

    fn is_urgent(&self) -> bool {
        !self.reads_words // it must inform others
    }
}

impl RankMonitors {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<FailureMonitor>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether a failure that this rank reports ends the job.
    pub(crate) fn abort_on_failure(&self, aborts: bool) {
        self.aborts.store(aborts, Ordering::Relaxed);
    }
}

impl AlarmHandler for RankMonitors {
    fn alarm_raised(&self) {
        let all: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        for monitor in all.iter().filter(|monitor| monitor.is_noticed()) {
            monitor.end_calls();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_through_records_and_notices() {
        let all = [
            FailureReason::Bytes(8, 16),
            FailureReason::Calls,
            FailureReason::Argument,
            FailureReason::Waits(7, CallSignature::in_word(5), CallSignature::in_word(6)),
            FailureReason::Different(7, CallSignature::in_word(5), CallSignature::in_word(6)),
            FailureReason::Program,
            FailureReason::Left(Rank(7)),
            FailureReason::TimedOut,
            FailureReason::Peer,
            FailureReason::System,
        ];
        for reason in all {
            assert_eq!(FailureReason::from_words(reason.words()), reason);
            assert_eq!(FailureReason::in_notice(3 * reason.raise()).kind(), reason.kind());
        }
        let both = FailureReason::Peer.raise() + FailureReason::Calls.raise();
        assert_eq!(FailureReason::in_notice(both), FailureReason::Calls, "the most telling one");
    }
}
