//! The protocol PMI-1, from the side of a process that was started: lines of `key=value`, one answer to each request.
//!
//! After the description of the wire protocol in Flux RFC 13 and the table of messages that comes with MPICH
//! (`pmi-1.1.txt`), and what the process managers of MPICH 5 and Intel MPI 2021 answer. Keys and values have no spaces.
//! A request that a manager does not know ends the whole job, so none is made for trial.

use crate::base::{Cause, Error, Result};
use crate::os::socket;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long an answer may take that depends on no other process of the job.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this long in a barrier it is worth a remark.
const LONG: Duration = Duration::from_secs(10);
/// Longest line that is believed; managers say that values have a few thousand bytes at most.
const LINE_BYTES_MAX: usize = 64 << 10;
/// How much of a line that makes no sense is shown.
const SHOWN: usize = 200;

/// What an environment that is wrong is mended by.
const WAY_OUT: &str = "mpiexec sets PMI_FD, PMI_RANK and PMI_SIZE for the ranks that it starts; unset them for a \
    program that a rank starts, or to run a job of one. tasuki::main is called once in a process";

/// The connection to the process manager.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    unread: Vec<u8>,
    space: String,
    value_bytes_max: usize,
}

impl Client {
    /// Greets the process manager behind a descriptor that it left open for this process.
    pub(super) fn open(descriptor: RawFd) -> Result<Client> {
        let stream = socket::inherited(descriptor).map_err(|error| {
            Error::new(Cause::Join(format!(
                "PMI_FD={descriptor} is no connection to a process manager in this process ({})",
                error.headline()
            )))
            .note(WAY_OUT)
        })?;
        Client::greet(stream)
    }

    fn greet(stream: UnixStream) -> Result<Client> {
        stream.set_nonblocking(false).map_err(|error| Error::from_io("fcntl", &error))?;
        let (unread, space, value_bytes_max) = (Vec::new(), String::new(), 0);
        let mut client = Client { stream, unread, space, value_bytes_max };
        let init = client.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        if init.get("pmi_version") != Some("1") {
            return Err(init.wrong("it is not of version 1"));
        }
        let maxes = client.ask("cmd=get_maxes", "maxes")?;
        let limit = maxes.get("vallen_max").and_then(|value| value.parse::<usize>().ok());
        // The limit counts the zero byte at the end of a text of C.
        client.value_bytes_max = limit.ok_or_else(|| maxes.wrong("it lacks vallen_max"))?.saturating_sub(1);
        let name = client.ask("cmd=get_my_kvsname", "my_kvsname")?;
        client.space = name.get("kvsname").ok_or_else(|| name.wrong("it lacks kvsname"))?.to_string();
        Ok(client)
    }

    /// Longest value.
    pub(super) fn value_bytes_max(&self) -> usize {
        self.value_bytes_max
    }

    /// Makes a value known to all, once they have met.
    pub(super) fn put(&mut self, key: &str, value: &str) -> Result<()> {
        assert!(value.bytes().all(|byte| byte.is_ascii_graphic()), "a value as the protocol wants it");
        if value.len() > self.value_bytes_max {
            let (len, most) = (value.len(), self.value_bytes_max);
            let why = format!("the process manager takes values of {most} bytes, and {key} has {len}");
            return Err(Cause::Join(why).into());
        }
        let request = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        self.ask(&request, "put_result").map(drop)
    }

    /// The value that somebody put before all met.
    pub(super) fn get(&mut self, key: &str) -> Result<String> {
        let request = format!("cmd=get kvsname={} key={key}", self.space);
        let answer = self.ask(&request, "get_result")?;
        answer.get("value").map(str::to_string).ok_or_else(|| answer.wrong("it lacks the value"))
    }

    /// Waits until all processes of the job have come here. After a while `remark` is called, once.
    pub(super) fn barrier(&mut self, remark: impl FnOnce(Duration)) -> Result<()> {
        const REQUEST: &str = "cmd=barrier_in";
        self.send(REQUEST)?;
        let line = match self.line(REQUEST, Some(LONG))? {
            Some(line) => line,
            None => {
                remark(LONG);
                self.line(REQUEST, None)?.unwrap_or_default()
            }
        };
        PmiReply::read(REQUEST, line, "barrier_out").map(drop)
    }

    /// Takes leave: this process's end is no accident from now on. That fails only if the process manager has gone,
    /// who needs no telling then.
    pub(super) fn finalize(mut self) {
        let _ = self.ask("cmd=finalize", "finalize_ack");
    }

    fn ask(&mut self, request: &str, expected: &str) -> Result<PmiReply> {
        self.send(request)?;
        let line = self.line(request, Some(PATIENCE))?.ok_or_else(|| {
            let why = format!("the process manager has not answered `{request}` within {PATIENCE:?}");
            Error::new(Cause::Join(why)).note(WAY_OUT)
        })?;
        PmiReply::read(request, line, expected)
    }

    fn send(&mut self, request: &str) -> Result<()> {
        self.stream.write_all(format!("{request}\n").as_bytes()).map_err(|error| gone(request, &error))
    }

    /// The next line, without its end; `None` if it has not come in time.
    fn line(&mut self, request: &str, limit: Option<Duration>) -> Result<Option<String>> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.unread.len() > LINE_BYTES_MAX {
                let start = String::from_utf8_lossy(&self.unread[..SHOWN]).into_owned();
                return Err(nonsense(request, &start, "it has no end"));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            self.stream.set_read_timeout(left).map_err(|error| Error::from_io("setsockopt", &error))?;
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(gone(request, &ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(gone(request, &error)),
            }
        }
    }
}

/// A line of the process manager.
#[derive(Debug)]
struct PmiReply {
    request: String,
    line: String,
    fields: BTreeMap<String, String>,
}

impl PmiReply {
    /// Takes a line apart. An error unless it is the answer that was expected, and says that all is well.
    fn read(request: &str, line: String, expected: &str) -> Result<PmiReply> {
        let pairs = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let fields = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let answer = PmiReply { request: request.to_string(), line, fields };
        if answer.get("cmd") != Some(expected) {
            return Err(answer.wrong(&format!("`cmd={expected}` was expected")));
        }
        if answer.get("rc").is_some_and(|code| code != "0") {
            let shown = shown(&answer.line);
            let why = format!("the process manager refuses `{request}`: {shown:?}");
            return Err(Cause::Join(why).into());
        }
        Ok(answer)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.fields.get(key).map(String::as_str)
    }

    fn wrong(&self, why: &str) -> Error {
        nonsense(&self.request, &self.line, why)
    }
}

fn shown(line: &str) -> &str {
    &line[..line.floor_char_boundary(SHOWN)]
}

fn nonsense(request: &str, line: &str, why: &str) -> Error {
    let line = shown(line);
    let what = format!("the process manager's answer to `{request}` makes no sense ({why}): {line:?}");
    Error::new(Cause::Join(what)).note(WAY_OUT)
}

fn gone(request: &str, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::UnexpectedEof => "it has hung up".to_string(),
        _ => error.to_string(),
    };
    Error::new(Cause::Join(format!("the process manager does not answer `{request}`: {why}"))).note(WAY_OUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::thread;

    const GREETINGS: [&str; 3] = [
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n",
        "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=20\n",
        "cmd=my_kvsname kvsname=space\n",
    ];

    /// A manager that gives these answers, one to each line, and hangs up; what it was asked.
    fn manager(answers: &[&str]) -> (UnixStream, thread::JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_string()).collect();
        let serve = move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            let mut asked = Vec::new();
            for answer in answers {
                asked.push(lines.next().unwrap().unwrap());
                (&theirs).write_all(answer.as_bytes()).unwrap();
            }
            asked
        };
        (ours, thread::spawn(serve))
    }

    fn refusal(answers: &[&str]) -> String {
        let (stream, serving) = manager(answers);
        let error = Client::greet(stream).map(drop).unwrap_err().to_string();
        serving.join().unwrap();
        error
    }

    #[test]
    fn values_are_put_and_got() {
        let rest = [
            "cmd=put_result rc=0 msg=success\n",
            "cmd=barrier_out tag=0\n",
            "cmd=get_result rc=0 msg=success value=a=b\n",
            "cmd=get_result rc=-1 msg=key_x_not_found value=unknown\n",
            "cmd=finalize_ack\n",
        ];
        let (stream, serving) = manager(&[&GREETINGS[..], &rest[..]].concat());
        let mut client = Client::greet(stream).unwrap();
        assert!(client.put("key", &"x".repeat(20)).unwrap_err().to_string().contains("values of 19 bytes"));
        client.put("key", "a=b").unwrap();
        client.barrier(|_| panic!("it did not take long")).unwrap();
        assert_eq!(client.get("key").unwrap(), "a=b");
        assert!(client.get("x").unwrap_err().to_string().contains("key_x_not_found"));
        client.finalize();
        let asked = serving.join().unwrap();
        assert_eq!(asked[3], "cmd=put kvsname=space key=key value=a=b");
        assert_eq!((asked[4].as_str(), asked[7].as_str()), ("cmd=barrier_in", "cmd=finalize"));
    }

    #[test]
    fn answers_that_make_no_sense_are_shown() {
        let other = refusal(&["HTTP/1.1 400 Bad Request\n"]);
        assert!(other.contains("`cmd=init pmi_version=1") && other.contains("HTTP/1.1 400"), "{other}");
        assert!(refusal(&["cmd=response_to_init rc=0 pmi_version=2\n"]).contains("not of version 1"));
        assert!(refusal(&["cmd=response_to_init rc=-1 pmi_version=1\n"]).contains("refuses"));
        assert!(refusal(&[GREETINGS[0], "cmd=maxes vallen_max=much\n"]).contains("lacks vallen_max"));
        assert!(refusal(&[&"x".repeat(2 * LINE_BYTES_MAX)]).contains("it has no end"));
        assert!(refusal(&["\u{ff}\u{0}\n"]).contains("makes no sense"));
    }

    #[test]
    fn a_manager_that_goes_away_is_an_error() {
        assert!(refusal(&[]).contains("PMI_FD"));
        assert!(refusal(&GREETINGS[..2]).contains("does not answer `cmd=get_my_kvsname`"));
        let error = Client::open(-1).unwrap_err().to_string();
        assert!(error.contains("PMI_FD=-1 is no connection") && error.contains("unset"), "{error}");
    }
}
