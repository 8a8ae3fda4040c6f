//! A peer's program that was started: it answers one line for each it is sent, within a time limit, and nothing of it
//! is left when it is over.

use super::line_of;
use crate::cases::buffer_state::State;
use crate::harness::process_observation::{self, Process};
use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tasuki_command::child::ends_with_us;

/// How long a program may take; more means that it hangs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// To come up.
    pub(super) start: Duration,
    /// For one repetition.
    pub(super) repetition: Duration,
    /// To end when it is asked to.
    pub(super) end: Duration,
    /// To end when nobody wants it any more: first by itself, then told by a signal. Some libraries leave their shared
    /// memory in the file system if they are killed.
    pub(super) grace: Duration,
}

impl Limits {
    /// Launchers take seconds where ranks are many; the slowest repetition, a thousand calls of a library that spins
    /// with more ranks than processors, some ten seconds.
    pub(super) const USUAL: Limits = Limits {
        start: Duration::from_secs(60),
        repetition: Duration::from_secs(60),
        end: Duration::from_secs(10),
        grace: Duration::from_secs(2),
    };
}

/// Of what a program says apart from its answers, this many last characters are told if it fails.
const SAID_MAX: usize = 1000;
/// Bytes that are taken from a pipe at once.
const PIECE: usize = 4096;

/// What a program says on a line.
#[derive(Deserialize)]
#[serde(untagged)]
enum PeerAnswer {
    Figure { value: f64, ranks: usize, bytes: u64 },
    Ready { ready: String },
}

/// One of a program's two outputs.
struct OutputStream {
    /// `None` when it has ended.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl OutputStream {
    fn new(pipe: impl Into<OwnedFd>) -> OutputStream {
        OutputStream { pipe: Some(pipe.into()), bytes: Vec::new() }
    }

    /// Takes in what there is; whoever calls knows that there is something, or the end.
    fn fill(&mut self) -> rustix::io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut piece = [0; PIECE];
        match read(pipe, &mut piece) {
            Ok(0) => self.pipe = None,
            Ok(count) => self.bytes.extend_from_slice(&piece[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The first line, if a whole one is there.
    fn line(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|&byte| byte == b'\n')?;
        let line = self.bytes.drain(..=end).collect::<Vec<u8>>();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

/// A program that waits to be asked.
pub(crate) struct Running {
    /// For messages: library, setting, case.
    what: String,
    /// How it was started.
    line: String,
    /// Ranks that its figures are to be of.
    ranks: usize,
    limits: Limits,
    launcher: Child,
    root: Process,
    input: Option<ChildStdin>,
    answers: OutputStream,
    said: OutputStream,
}

impl Running {
    /// Starts a program, and waits until it says that it is ready. `ranks` is what its figures are to be of.
    pub(super) fn start(
        mut command: Command,
        what: String,
        ranks: usize,
        limits: Limits,
    ) -> anyhow::Result<Running> {
        let line = line_of(&command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        ends_with_us(&mut command, Signal::TERM);
        let mut launcher = command.spawn().with_context(|| format!("{what}: starting {line}"))?;
        let (input, output) = (launcher.stdin.take(), launcher.stdout.take().context("no output")?);
        let said = launcher.stderr.take().context("no standard error")?;
        let (answers, said) = (OutputStream::new(output), OutputStream::new(said));
        let root = Process::open(launcher.id())?;
        let mut program = Running { what, line, ranks, limits, launcher, root, input, answers, said };
        match program.answer(limits.start, "did not come up")? {
            PeerAnswer::Ready { .. } => Ok(program),
            PeerAnswer::Figure { .. } => bail!(program.failed("gave a figure that nobody had asked for")),
        }
    }

    /// Has it measure once, blocks of that size in that state. The figure is in the unit of its case: ns, or bytes or
    /// messages a second.
    pub(crate) fn repetition(&mut self, wanted: u64, state: State) -> anyhow::Result<f64> {
        self.tell(&format!("go {wanted} {} {}\n", state.temperature(), state.buffers()))?;
        match self.answer(self.limits.repetition, "did not answer")? {
            PeerAnswer::Figure { value, ranks, bytes } => {
                ensure!(value.is_finite() && value > 0.0, self.failed(&format!("measured {value}")));
                // A launcher that does not fit the library starts as many jobs of one rank.
                let is_expected = (ranks, bytes) == (self.ranks, wanted);
                ensure!(is_expected, self.failed(&format!("measured {ranks} ranks, {bytes} bytes")));
                Ok(value)
            }
            PeerAnswer::Ready { ready } => {
                bail!(self.failed(&format!("said again that it was ready ({ready})")))
            }
        }
    }

    /// Lets it end by itself; an error if it fails in doing so.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.tell("end\n")?;
        self.input = None;
        let deadline = Instant::now() + self.limits.end;
        while self.answers.pipe.is_some() || self.said.pipe.is_some() {
            ensure!(self.listen(deadline)?, self.failed("did not end"));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(process_observation::await_end([&self.root].into_iter(), left)?, self.failed("did not end"));
        let status = self.launcher.wait()?;
        ensure!(status.success(), self.failed(&format!("failed in the end ({status})")));
        Ok(())
    }

    fn tell(&mut self, word: &str) -> anyhow::Result<()> {
        let told = self.input.as_mut().is_some_and(|input| input.write_all(word.as_bytes()).is_ok());
        // Where it has ended, how it did says more than that it cannot be told anything.
        if told { Ok(()) } else { self.answer(self.limits.end, "hears nothing").map(drop) }
    }

    /// The next answer. Other lines on standard output come from launchers; they are kept with what was said.
    fn answer(&mut self, limit: Duration, failure: &str) -> anyhow::Result<PeerAnswer> {
        let deadline = Instant::now() + limit;
        loop {
            while let Some(line) = self.answers.line() {
                match serde_json::from_str(&line) {
                    Ok(answer) => return Ok(answer),
                    Err(_) => self.said.bytes.extend_from_slice(format!("{line}\n").as_bytes()),
                }
            }
            if self.answers.pipe.is_none() {
                return Err(self.ended(deadline)?);
            }
            if !self.listen(deadline)? {
                bail!(self.failed(&format!("{failure} within {limit:?}")));
            }
        }
    }

    /// Takes in what comes on either output; false if nothing does until the deadline.
    fn listen(&mut self, deadline: Instant) -> anyhow::Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        let streams = [&mut self.answers, &mut self.said];
        let mut open: Vec<&mut OutputStream> =
            streams.into_iter().filter(|stream| stream.pipe.is_some()).collect();
        let pipes = open.iter().filter_map(|stream| stream.pipe.as_ref());
        let mut wanted: Vec<PollFd<'_>> = pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
        let come: Vec<bool> = match poll(&mut wanted, Some(&Timespec::try_from(left)?)) {
            Ok(0) => return Ok(false),
            Ok(_) => wanted.iter().map(|one| !one.revents().is_empty()).collect(),
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        for (stream, _) in open.iter_mut().zip(come).filter(|(_, has_come)| *has_come) {
            stream.fill()?;
        }
        Ok(true)
    }

    /// What to say of a program that has ended, or at least closed its output, before it was asked to.
    fn ended(&mut self, deadline: Instant) -> anyhow::Result<anyhow::Error> {
        while self.said.pipe.is_some() && self.listen(deadline)? {}
        let left = deadline.saturating_duration_since(Instant::now());
        if !process_observation::await_end([&self.root].into_iter(), left)? {
            return Ok(self.failed("closed its output"));
        }
        let status = self.launcher.wait()?;
        Ok(self.failed(&format!("ended ({status})")))
    }

    /// An error about it, with its last words and the way it was started.
    fn failed(&self, how: &str) -> anyhow::Error {
        let said = String::from_utf8_lossy(&self.said.bytes);
        let skipped = said.trim().chars().count().saturating_sub(SAID_MAX);
        let last: String = said.trim().chars().skip(skipped).collect();
        let last = if last.is_empty() { "nothing".to_owned() } else { last };
        anyhow::anyhow!("{} {how}; it said: {last}\n  started as: {}", self.what, self.line)
    }

    /// Ends the launcher and everything below it: gently where that works.
    fn stop(&mut self) {
        // Once the launcher is buried its number may be another's, and its group; its ranks end with it.
        if !matches!(self.launcher.try_wait(), Ok(None)) {
            return;
        }
        let mut all = process_observation::below(self.root.id()).unwrap_or_default();
        // A program that waits hears it. The end of its input alone does not do: not every launcher hands that on.
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"end\n");
        }
        if !self.has_ended(&all) {
            let _ = self.root.send(Signal::TERM);
        }
        if !self.has_ended(&all) {
            all.extend(process_observation::below(self.root.id()).unwrap_or_default());
            self.kill(&all);
        }
        let _ = self.launcher.wait();
    }

    fn has_ended(&self, below: &[Process]) -> bool {
        let all = below.iter().chain([&self.root]);
        process_observation::await_end(all, self.limits.grace).unwrap_or(false)
    }

    /// Launchers put ranks into groups of their own, so the group alone is not enough. Of processes that have ended
    /// meanwhile each of these is an error to ignore.
    fn kill(&self, below: &[Process]) {
        for process in below.iter().chain([&self.root]) {
            let _ = process.send(Signal::KILL);
        }
        if let Some(group) = Pid::from_raw(self.root.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: Limits = Limits {
        start: Duration::from_secs(60),
        repetition: Duration::from_millis(200),
        end: Duration::from_secs(60),
        grace: Duration::from_millis(50),
    };

    const PATIENT: Limits = Limits { repetition: Duration::from_secs(60), ..BRIEF };

    /// A peer that is a shell script.
    fn fake(script: &str, limits: Limits) -> anyhow::Result<Running> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Running::start(command, "fake (default): message".to_owned(), 2, limits)
    }

    const HOT: State = State { cold: false, fresh: false };

    /// Answers 1, 2, 3 ..; the second script argument to `echo` is what real programs say.
    const COUNTS: &str = r#"
        echo a launcher greets; echo '{"ready":"message"}'; n=0
        while read word shape && [ $word = go ]; do
            n=$((n + 1)); echo "{\"case\":\"message\",\"ranks\":2,\"bytes\":8,\"value\":$n}"
        done"#;

    fn told(result: anyhow::Result<f64>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn two_peers_take_turns() {
        let (mut a, mut b) = (fake(COUNTS, PATIENT).unwrap(), fake(COUNTS, PATIENT).unwrap());
        let taken: Vec<f64> =
            (0..3).flat_map(|_| [a.repetition(8, HOT).unwrap(), b.repetition(8, HOT).unwrap()]).collect();
        assert_eq!(taken, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        a.end().unwrap();
        b.end().unwrap();
    }

    #[test]
    fn a_peer_that_fails_is_told_with_its_last_words() {
        let Err(error) = fake("echo no such network >&2; exit 3", PATIENT) else { panic!("it came up") };
        let error = error.to_string();
        assert!(error.starts_with("fake (default): message ended (exit status: 3)"), "{error}");
        assert!(error.contains("it said: no such network\n  started as: sh -c"), "{error}");
        let mut later = fake(r#"echo '{"ready":""}'; read word; echo oh >&2; exit 4"#, PATIENT).unwrap();
        assert!(told(later.repetition(8, HOT)).contains("ended (exit status: 4); it said: oh"));
        assert!(told(later.repetition(8, HOT)).contains("exit status: 4"));
    }

    #[test]
    fn a_peer_that_hangs_is_ended_with_its_children() {
        let script = r#"sleep 1000 & echo '{"ready":""}'; read word; wait"#;
        let mut hanging = fake(script, BRIEF).unwrap();
        let children = process_observation::below(hanging.root.id()).unwrap();
        assert!(told(hanging.repetition(8, HOT)).contains("did not answer within 200ms"));
        drop(hanging);
        assert!(process_observation::await_end(children.iter(), Duration::from_secs(60)).unwrap());
    }

    #[test]
    fn a_peer_that_nobody_wants_any_more_ends_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("cleaned-up");
        let script = format!(r#"echo '{{"ready":""}}'; read word; touch {}"#, mark.display());
        let patient = Limits { grace: Duration::from_secs(60), ..PATIENT };
        drop(fake(&script, patient).unwrap());
        assert!(mark.exists());
    }

    #[test]
    fn figures_of_something_else_are_refused() {
        let once = |answer: &str| {
            let script = format!("echo '{{\"ready\":\"\"}}'; read word; echo '{answer}'; read word");
            told(fake(&script, PATIENT).unwrap().repetition(8, HOT))
        };
        assert!(once(r#"{"ranks":1,"bytes":8,"value":3}"#).contains("measured 1 ranks, 8 bytes"));
        assert!(once(r#"{"ranks":2,"bytes":8,"value":0}"#).contains("measured 0"));
        assert!(once(r#"{"ready":"message"}"#).contains("ready"));
    }

    #[test]
    fn an_end_that_fails_is_an_error() {
        let failing = fake(r#"echo '{"ready":""}'; read word; exit 5"#, PATIENT).unwrap();
        assert!(failing.end().unwrap_err().to_string().contains("exit status: 5"));
    }
}
