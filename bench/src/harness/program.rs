//! A program that the bench started to measure: the ranks of a Tasuki job, or the program of another library. It
//! answers each line that it is sent with one line, within a time limit. When it has ended, none of its processes is
//! left.

use super::process_observation::{Process, await_end, below};
use anyhow::{Context, bail, ensure};
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tasuki_command::child::ends_with_us;

/// How long a program may take to start, to answer once, and to end; and how much time it has after each request to
/// end.
const START_MAX: Duration = Duration::from_secs(120);
const ANSWER_MAX: Duration = Duration::from_secs(120);
const END_MAX: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(2);
/// An error repeats at most this many of the last characters of the program's other output.
const SAID_MAX: usize = 1000;
/// An error repeats at most this many characters of the program's command line.
const LINE_MAX: usize = 200;

/// A running program.
pub(crate) struct Program {
    what: String,
    line: String,
    launcher: Child,
    process: Process,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// All output that was not an answer.
    said: Arc<Mutex<String>>,
    answer_max: Duration,
}

impl Program {
    /// Starts the program and returns its first answer, which says that it is ready.
    pub(crate) fn start<A: DeserializeOwned>(
        mut command: Command,
        what: String,
    ) -> anyhow::Result<(Program, A)> {
        let line: String = line_of(&command).chars().take(LINE_MAX).collect();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        ends_with_us(&mut command, Signal::TERM);
        let mut launcher = command.spawn().with_context(|| format!("{what}: starting {line}"))?;
        let output = BufReader::new(launcher.stdout.take().context("no output")?);
        let errors = BufReader::new(launcher.stderr.take().context("no standard error")?);
        let (input, process) = (launcher.stdin.take(), Process::open(launcher.id())?);
        let (sender, lines) = channel();
        let said = Arc::new(Mutex::new(String::new()));
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let seen = said.clone();
        std::thread::spawn(move || errors.lines().map_while(Result::ok).for_each(|line| note(&seen, &line)));
        let answer_max = ANSWER_MAX;
        let mut program = Program { what, line, launcher, process, input, lines, said, answer_max };
        let ready = program.answer(START_MAX)?;
        Ok((program, ready))
    }

    /// Sends a line, and waits for the answer.
    pub(crate) fn ask<A: DeserializeOwned>(&mut self, line: &str) -> anyhow::Result<A> {
        self.send(line);
        self.answer(self.answer_max)
    }

    /// Sends a line. Errors are ignored: if the program has ended, `answer` reports how it ended, which is more useful.
    fn send(&mut self, line: &str) {
        let _ = self.input.as_mut().map(|input| input.write_all(format!("{line}\n").as_bytes()));
    }

    fn answer<A: DeserializeOwned>(&mut self, limit: Duration) -> anyhow::Result<A> {
        let deadline = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(answer) => return Ok(answer),
                    Err(_) => note(&self.said, &line),
                },
                Err(RecvTimeoutError::Timeout) => {
                    bail!(self.failed(&format!("did not answer within {limit:?}")))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let how = match await_end([&self.process].into_iter(), END_MAX)? {
                        true => format!("ended ({})", self.launcher.wait()?),
                        false => "closed its output".into(),
                    };
                    std::thread::sleep(GRACE / 40); // its last output may not have arrived yet
                    bail!(self.failed(&how))
                }
            }
        }
    }

    /// Ends the program in the regular way.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.send("end");
        self.input = None;
        ensure!(await_end([&self.process].into_iter(), END_MAX)?, self.failed("did not end"));
        let status = self.launcher.wait()?;
        ensure!(status.success(), self.failed(&format!("failed in the end ({status})")));
        Ok(())
    }

    /// Returns an error about the program.
    pub(crate) fn failed(&self, how: &str) -> anyhow::Error {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = said.trim().chars().count().saturating_sub(SAID_MAX);
        let last: String = said.trim().chars().skip(skipped).collect();
        let last = if last.is_empty() { "nothing".to_owned() } else { last };
        anyhow::anyhow!("{} {how}; it said: {last}\n  started as: {}", self.what, self.line)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After the launcher has been waited for, another process may have its number. Its ranks end with it.
        if !matches!(self.launcher.try_wait(), Ok(None)) {
            return;
        }
        let all = below(self.process.id()).unwrap_or_default();
        let has_ended = |process: &Process| await_end(all.iter().chain([process]), GRACE).unwrap_or(false);
        // Closing its input does not suffice, because not every launcher passes the end of input on to the program.
        self.send("end");
        self.input = None;
        if !has_ended(&self.process) {
            let _ = self.process.send(Signal::TERM);
        }
        if !has_ended(&self.process) {
            let more = below(self.process.id()).unwrap_or_default();
            let left = all.iter().chain(&more).chain([&self.process]);
            for process in left {
                let _ = process.send(Signal::KILL);
            }
        }
        let _ = self.launcher.wait();
    }
}

fn note(said: &Mutex<String>, line: &str) {
    *said.lock().unwrap_or_else(PoisonError::into_inner) += &format!("{line}\n");
}

/// Returns a command as a user would type it.
pub(crate) fn line_of(command: &Command) -> String {
    let assigned = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())));
    let words = [command.get_program()].into_iter().chain(command.get_args());
    assigned.chain(words.map(|word| word.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(script: &str) -> anyhow::Result<Program> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program::start::<u64>(command, "fake".to_owned()).map(|(program, _)| program)
    }

    #[test]
    fn a_program_answers_each_line_until_its_end() {
        let mut program =
            fake("echo a launcher greets; echo 0; while read word && [ $word = go ]; do echo 7; done")
                .unwrap();
        assert_eq!([program.ask::<u64>("go").unwrap(), program.ask::<u64>("go").unwrap()], [7, 7]);
        program.end().unwrap();
        let failing = fake("echo 0; read word; exit 5").unwrap();
        assert!(failing.end().unwrap_err().to_string().contains("exit status: 5"));
    }

    #[test]
    fn a_program_that_fails_is_reported_with_its_last_words() {
        let Err(error) = fake("echo no such network >&2; exit 3") else { panic!("it came up") };
        let error = error.to_string();
        assert!(
            error.starts_with("fake ended (exit status: 3); it said: no such network\n  started as: sh -c"),
            "{error}"
        );
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_its_children() {
        let mut hanging = fake("sleep 1000 & echo 0; read word; wait").unwrap();
        hanging.answer_max = Duration::from_millis(200);
        let children = below(hanging.process.id()).unwrap();
        assert!(hanging.ask::<u64>("go").unwrap_err().to_string().contains("did not answer within 200ms"));
        drop(hanging);
        assert!(await_end(children.iter(), Duration::from_secs(60)).unwrap());
    }
}
