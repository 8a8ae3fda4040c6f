//! A process of the job: starts it, reads its output, and watches for its end and that of its
//! descendants.

use crate::run::keeper::Keeper;
use crate::run::line_buffer::LineBuffer;
use crate::run::options::{Options, Stream};
use crate::run::poll_sources::{PollSet, Source, never_wait};
use crate::run::printer::Printer;
use crate::run::rank_process::RankProcess;
use crate::run::spawn::{self, SpawnOptions};
use rustix::process::{
    Pid, Rlimit, Signal, getpgid, kill_process, kill_process_group, test_kill_process_group,
};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Instant;
use tasuki_core::os::child_status::{ChildSelector, ChildStatus, Exit, look, reap};
use tasuki_core::os::disabled_features::DisabledFeatures;
use tasuki_core::os::process::pidfd;

/// How many times a pipe is read after its process ended. It is more than a pipe holds, so nothing
/// is lost, and bounded, in case a process that left the group goes on writing.
const LAST_READS_MAX: usize = 32;

/// A process that the launcher started.
pub(crate) struct Process {
    index: usize,
    pid: Pid,
    pidfd: Option<OwnedFd>,
    out: OutputPipe,
    err: OutputPipe,
    /// How the process ended.
    pub(crate) exit: Option<Exit>,
    /// True if neither the process nor a member of its group is left.
    pub(crate) gone: bool,
    /// If its connection closed before the rank left: when to declare it dead.
    pub(crate) lost: Option<Instant>,
    /// The descendant that has joined as the rank, if there is one and until it has ended.
    rank: Option<RankProcess>,
}

/// One of its two output streams, until it is closed.
struct OutputPipe {
    pipe: Option<OwnedFd>,
    lines: LineBuffer,
}

/// What a process is started with.
pub(crate) struct Start<'a> {
    /// Its number among the job's processes.
    pub(crate) index: usize,
    /// The program's file.
    pub(crate) program: &'a Path,
    /// The processor to which it is bound.
    pub(crate) processor: Option<usize>,
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub(crate) input: Stdio,
    /// The keeper that ends the process if the launcher is killed.
    pub(crate) keeper: &'a Keeper,
    /// The limit of open files with which the launcher was started.
    pub(crate) files: Rlimit,
    /// System facilities to do without.
    pub(crate) denied: DisabledFeatures,
}

impl Process {
    /// Starts a process in a group of its own.
    pub(crate) fn start(options: &Options, start: Start<'_>) -> io::Result<(Process, Option<ChildStdin>)> {
        let Start { index, program, processor, env, input, keeper, files, denied } = start;
        let mut command = Command::new(program);
        command.arg0(&options.program).args(&options.args).env_clear().envs(env);
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn::rank(command, SpawnOptions { keeper: keeper.pipe(), processor, files })?;
        let pid = Pid::from_child(&child);
        let out = OutputPipe::new(child.stdout.take().map(OwnedFd::from))?;
        let err = OutputPipe::new(child.stderr.take().map(OwnedFd::from))?;
        let pidfd = pidfd(child.id(), denied);
        let (exit, gone, lost, rank) = (None, false, None, None);
        Ok((Process { index, pid, pidfd, out, err, exit, gone, lost, rank }, child.stdin.take()))
    }

    /// Records that the process `pid` has joined as the rank. If it is a descendant, it is ended
    /// like the process itself.
    pub(crate) fn has_joined(&mut self, pid: u32, keeper: &Keeper, denied: DisabledFeatures) {
        if let Some(pid) = Pid::from_raw(pid as i32).filter(|&pid| pid != self.pid) {
            keeper.keep_rank(pid);
            self.rank = Some(RankProcess::new(pid, denied));
        }
    }

    /// The descendant that has joined as the rank, if it has not ended.
    pub(crate) fn rank(&self) -> Option<Pid> {
        self.rank.as_ref().map(RankProcess::pid)
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// Adds the descriptors to wait for: output pipes while the printer has room, and the end of
    /// the process.
    pub(crate) fn watch<'f>(&'f self, watch: &mut PollSet<'f>, printer: &Printer) {
        for (stream, output_pipe) in [(Stream::Out, &self.out), (Stream::Err, &self.err)] {
            match &output_pipe.pipe {
                Some(pipe) if printer.takes(stream) => {
                    watch.read(Source::Pipe(self.index, stream), pipe.as_fd())
                }
                _ => {}
            }
        }
        // Without a pidfd, only SIGCHLD reports the end.
        if let (Some(pidfd), None) = (&self.pidfd, self.exit) {
            watch.read(Source::End, pidfd.as_fd());
        }
        if let Some(pidfd) = self.rank.as_ref().and_then(RankProcess::descriptor) {
            watch.read(Source::End, pidfd);
        }
    }

    /// Reads what the process wrote.
    pub(crate) fn read(&mut self, stream: Stream, printer: &mut Printer) {
        let index = self.index;
        self.output_pipe(stream).read(|lines| printer.put(index, stream, lines));
    }

    /// Reads everything that the process has written to standard error so far.
    pub(crate) fn read_all_stderr(&mut self, printer: &mut Printer) {
        let index = self.index;
        for _ in 0..LAST_READS_MAX {
            if !self.err.read(|lines| printer.put(index, Stream::Err, lines)) {
                break;
            }
        }
    }

    /// When the beginning of a line should be printed.
    pub(crate) fn unfinished_until(&self) -> Option<Instant> {
        [&self.out, &self.err].into_iter().filter_map(|output_pipe| output_pipe.lines.deadline()).min()
    }

    /// Prints the beginnings of lines that have waited long enough for the rest.
    pub(crate) fn flush_partial(&mut self, now: Instant, printer: &mut Printer) {
        let index = self.index;
        for stream in [Stream::Out, Stream::Err] {
            let lines = &mut self.output_pipe(stream).lines;
            if lines.deadline().is_some_and(|when| when <= now) {
                lines.flush_partial(|part| printer.put(index, stream, part));
            }
        }
    }

    fn output_pipe(&mut self, stream: Stream) -> &mut OutputPipe {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    /// Sends a signal to the process and its descendants.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.gone {
            return;
        }
        let _ = kill_process_group(self.pid, signal);
        // A shell that believes it is interactive moves to another group.
        if self.exit.is_none() && getpgid(Some(self.pid)).is_ok_and(|group| group != self.pid) {
            let _ = kill_process(self.pid, signal);
        }
        self.signal_rank(signal);
    }

    /// Sends a signal to a descendant that is the rank, if the signal to the group does not reach
    /// it.
    fn signal_rank(&self, signal: Signal) {
        self.rank.iter().for_each(|rank| rank.signal(signal, |group| group == self.pid));
    }

    /// Checks for the end of the process and of its group. Returns how the process ended, if it has
    /// just ended.
    ///
    /// The group is killed before the process is reaped: after that, another group may get its
    /// number.
    pub(crate) fn look(&mut self, keeper: &Keeper, printer: &mut Printer) -> Option<Exit> {
        let mut news = None;
        if let (None, ChildStatus::Ended(_, exit)) = (self.exit, look(ChildSelector::Child(self.pid()))) {
            let _ = kill_process_group(self.pid, Signal::KILL);
            self.signal_rank(Signal::KILL);
            self.read_rest(printer);
            keeper.forget(self.pid);
            self.pidfd = None;
            self.exit = Some(exit);
            reap(self.pid());
            news = Some(exit);
        }
        if let Some(rank) = self.rank.take_if(|rank| rank.has_ended()) {
            rank.end_group();
            keeper.forget_rank(rank.pid());
            reap(rank.pid().as_raw_nonzero().get() as u32); // if its parents have ended, it is a child of the launcher
        }
        if !self.gone {
            self.reap_orphans();
        }
        news
    }

    /// Reaps descendants whose parents ended before them: the launcher is their subreaper.
    fn reap_orphans(&mut self) {
        loop {
            match look(ChildSelector::Group(self.pid())) {
                ChildStatus::Ended(pid, _) if pid != self.pid() || self.exit.is_some() => reap(pid),
                ChildStatus::Nobody if self.exit.is_some() => {
                    self.gone = self.rank.is_none() && test_kill_process_group(self.pid).is_err();
                    return;
                }
                _ => return,
            }
        }
    }

    fn read_rest(&mut self, printer: &mut Printer) {
        let index = self.index;
        for stream in [Stream::Out, Stream::Err] {
            let output_pipe = self.output_pipe(stream);
            for _ in 0..LAST_READS_MAX {
                if !output_pipe.read(|lines| printer.put(index, stream, lines)) {
                    break;
                }
            }
            output_pipe.close(|lines| printer.put(index, stream, lines));
        }
    }
}

impl OutputPipe {
    fn new(pipe: Option<OwnedFd>) -> io::Result<OutputPipe> {
        pipe.as_ref().map_or(Ok(()), |pipe| never_wait(pipe.as_fd()))?;
        Ok(OutputPipe { pipe, lines: LineBuffer::default() })
    }

    /// Reads once. Returns true if there may be more to read.
    fn read(&mut self, out: impl FnMut(&[u8])) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut bytes = [0; 64 << 10];
        match rustix::io::read(pipe, &mut bytes) {
            Ok(0) => {
                self.close(out);
                false
            }
            Ok(count) => {
                self.lines.push(&bytes[..count], Instant::now(), out);
                true
            }
            Err(_) => false,
        }
    }

    fn close(&mut self, out: impl FnOnce(&[u8])) {
        self.pipe = None;
        self.lines.flush_partial(out);
    }
}
