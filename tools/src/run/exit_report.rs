//! Interprets the events of a job: which rank died first, what is reported, and the exit code.

use super::job::Job;
use super::options::Way;
use super::proc_threads::threads_of;
use super::process::Process;
use super::rank_names::names;
use super::snapshot::{RUNNING, RankState, SLEEPING, Snapshot, WAITING, report};
use super::stdin::StdinForwarder;
use super::termination::Termination;
use super::verdict::{Verdict, exit_code};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::time::{Duration, Instant};
use tasuki_command::CLOSED;
use tasuki_core::base::Rank;
use tasuki_core::bootstrap::wire::ServerReply;
use tasuki_core::node::node_state::{NodeState, PublishedWait, RankStage};
use tasuki_core::os::child_status::{Exit, signal_name};
use tasuki_core::os::clock;

/// The exit code of a job that took too long.
const TIMED_OUT: u8 = 124;
/// The exit code of a process that was killed.
const KILLED: u8 = 128 + 9;
/// The exit codes of processes that a signal has ended of which no failure of another rank can be the reason: SIGILL,
/// SIGBUS, SIGFPE, SIGKILL, SIGSEGV.
const CRASHES: [u8; 5] = [128 + 4, 128 + 7, 128 + 8, KILLED, 128 + 11];
/// Time from the end of a rank's connection to declaring it dead. The exit of its process, which
/// tells more, usually comes first.
const CONNECTION_GRACE: Duration = Duration::from_millis(100);

/// A rank that begins to sleep publishes its wait within this time, if it gets a processor. It is
/// sampled again up to [`SILENT_LOOKS`] times.
const SILENT_MAX: Duration = Duration::from_millis(2);
const SILENT_LOOKS: usize = 5;

fn is_crash(code: u8) -> bool {
    CRASHES.contains(&code)
}

impl Job {
    /// A process has ended.
    pub(super) fn process_ended(&mut self, index: usize, exit: Exit) {
        self.processes[index].lost = None;
        let rank = Rank(index);
        match (exit, self.stage(rank)) {
            (Exit::Code(0), Some(RankStage::Joined | RankStage::Leaving)) => {
                self.died(index, &format!("{exit} without leaving the job"), 1);
            }
            (Exit::Code(0), _) => match self.unfinished_threads() {
                ranks if ranks.is_empty() => self.check_that_all_can_come(),
                ranks => {
                    self.died(index, &format!("{exit} before {} left the job", names(&ranks)), 1);
                }
            },
            _ => self.died(index, &self.described(exit), exit_code(exit)),
        }
    }

    /// How a process ended, in words.
    fn described(&self, exit: Exit) -> String {
        let is_ours = |number| self.forwarded.iter().any(|signal| signal.as_raw() == number);
        match exit {
            Exit::Signal { number, .. } if is_ours(number) => format!("{exit}, which was forwarded to it"),
            _ => exit.to_string(),
        }
    }

    /// Ranks that have not left, if all ranks are threads of one process that has joined.
    fn unfinished_threads(&self) -> Vec<usize> {
        let Some(node_state) = self.server.node_state().filter(|_| self.options.way != Way::Processes) else {
            return Vec::new();
        };
        (0..self.options.ranks)
            .filter(|&rank| node_state.rank_state(Rank(rank)).stage() != RankStage::Left)
            .collect()
    }

    /// The rank's stage, if it is a process of its own.
    fn stage(&self, rank: Rank) -> Option<RankStage> {
        let node_state = self.server.node_state().filter(|_| self.options.way == Way::Processes)?;
        Some(node_state.rank_state(rank).stage())
    }

    /// Ends the job if a process has exited without joining: the other ranks would wait for it for
    /// ever.
    pub(super) fn check_that_all_can_come(&mut self) {
        if !self.server.is_awaited() {
            return;
        }
        let cannot = |(index, process): &(usize, &Process)| {
            process.exit.is_some() && !self.server.is_joining(Rank(*index))
        };
        if let Some((index, process)) = self.processes.iter().enumerate().find(cannot) {
            let how =
                process.exit.map_or(String::new(), |exit| format!("{exit} without ever joining the job"));
            self.died(index, &how, 1);
        }
    }

    /// A rank's connection has closed. If the rank has not left, it is dead, even if it is not a
    /// child of the launcher.
    pub(super) fn connection_ended(&mut self, rank: Rank) {
        let process = &mut self.processes[rank.index()];
        if process.exit.is_none()
            && self.server.node_state().is_some_and(|b| b.rank_state(rank).stage() != RankStage::Left)
        {
            process.lost = Some(Instant::now() + CONNECTION_GRACE);
        }
    }

    /// The rank's program has ended, but the process that the launcher started (perhaps a shell
    /// around it) has not.
    pub(super) fn program_ended(&mut self, index: usize) {
        self.processes[index].lost = None;
        let pid = self.server.node_state().map_or(0, |node_state| node_state.rank_state(Rank(index)).pid());
        self.died(index, &format!("its program (process {pid}) ended without leaving the job"), 1);
    }

    /// A rank is dead: tells all ranks, once, and ends the job.
    fn died(&mut self, index: usize, how: &str, code: u8) {
        let own = self.options.way == Way::Processes;
        if self.termination.is_some() {
            return self.died_before_it_was_asked(index, how, code);
        }
        let recorded = self.server.node_state().and_then(|node_state| node_state.death());
        // Another rank may have noticed the loss of this one earlier than the launcher, and have failed.
        let recorded = recorded.filter(|death| !own || death.rank.index() == index || !is_crash(code));
        // A process with all ranks that exited by itself after one of them failed has reported the
        // reason, unless that rank called exit.
        let says_at_end = |how: &str| !own && code == 1 && how != NodeState::EXITED;
        // A rank that had left and then exited with an error has reported what it could not complete.
        let stage = self.server.node_state().map(|state| state.rank_state(Rank(index)).stage());
        let has_left = own && code == 1 && stage == Some(RankStage::Left);
        let is_said = match &recorded {
            Some(death) => death.is_printed || says_at_end(&death.how),
            None => has_left,
        };
        let (culprit, cause, verdict) = match recorded {
            // Another rank failed first and reported it; this one only followed.
            Some(death) if own && death.rank.index() != index => {
                let first = death.rank.index();
                (death.rank, death.how, Verdict::OfProcess(first, code))
            }
            Some(death) => (death.rank, format!("{} ({how})", death.how), Verdict::Code(code)),
            None => (Rank(index), how.to_string(), Verdict::Code(code)),
        };
        let waits: Vec<RankState> =
            self.ranks().into_iter().filter(|rank_state| rank_state.waits_in.is_some()).collect();
        if let (true, Some(node_state)) = (own, self.server.node_state()) {
            node_state.declare_dead(culprit, &cause, clock::now_ns());
        }
        let who = if own || self.server.node_state().is_some_and(|node_state| node_state.is_over()) {
            format!("rank {culprit}")
        } else {
            self.owners(&[index])
        };
        self.server.broadcast_death(culprit, &cause);
        let process = if own { culprit.index() } else { 0 };
        let what = match is_said {
            false => format!("died: {cause}"),
            // An error of the program is exit code 1, also where the process has not ended yet.
            true if process == index && code != 1 => format!("failed ({how})"),
            true => "failed".into(),
        };
        if is_said {
            // The rank's own messages come first.
            self.processes[process].read_all_stderr(&mut self.printer);
        }
        let hint = if code == KILLED { self.oom_kills.hint() } else { "" };
        self.printer.say(&format!("{who} {what}{}{hint}", report(&waits)));
        self.end(verdict, Termination::after_death(Instant::now(), self.options.grace));
    }

    /// A rank is dead, and the job is ending already. If a signal ended it that the launcher has not sent, it is the
    /// cause: another rank has noticed it and has failed and ended before the launcher saw this end.
    fn died_before_it_was_asked(&mut self, index: usize, how: &str, code: u8) {
        if let (Way::Processes, Some(node_state)) = (self.options.way, self.server.node_state()) {
            node_state.declare_dead(Rank(index), how, clock::now_ns());
        }
        let asked = self.termination.as_ref().and_then(|termination| termination.asked);
        let is_first = matches!(self.verdict, Some(Verdict::Code(other)) | Some(Verdict::OfProcess(_, other)) if !is_crash(other));
        if is_crash(code) && is_first && asked.is_some_and(|(_, when)| Instant::now() < when) {
            self.verdict = Some(Verdict::Code(code));
            self.printer.say(&format!("{} died: {how}", self.owners(&[index])));
        }
    }

    /// The owner of these processes: `rank 3`, `ranks 0-2, 5`, or, if one process has all ranks,
    /// that process.
    fn owners(&self, processes: &[usize]) -> String {
        match self.options.way {
            Way::Processes => names(processes),
            _ => format!("the process of {}", names(&(0..self.options.ranks).collect::<Vec<_>>())),
        }
    }

    /// The ranks whose processes have not ended.
    fn unfinished(&self) -> Option<String> {
        let living: Vec<usize> = self
            .processes
            .iter()
            .enumerate()
            .filter(|(_, p)| p.exit.is_none())
            .map(|(index, _)| index)
            .collect();
        (!living.is_empty()).then(|| self.owners(&living))
    }

    /// Tells the user which ranks have not ended, and when they are killed.
    pub(super) fn report_unfinished(&mut self, kill: Instant) {
        let left = kill.saturating_duration_since(Instant::now()).as_secs_f64();
        if let Some(who) = self.unfinished() {
            let second = "1 s after a second signal";
            self.printer
                .say(&format!("waiting for {who} to end; SIGKILL follows in {left:.0} s, or {second}"));
        }
    }

    /// Tells the user which ranks are killed.
    pub(super) fn report_killed(&mut self) {
        let Some(termination) = &self.termination else { return };
        let (Some((signal, when)), Some(who)) = (termination.asked, self.unfinished()) else { return };
        let asked = signal_name(signal.as_raw()).unwrap_or_default();
        if self.options.grace.is_zero() {
            self.printer.say(&format!("killed {who} right after {asked} (--grace 0)"));
            return;
        }
        let hint = if termination.is_hastened {
            ""
        } else {
            "\n  hint: `--grace TIME` gives ranks more time to end"
        };
        let time = when.elapsed().as_secs_f64();
        self.printer.say(&format!("killed {who}, which had not ended {time:.1} s after {asked}{hint}"));
    }

    fn end(&mut self, verdict: Verdict, termination: Termination) {
        self.verdict.get_or_insert(verdict);
        self.termination.get_or_insert(termination);
    }

    /// The time of `--timeout` is over.
    pub(super) fn timed_out(&mut self) {
        let limit = self.options.timeout.unwrap_or_default();
        let text = format!("the job has not ended within {limit:?} (--timeout){}", self.report_of_all());
        self.printer.say(&text);
        self.end(Verdict::Code(TIMED_OUT), Termination::at_once(Instant::now(), self.options.grace));
    }

    /// SIGINT or SIGTERM came: all ranks get it, and the job ends. A second signal shortens the
    /// time that is left.
    pub(super) fn interrupted(&mut self, signal: Signal) {
        let now = Instant::now();
        let (is_new, is_other) = match &mut self.termination {
            None => (true, true),
            Some(termination) => {
                (termination.second_signal(now), termination.asked.is_none_or(|(first, _)| first != signal))
            }
        };
        self.hurried = is_new && self.processes.iter().all(|process| process.gone);
        if is_new || is_other {
            self.request_exit(signal);
        }
        let termination = Termination::after_signal(signal, now, self.options.grace);
        self.end(Verdict::Code(128 + signal.as_raw() as u8), termination);
    }

    /// SIGHUP, SIGUSR1 or SIGUSR2 came: the ranks decide what it means.
    pub(super) fn forward_signal(&mut self, signal: Signal) {
        self.forwarded.push(signal);
        self.signal_all(signal);
    }

    /// Standard output cannot be written.
    pub(super) fn output_failed(&mut self, error: Errno) {
        if error != Errno::PIPE {
            self.printer.say(&format!("standard output: {error}"));
        }
        let code = if error == Errno::PIPE { CLOSED } else { 1 };
        self.end(Verdict::Code(code), Termination::at_once(Instant::now(), self.options.grace));
    }

    /// SIGQUIT: prints what every rank waits for. The job goes on.
    pub(super) fn report_waits(&mut self) {
        let text = format!(
            "job {} runs for {:.1?}{}",
            self.server.job(),
            self.started.elapsed(),
            self.report_of_all()
        );
        self.printer.say(&text);
    }

    /// Ctrl-Z: stops the ranks and the launcher.
    pub(super) fn pause(&mut self) {
        self.signal_all(Signal::TSTP);
        let _ = kill_process(getpid(), Signal::STOP);
    }

    /// SIGCONT: the ranks continue with the launcher.
    pub(super) fn resume(&mut self) {
        self.signal_all(Signal::CONT);
        self.stdin.iter_mut().for_each(StdinForwarder::resume);
    }

    /// Answers `tasuki ps`.
    pub(super) fn show(&mut self, id: u64) {
        let way = match self.options.way {
            Way::Processes => "processes",
            Way::Threads => "threads",
            Way::Simulated { .. } => "simulated",
        };
        let mut ranks = self.ranks();
        self.add_queues(&mut ranks);
        let snapshot = Snapshot {
            job: self.server.job().to_string(),
            program: self.options.program.to_string_lossy().into_owned(),
            way: way.to_string(),
            launcher: std::process::id(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            ranks,
            deadlocks: self.deadlocks(),
        };
        let reply = match serde_json::to_string(&snapshot) {
            Ok(text) => ServerReply::Report(text),
            Err(error) => ServerReply::Refused(error.to_string()),
        };
        self.server.reply(id, &reply);
    }

    /// The state of all ranks, and the deadlocks among them.
    fn report_of_all(&self) -> String {
        let (ranks, deadlocks) = (self.ranks(), self.deadlocks());
        let deadlocks: String =
            deadlocks.iter().map(|deadlock| format!("\n  {}", deadlock.text(&ranks))).collect();
        report(&ranks) + &deadlocks
    }

    /// The state of all ranks. Takes a few ms if one has just begun to wait and has not published
    /// its wait yet.
    fn ranks(&self) -> Vec<RankState> {
        let mut ranks: Vec<RankState> = (0..self.options.ranks).map(|rank| self.rank_state(rank)).collect();
        for _ in 0..SILENT_LOOKS {
            let is_silent =
                |rank_state: &RankState| rank_state.stage == WAITING && rank_state.waits_in.is_none();
            if !ranks.iter().any(is_silent) {
                break;
            }
            std::thread::sleep(SILENT_MAX);
            ranks
                .iter_mut()
                .filter(|rank_state| is_silent(rank_state))
                .for_each(|rank_state| *rank_state = self.rank_state(rank_state.rank));
        }
        ranks
    }

    /// The process of a rank.
    pub(super) fn pid(&self, rank: usize) -> u32 {
        match self.server.node_state().map_or(0, |node_state| node_state.rank_state(Rank(rank)).pid()) {
            0 => self.processes[rank.min(self.processes.len() - 1)].pid(),
            pid => pid,
        }
    }

    /// The name of a rank's threads, if its process also has the threads of other ranks.
    pub(super) fn thread_name(&self, rank: usize) -> Option<String> {
        (self.options.way == Way::Threads).then(|| format!("rank {rank}"))
    }

    /// The stage of a rank that has published no wait. A rank that sleeps on its park line has not
    /// waited long; for any other, the kernel tells whether it sleeps.
    fn without_wait(&self, rank: usize, pid: u32) -> &'static str {
        let is_parked = self
            .server
            .node_state()
            .is_some_and(|node_state| node_state.rank_state(Rank(rank)).park().is_asleep());
        if is_parked {
            return WAITING;
        }
        if let Way::Simulated { .. } = self.options.way {
            return RUNNING;
        }
        let (threads, name) = (threads_of(pid), self.thread_name(rank));
        let mut own = threads.iter().filter(|thread| name.as_ref().is_none_or(|name| thread.name == *name));
        let sleeps = own.next().is_some_and(|first| first.sleeps) && own.all(|thread| thread.sleeps);
        if sleeps { SLEEPING } else { RUNNING }
    }

    fn rank_state(&self, rank: usize) -> RankState {
        let process = &self.processes[rank.min(self.processes.len() - 1)];
        let node_state = self.server.node_state();
        let stage =
            node_state.map_or(RankStage::Absent, |node_state| node_state.rank_state(Rank(rank)).stage());
        let pid = self.pid(rank);
        let wait =
            node_state.filter(|_| process.exit.is_none()).and_then(|node_state| published(node_state, rank));
        let waits_for = wait.as_ref().and_then(|wait| wait.ended_by).map(|by| by.rank().index());
        let waited_s = wait.as_ref().map(waited_s);
        let waits_in = wait.map(|wait| wait.call);
        let stage = match (process.exit, stage) {
            (Some(exit), _) => format!("ended ({exit})"),
            (None, _) if is_stopped(pid) => "stopped".into(),
            (None, RankStage::Absent) if self.server.is_joining(Rank(rank)) => {
                "waiting for the others to join".into()
            }
            (None, RankStage::Absent) => "not joined".into(),
            (None, RankStage::Joined) if waits_in.is_some() => WAITING.into(),
            (None, RankStage::Joined) => self.without_wait(rank, pid).into(),
            (None, RankStage::Leaving) => "leaving".into(),
            (None, RankStage::Left) => "left".into(),
        };
        let handles_for = node_state
            .filter(|_| process.exit.is_none())
            .and_then(|node_state| node_state.rank_state(Rank(rank)).handles_for())
            .map(Rank::index);
        let send_buffer = node_state
            .filter(|_| process.exit.is_none())
            .and_then(|node_state| node_state.rank_state(Rank(rank)).send_buffer())
            .map(Into::into);
        let queues = Vec::new();
        RankState { rank, pid, stage, waits_in, waited_s, waits_for, handles_for, send_buffer, queues }
    }
}

/// The wait that a rank has published.
fn published(node_state: &NodeState, rank: usize) -> Option<PublishedWait> {
    node_state.rank_state(Rank(rank)).published_wait()
}

/// The duration of a wait, in seconds.
fn waited_s(wait: &PublishedWait) -> f64 {
    Duration::from_nanos(clock::now_ns().saturating_sub(wait.since_ns)).as_secs_f64()
}

/// Returns true if a debugger or Ctrl-Z has stopped the process.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['T', 't']))
}
