//! Jobs of processes from inside a test: what `tasuki run` does, without its command.

use crate::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tasuki_core::base::{Cause, Rank};
use tasuki_core::bootstrap::environment_variables::{self as names, SetBy, VARIABLES};
use tasuki_core::bootstrap::rendezvous_server::{Expected, RendezvousServer, ServerSource, prefix};
use tasuki_core::node::node_state::RankStage;
use tasuki_core::os::clock;
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::poll::PollSet;
use tasuki_core::os::process::{self, affinity, child_status};

/// Time that a job has unless [`Processes::timeout`] is called.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time that the other ranks have to end by themselves after one has failed.
const GRACE: Duration = Duration::from_secs(5);
/// The processes are looked at this often where the kernel cannot tell when one ends.
const LOOK_AFTER: Duration = Duration::from_millis(10);
/// Time to wait for more output after a process has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Most lines that an error shows of what a rank has printed: a panic with its stack trace has about 30.
const LAST_LINES: usize = 60;

/// Ranks that are processes, to be started by [`Processes::run`].
///
/// ```
/// // Any program will do, also one that does not know of the job.
/// let outputs = tasuki::processes(3, "/bin/sh").args(["-c", "echo done"]).run()?;
/// assert_eq!(outputs.len(), 3);
/// assert!(outputs.iter().all(|output| output.stdout == b"done\n"));
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is started before `run`"]
pub struct Processes {
    ranks: usize,
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    timeout: Duration,
}

/// Describes a job of `ranks` processes that run `program`, for a test of that program. It needs no installed command.
///
/// Under Cargo, `env!("CARGO_BIN_EXE_name")` is the path of a program of the tested package. Binding, tracing, and
/// input are what `tasuki run` is for.
///
/// ```no_run
/// # fn check() -> tasuki::Result<()> {
/// let outputs = tasuki::processes(4, "target/debug/prog").arg("--check").run()?;
/// assert!(String::from_utf8_lossy(&outputs[0].stdout).contains("all right"));
/// # Ok(())
/// # }
/// ```
pub fn processes(ranks: usize, program: impl AsRef<OsStr>) -> Processes {
    let program = program.as_ref().to_owned();
    Processes { ranks, program, arguments: Vec::new(), variables: Vec::new(), timeout: TIMEOUT }
}

impl Processes {
    /// Adds an argument.
    ///
    /// ```
    /// let outputs = tasuki::processes(1, "/bin/echo").arg("--steps").arg("100").run()?;
    /// assert_eq!(outputs[0].stdout, b"--steps 100\n");
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn arg(self, argument: impl AsRef<OsStr>) -> Processes {
        self.args([argument])
    }

    /// Adds arguments.
    ///
    /// ```
    /// // Any program will do, also one that does not know of the job.
    /// let echo = tasuki::processes(2, "/bin/sh").args(["-c", "echo $GREETING"]).env("GREETING", "hello");
    /// let outputs = echo.run()?;
    /// assert!(outputs.iter().all(|output| output.stdout == b"hello\n"));
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Processes {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable of the ranks. They also have those of the calling process.
    ///
    /// ```
    /// let shell = tasuki::processes(2, "/bin/sh").args(["-c", "echo $SIZE"]).env("SIZE", "100");
    /// assert_eq!(shell.run()?[1].stdout, b"100\n");
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Processes {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the time after which the job is ended. Default: 60 s.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tasuki::ErrorKind;
    /// let endless = tasuki::processes(1, "/bin/sh").args(["-c", "while true; do :; done"]);
    /// let error = endless.timeout(Duration::from_millis(10)).run().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::TimedOut);
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Processes {
        self.timeout = limit;
        self
    }

    /// Starts the processes, waits until all have ended, and returns what each rank has printed.
    ///
    /// If a rank fails, the others have 5 s to end by themselves, and are killed then. Standard input is empty. The
    /// processes are killed with the calling thread. Errors: the first rank that failed, with its exit code or signal
    /// and the end of what it has printed (kind `Program`); the job has not ended in time, with the calls in which
    /// ranks wait (kind `TimedOut`); the program cannot be started (kind `System`).
    ///
    /// ```
    /// use tasuki::ErrorKind;
    /// let outputs = tasuki::processes(2, "/bin/echo").arg("hello").run()?;
    /// assert_eq!(outputs[1].stdout, b"hello\n");
    /// let error = tasuki::processes(1, "/bin/sh").args(["-c", "echo no input; exit 3"]).run().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Program);
    /// assert!(error.to_string().contains("no input"));
    /// # Ok::<(), tasuki::Error>(())
    /// ```
    pub fn run(self) -> Result<Vec<Output>> {
        if self.ranks == 0 {
            return Err(Error::argument("a job has at least one rank"));
        }
        let expected = Expected::Ranks(self.ranks);
        let user = process::effective_user();
        let server = RendezvousServer::open(&prefix(user), expected, None, affinity::usable())?;
        let mut job = RunningJob { server, ranks: Vec::new(), failed: None };
        for rank in 0..self.ranks {
            let process = RankProcess::start(self.command(rank, &job.server))?;
            job.ranks.push(process);
        }
        job.finish(self.timeout)
    }

    /// Returns what starts a rank.
    fn command(&self, rank: usize, server: &RendezvousServer) -> Command {
        let mut command = Command::new(&self.program);
        let of_launchers = VARIABLES.iter().filter(|variable| variable.set_by == SetBy::Launcher);
        for variable in of_launchers {
            command.env_remove(variable.name);
        }
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(names::RANK, rank.to_string()).env(names::SIZE, self.ranks.to_string());
        command.env(names::JOB_SOCKET, &server.address().socket);
        command.env(names::KEY, server.address().key.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        process::end_with_this_thread(&mut command);
        command
    }
}

/// The process of a rank. Dropping it kills it.
struct RankProcess {
    child: Child,
    /// Becomes readable when the process has ended.
    end: Option<OwnedFd>,
    /// How it ended.
    status: Option<ExitStatus>,
    /// The threads that read what it prints: on standard output and standard error.
    printed: [Option<Reader>; 2],
}

impl RankProcess {
    fn start(mut command: Command) -> Result<RankProcess> {
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy().into_owned();
            Error::from_io("execve", &error).in_call(|| format!("processes({program})"))
        })?;
        let end = process::pidfd(child.id(), DisabledFeatures::default());
        let printed = [child.stdout.take().map(Reader::start), child.stderr.take().map(Reader::start)];
        Ok(RankProcess { child, end, status: None, printed })
    }

    /// Returns what the process has printed, when it has ended.
    fn output(&mut self) -> Output {
        let until = Instant::now() + LAST_WORDS;
        let [stdout, stderr] = self
            .printed
            .each_mut()
            .map(|reader| reader.take().map_or_else(Vec::new, |reader| reader.finish(until)));
        Output { status: self.status.unwrap_or_default(), stdout, stderr }
    }
}

impl Drop for RankProcess {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A thread that reads what a process prints.
struct Reader {
    thread: JoinHandle<()>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Reader {
    fn start(mut from: impl Read + Send + 'static) -> Reader {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let into = bytes.clone();
        let thread = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..count]);
            }
        });
        Reader { thread, bytes }
    }

    /// Returns what came until all writers have closed the pipe, but at the latest until then: a process that the rank
    /// has started may live on and keep it open.
    fn finish(self, until: Instant) -> Vec<u8> {
        while !self.thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A job whose processes have been started.
struct RunningJob {
    server: RendezvousServer,
    ranks: Vec<RankProcess>,
    /// A rank that failed.
    failed: Option<usize>,
}

/// What [`RunningJob`] waits for.
#[derive(Clone, Copy)]
enum Source {
    Server(ServerSource),
    End,
}

impl RunningJob {
    /// Waits until all processes have ended.
    fn finish(mut self, timeout: Duration) -> Result<Vec<Output>> {
        let mut deadline = Instant::now() + timeout;
        let mut waits = None;
        while self.ranks.iter().any(|rank| rank.status.is_none()) {
            self.wait(deadline);
            let had_failed = self.failed.is_some();
            self.look_for_ends();
            if self.failed.is_some() && !had_failed {
                deadline = deadline.min(Instant::now() + GRACE);
            }
            if Instant::now() >= deadline {
                waits = waits.or(Some(self.waits()).filter(|_| self.failed.is_none()));
                self.kill();
            }
        }
        if let Some(waits) = waits {
            let error = Error::new(Cause::TimedOut { after: timeout }).in_call(|| "processes()".into());
            return Err(waits.into_iter().fold(error, Error::note));
        }
        let outputs: Vec<Output> = self.ranks.iter_mut().map(RankProcess::output).collect();
        let Some(failed) = self.failed else { return Ok(outputs) };
        // Others may have ended before the one because of which they failed.
        let first = self.server.node_state().and_then(|state| state.death()).map(|death| death.rank.index());
        let rank = first.filter(|&first| !outputs[first].status.success()).unwrap_or(failed);
        Err(failure(rank, &outputs[rank]))
    }

    /// Waits for the next event of the job, and serves the ranks that join.
    fn wait(&mut self, deadline: Instant) {
        let mut watch = PollSet::default();
        self.server.watch(&mut watch, Source::Server);
        let mut until = self.server.deadline().map_or(deadline, |when| when.min(deadline));
        for rank in self.ranks.iter().filter(|rank| rank.status.is_none()) {
            match &rank.end {
                Some(end) => watch.read(Source::End, end.as_fd()),
                None => until = until.min(Instant::now() + LOOK_AFTER),
            }
        }
        for source in watch.wait(Some(until)) {
            if let Source::Server(source) = source {
                self.server.handle(source); // that a connection has ended is seen when its process ends
            }
        }
        self.server.send_memberships();
    }

    /// Looks which processes have ended, and tells the other ranks if one has failed.
    fn look_for_ends(&mut self) {
        for index in 0..self.ranks.len() {
            let process = &mut self.ranks[index];
            if process.status.is_some() {
                continue;
            }
            let status = match process.child.try_wait() {
                Ok(Some(status)) => status,
                Ok(None) => continue,
                Err(_) => unknown_status(), // SIGCHLD is ignored: the kernel has forgotten it
            };
            process.status = Some(status);
            if status.success() && self.has_left(Rank(index)) {
                continue;
            }
            self.failed.get_or_insert(index);
            let how = how_ended(status);
            if let Some(state) = self.server.node_state() {
                state.declare_dead(Rank(index), &how, clock::now_ns());
            }
            self.server.broadcast_death(Rank(index), &how);
        }
    }

    /// Returns true if the rank needs nobody any more: it has left the job, or was never in it.
    fn has_left(&self, rank: Rank) -> bool {
        match self.server.node_state() {
            Some(state) => matches!(state.rank_state(rank).stage(), RankStage::Left | RankStage::Absent),
            None => true,
        }
    }

    /// Describes in which calls the ranks wait, a line for each.
    fn waits(&self) -> Vec<String> {
        let Some(state) = self.server.node_state() else { return vec!["no rank has joined".into()] };
        let living = (0..self.ranks.len()).filter(|&rank| self.ranks[rank].status.is_none());
        living
            .map(|rank| match state.rank_state(Rank(rank)).published_wait() {
                Some(wait) => format!("rank {rank} waits in {}", wait.call),
                None => format!("rank {rank} computes, or waits outside of Tasuki"),
            })
            .collect()
    }

    /// Kills the processes that have not ended.
    fn kill(&mut self) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.status.is_none()) {
            let _ = rank.child.kill();
            rank.status = Some(rank.child.wait().unwrap_or_else(|_| unknown_status()));
        }
    }
}

/// The status of a process whose end the kernel does not report: exit code 255.
fn unknown_status() -> ExitStatus {
    ExitStatus::from_raw(255 << 8)
}

/// Describes how a process ended.
fn how_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code().unwrap_or_default()) {
        (Some(signal), _) => {
            let name = child_status::signal_name(signal).map_or(String::new(), |name| format!(", {name}"));
            format!("signal {signal}{name}")
        }
        (None, 0) => "exit code 0 without leaving the job".into(),
        (None, code) => format!("exit code {code}"),
    }
}

/// Returns the error for a rank that has failed, with the end of what it has printed.
fn failure(rank: usize, output: &Output) -> Error {
    let printed = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let printed = String::from_utf8_lossy(printed);
    let lines: Vec<&str> = printed.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    let text = format!("its process has ended: {}", how_ended(output.status));
    let error = Error::new(Cause::Program(text)).on_rank(Rank(rank));
    if last.is_empty() { error } else { error.note(format!("it has printed:\n{last}")) }
}
