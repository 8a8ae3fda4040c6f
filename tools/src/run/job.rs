//! A running job: its processes, its rendezvous server, its output, and the event loop over them.

use super::binding;
use super::environment::ForRanks;
use super::keeper::Keeper;
use super::oom_kills::OomKills;
use super::options::{Options, Way};
use super::poll_sources::{PollSet, Source};
use super::printer::Printer;
use super::process::{Process, Start};
use super::program;
use super::signals::Signals;
use super::stdin::StdinForwarder;
use super::termination::{Step, Termination};
use super::verdict::Verdict;
use crate::trace::Trace;
use anyhow::Context;
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, set_child_subreaper};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tasuki_command::misuse;
use tasuki_core::base::Rank;
use tasuki_core::bootstrap::rendezvous_server::{
    Expected, JoinEvent, RendezvousServer, ServerSource, prefix,
};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::os::affinity;
use tasuki_core::os::child_status::Exit;
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::process::{allow_descriptors, effective_user};

/// Descriptors per process: its connection and memory file, two pipes, its pidfd, and the pidfd of
/// a descendant that is the rank.
const DESCRIPTORS_A_PROCESS: u64 = 6;
/// Time to write the remaining output of a job that was ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// An empty standard input for a rank that gets none. It also works without /dev/null.
fn no_input() -> std::io::Result<Stdio> {
    match std::fs::File::open("/dev/null") {
        Ok(file) => Ok(file.into()),
        Err(_) => std::io::pipe().map(|(read, _)| read.into()),
    }
}

/// A job of this launcher.
pub(super) struct Job {
    pub(super) options: Options,
    pub(super) started: Instant,
    pub(super) processes: Vec<Process>,
    pub(super) server: RendezvousServer,
    pub(super) printer: Printer,
    pub(super) termination: Option<Termination>,
    pub(super) verdict: Option<Verdict>,
    pub(super) stdin: Option<StdinForwarder>,
    pub(super) oom_kills: OomKills,
    signals: Signals,
    keeper: Keeper,
    /// System facilities to do without.
    denied: DisabledFeatures,
    /// The trace that is being recorded.
    trace: Option<Trace>,
    /// When the time of `--timeout` is over.
    limit: Option<Instant>,
    /// Set by a second Ctrl-C while the last lines are written.
    pub(super) hurried: bool,
    /// Signals that were forwarded to ranks which may go on.
    pub(super) forwarded: Vec<Signal>,
}

/// What is determined before any process is started.
struct LaunchPlan {
    program: PathBuf,
    processors: Vec<usize>,
}

impl LaunchPlan {
    fn new(options: &Options, environment: &ForRanks) -> anyhow::Result<LaunchPlan> {
        let allowed = affinity::allowed();
        let processors = binding::place(options.bind.as_ref(), options.ranks, options.way, &allowed)?;
        Ok(LaunchPlan { program: program::find(&options.program, environment.path())?, processors })
    }

    /// A program that the system refuses to start is misuse; a system that cannot start more
    /// processes is not.
    fn refused(&self, rank: usize, error: &std::io::Error) -> anyhow::Error {
        let text = format!("rank {rank}: {} could not be started: {error}", self.program.display());
        match error.kind() {
            ErrorKind::WouldBlock => {
                let remedy = "raise the limit of processes (`ulimit -u`, pids.max), or run fewer ranks";
                anyhow::anyhow!("{text}: {remedy}")
            }
            ErrorKind::OutOfMemory => anyhow::anyhow!("{text}: free memory, or run fewer ranks"),
            _ => misuse(text),
        }
    }
}

impl Job {
    /// Starts all processes.
    pub(super) fn start(mut options: Options) -> anyhow::Result<Job> {
        let started = Instant::now();
        let environment = ForRanks::new(&options.env)?;
        let mut plan = LaunchPlan::new(&options, &environment)?;
        let count = options.processes();
        let trace = environment.settings.trace.as_ref();
        let trace = trace.map(|to| Trace::begin(&to.file, options.ranks)).transpose()?;
        let files = getrlimit(Resource::Nofile);
        allow_descriptors(count as u64 * DESCRIPTORS_A_PROCESS + options.ranks as u64)
            .map_err(|error| misuse(format!("{} ranks are too many here: {error}", options.ranks)))?;
        let signals = Signals::catch()?;
        let expected = match options.way {
            Way::Processes => Expected::Ranks(options.ranks),
            Way::Threads | Way::Simulated { .. } => Expected::Host(options.ranks),
        };
        let wake = environment.settings.wake;
        let mut server =
            RendezvousServer::open(&prefix(effective_user()), expected, wake, affinity::usable())?;
        server.keep_files(); // for `tasuki ps`
        let mut printer = Printer::new(&mut options);
        environment.remarks.iter().for_each(|remark| printer.say(&format!("warning: {remark}")));
        if let Some(error) = binding::refusal(&plan.processors) {
            printer.say(&format!(
                "warning: --bind has no effect, ranks run anywhere: sched_setaffinity: {error}"
            ));
            plan.processors.clear();
        }
        // The launcher adopts orphans of its processes, so that it notices the end of the last one.
        set_child_subreaper(Some(getpid())).context("PR_SET_CHILD_SUBREAPER")?;
        let (keeper, refused) = Keeper::start(server.job()).context("a pipe could not be made")?;
        if let Some(error) = refused {
            let why =
                "the process that ends what ranks leave behind if tasuki run is killed could not be started";
            printer.say(&format!(
                "warning: {why}: {error}; descendants of ranks may outlive a kill -9 of tasuki run"
            ));
        }
        let limit = options.timeout.and_then(|time| started.checked_add(time));
        let (processes, stdin, termination, verdict) = (Vec::with_capacity(count), None, None, None);
        let mut job = Job {
            options,
            started,
            processes,
            server,
            printer,
            termination,
            verdict,
            stdin,
            oom_kills: OomKills::begin(),
            signals,
            keeper,
            denied: environment.settings.disabled,
            trace,
            limit,
            hurried: false,
            forwarded: Vec::new(),
        };
        if let Err(error) = job.start_processes(&plan, &environment, files) {
            job.abandon();
            return Err(error);
        }
        Ok(job)
    }

    fn start_processes(
        &mut self,
        plan: &LaunchPlan,
        environment: &ForRanks,
        files: Rlimit,
    ) -> anyhow::Result<()> {
        for index in 0..self.options.processes() {
            let carried = index == 0 && self.options.input && StdinForwarder::is_needed();
            let input = match (carried, index == 0 && self.options.input) {
                (true, _) => Stdio::piped(),
                (false, true) => Stdio::inherit(),
                (false, false) => no_input().context("a pipe could not be made")?,
            };
            let env =
                environment.of(index, &self.options, self.server.address(), self.printer.columns(index));
            let (keeper, denied) = (&self.keeper, self.denied);
            let (program, processor) = (plan.program.as_path(), plan.processors.get(index).copied());
            let start = Start { index, program, processor, env, input, keeper, files, denied };
            let (process, input) =
                Process::start(&self.options, start).map_err(|error| plan.refused(index, &error))?;
            self.processes.push(process);
            if let Some(input) = input {
                self.stdin = Some(StdinForwarder::new(input)?);
            }
        }
        Ok(())
    }

    /// Ends the processes that were started, without any message.
    fn abandon(mut self) {
        self.termination = Some(Termination::kill(Instant::now()));
        while !self.is_over() {
            self.poll_once();
        }
        self.keeper.release();
    }

    /// Runs the job to its end and returns its exit code.
    pub(super) fn run(mut self) -> anyhow::Result<u8> {
        while !self.is_over() {
            self.poll_once();
        }
        self.join_trace();
        self.flush();
        self.keeper.release();
        Ok(self.verdict.map_or(0, |verdict| verdict.code(&self.processes)))
    }

    /// Joins the ranks' traces. A job that went well fails if its trace cannot be written.
    fn join_trace(&mut self) {
        let Some(trace) = self.trace.take() else { return };
        match trace.join() {
            Ok(remarks) => remarks.iter().for_each(|remark| self.printer.say(&format!("warning: {remark}"))),
            Err(error) => {
                self.printer.say(&format!("error: {error:#}"));
                self.verdict.get_or_insert(Verdict::Code(1));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.processes.iter().all(|process| process.gone)
    }

    /// Sleeps until an event or a deadline, and handles it.
    fn poll_once(&mut self) {
        for source in self.watch().wait(self.deadline()) {
            self.handle(source);
        }
        self.run_timers(Instant::now());
    }

    fn watch(&self) -> PollSet<'_> {
        let mut watch = PollSet::default();
        watch.read(Source::Signals, self.signals.descriptor());
        self.printer.watch(&mut watch);
        self.server.watch(&mut watch, Source::RendezvousServer);
        self.processes.iter().for_each(|process| process.watch(&mut watch, &self.printer));
        self.stdin.iter().for_each(|stdin| stdin.watch(&mut watch));
        watch
    }

    fn deadline(&self) -> Option<Instant> {
        let termination = self.termination.as_ref().map_or(self.limit, Termination::deadline);
        let lost = self.processes.iter().filter_map(|process| process.lost).min();
        [termination, lost, self.server.deadline(), self.unfinished_until()].into_iter().flatten().min()
    }

    /// When the earliest unfinished line of a rank is to be printed.
    fn unfinished_until(&self) -> Option<Instant> {
        let lines = self.processes.iter().filter(|_| self.printer.takes_unfinished());
        lines.filter_map(Process::unfinished_until).min()
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Signals => self.take_signals(),
            Source::RendezvousServer(caller) => self.serve(caller),
            Source::Pipe(index, stream) => self.processes[index].read(stream, &mut self.printer),
            Source::End => self.check_processes(),
            Source::OutputReady(stream) => {
                if let Err(error) = self.printer.write(stream) {
                    self.output_failed(error);
                }
            }
            Source::Input => self.stdin.iter_mut().for_each(StdinForwarder::read),
            Source::RankInput => self.stdin.iter_mut().for_each(StdinForwarder::feed),
        }
    }

    fn serve(&mut self, source: ServerSource) {
        for event in self.server.handle(source) {
            match event {
                JoinEvent::Came(rank) => {
                    self.keep_rank(rank);
                    self.check_that_all_can_come();
                }
                JoinEvent::Lost(rank) => self.connection_ended(rank),
                JoinEvent::Asks(id) => self.show(id),
                JoinEvent::CannotAccept(number) => {
                    let error = std::io::Error::from_raw_os_error(number);
                    let way_out = "it waits until that is possible (see `ulimit -n`)";
                    self.printer.say(&format!(
                        "warning: a process that connects to the job cannot be accepted: {error}; {way_out}"
                    ));
                }
            }
        }
        self.server.send_memberships();
    }

    /// A rank has joined. Its process may be a descendant of the one that the launcher started.
    fn keep_rank(&mut self, rank: Rank) {
        let Some(pid) = self.server.node_state().map(|node_state| node_state.rank_state(rank).pid()) else {
            return;
        };
        self.processes[rank.index()].has_joined(pid, &self.keeper, self.denied);
    }

    fn take_signals(&mut self) {
        for signal in self.signals.take() {
            match signal {
                Signal::CHILD => {
                    self.check_keeper();
                    self.check_processes();
                }
                Signal::CONT => self.resume(),
                Signal::TSTP => self.pause(),
                Signal::QUIT => self.report_waits(),
                Signal::HUP | Signal::USR1 | Signal::USR2 => self.forward_signal(signal),
                signal => self.interrupted(signal),
            }
        }
    }

    /// A keeper that was killed is replaced: without one, ranks would outlive a launcher that is
    /// killed next.
    fn check_keeper(&mut self) {
        let living = self.processes.iter().filter(|process| !process.gone);
        let groups = living.filter_map(|process| Pid::from_raw(process.pid() as i32));
        let ranks = self.processes.iter().filter_map(Process::rank);
        if let Err(error) = self.keeper.revive(groups, ranks) {
            let text = "the keeper was killed, and another one cannot be started";
            self.printer
                .say(&format!("warning: {text}: {error}; ranks will outlive a kill -9 of tasuki run"));
        }
    }

    /// Handles the processes that have ended.
    fn check_processes(&mut self) {
        let Job { processes, keeper, printer, .. } = self;
        let look = |(index, process): (usize, &mut Process)| Some((index, process.look(keeper, printer)?));
        let mut ended: Vec<(usize, Exit)> = processes.iter_mut().enumerate().filter_map(look).collect();
        // Ranks that failed because another one was killed may have ended since: that one comes first.
        ended.sort_by_key(|(_, exit)| !matches!(exit, Exit::Signal { .. }));
        ended.into_iter().for_each(|(index, exit)| self.process_ended(index, exit));
    }

    /// Handles the deadlines that have passed.
    fn run_timers(&mut self, now: Instant) {
        if self.server.deadline().is_some_and(|when| when <= now) {
            self.server.send_memberships();
        }
        if self.unfinished_until().is_some_and(|when| when <= now) {
            self.processes.iter_mut().for_each(|process| process.flush_partial(now, &mut self.printer));
        }
        if let Some(index) = self.processes.iter().position(|p| p.lost.is_some_and(|when| when <= now)) {
            self.program_ended(index);
        }
        if self.termination.is_none() && self.limit.is_some_and(|when| when <= now) {
            self.timed_out();
        }
        while let Some(step) = self.termination.as_mut().and_then(|termination| termination.due(now)) {
            self.run_step(step);
        }
    }

    fn run_step(&mut self, step: Step) {
        match step {
            Step::TerminateUnjoined => {
                let strangers =
                    self.processes.iter().enumerate().filter(|(index, _)| !self.has_joined(*index));
                strangers.for_each(|(_, process)| process.signal(Signal::TERM));
            }
            Step::Terminate => self.request_exit(Signal::TERM),
            Step::Remind(kill) => self.report_unfinished(kill),
            Step::Kill => {
                self.report_killed();
                self.signal_all(Signal::KILL);
            }
            Step::GiveUp => {
                for process in self.processes.iter_mut().filter(|process| !process.gone) {
                    process.gone = true;
                    let pid = process.pid();
                    self.printer
                        .say(&format!("process {pid} or a descendant of it does not end, even by SIGKILL"));
                }
            }
        }
    }

    /// Asks every process to end by a signal. A stopped process is continued, since it could not
    /// handle the signal otherwise.
    pub(super) fn request_exit(&self, signal: Signal) {
        self.signal_all(signal);
        self.signal_all(Signal::CONT);
    }

    /// Sends a signal to every process and its descendants.
    pub(super) fn signal_all(&self, signal: Signal) {
        self.processes.iter().for_each(|process| process.signal(signal));
    }

    /// Returns true if the process has connected to the server, or if it has all ranks and has
    /// joined.
    fn has_joined(&self, index: usize) -> bool {
        match (self.options.way, self.server.node_state()) {
            (Way::Processes, Some(node_state)) => {
                let rank = Rank(index);
                self.server.is_joining(rank) || node_state.rank_state(rank).stage() != RankStage::Absent
            }
            (_, node_state) => node_state.is_some(),
        }
    }

    /// Writes the remaining output: without a time limit if the job ended by itself, otherwise for
    /// [`LAST_WORDS`].
    fn flush(&mut self) {
        let patience = self.verdict.is_some().then(|| Instant::now() + LAST_WORDS);
        while self.printer.has_waiting() && !self.hurried && patience.is_none_or(|end| Instant::now() < end) {
            let mut watch = PollSet::default();
            watch.read(Source::Signals, self.signals.descriptor());
            self.printer.watch(&mut watch);
            for source in watch.wait(patience) {
                self.handle(source);
            }
        }
    }
}
