//! A client of the PMI-1 protocol: lines of `key=value`, one answer to each request.
//!
//! Sources: the description of the wire protocol in Flux RFC 13, the table of messages in MPICH
//! (`pmi-1.1.txt`), and the answers of the process managers of MPICH 5 and Intel MPI 2021. Keys and
//! values contain no spaces. A manager ends the whole job after a request that it does not know, so
//! the client makes no request to find out if it is supported.

use crate::base::{Cause, Error, Result};
use crate::os::socket;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The timeout of an answer that depends on no other process of the job.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The time in a barrier after which a rank warns.
const WARN_AFTER: Duration = Duration::from_secs(10);
/// The most bytes of a line. Managers report that values have a few thousand bytes at most.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The most bytes of a malformed line that an error shows.
const SHOWN: usize = 200;

/// The advice for a wrong environment.
const ADVICE: &str = "mpiexec sets PMI_FD, PMI_RANK and PMI_SIZE for the ranks that it starts; unset them for a \
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
    /// Opens the connection that the process manager left open for this process as `descriptor`.
    pub(super) fn open(descriptor: RawFd) -> Result<Client> {
        let stream = socket::inherited(descriptor).map_err(|error| {
            Error::new(Cause::Join(format!(
                "PMI_FD={descriptor} is not a connection to a process manager in this process ({})",
                error.headline()
            )))
            .note(ADVICE)
        })?;
        Client::initialize(stream)
    }

    fn initialize(stream: UnixStream) -> Result<Client> {
        stream.set_nonblocking(false).map_err(|error| Error::from_io("fcntl", &error))?;
        let (unread, space, value_bytes_max) = (Vec::new(), String::new(), 0);
        let mut client = Client { stream, unread, space, value_bytes_max };
        let init = client.request("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        if init.get("pmi_version") != Some("1") {
            return Err(init.malformed("it is not of version 1"));
        }
        let maxes = client.request("cmd=get_maxes", "maxes")?;
        let limit = maxes.get("vallen_max").and_then(|value| value.parse::<usize>().ok());
        // The limit counts the zero byte at the end of a C string.
        client.value_bytes_max =
            limit.ok_or_else(|| maxes.malformed("it lacks vallen_max"))?.saturating_sub(1);
        let name = client.request("cmd=get_my_kvsname", "my_kvsname")?;
        client.space = name.get("kvsname").ok_or_else(|| name.malformed("it lacks kvsname"))?.to_string();
        Ok(client)
    }

    /// Returns the most bytes of a value.
    pub(super) fn value_bytes_max(&self) -> usize {
        self.value_bytes_max
    }

    /// Puts a value, which all ranks can get after the next barrier.
    pub(super) fn put(&mut self, key: &str, value: &str) -> Result<()> {
        assert!(value.bytes().all(|byte| byte.is_ascii_graphic()), "a value of printable characters");
        if value.len() > self.value_bytes_max {
            let (len, most) = (value.len(), self.value_bytes_max);
            let why = format!("the process manager accepts values of {most} bytes, but {key} has {len}");
            return Err(Cause::Join(why).into());
        }
        let request = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        self.request(&request, "put_result").map(drop)
    }

    /// Gets a value that a rank put before the last barrier.
    pub(super) fn get(&mut self, key: &str) -> Result<String> {
        let request = format!("cmd=get kvsname={} key={key}", self.space);
        let answer = self.request(&request, "get_result")?;
        answer.get("value").map(str::to_string).ok_or_else(|| answer.malformed("it lacks the value"))
    }

    /// Waits until all processes of the job have entered the barrier. Calls `warn` once if that takes long.
    pub(super) fn barrier(&mut self, warn: impl FnOnce(Duration)) -> Result<()> {
        const REQUEST: &str = "cmd=barrier_in";
        self.send(REQUEST)?;
        let line = match self.receive_line(REQUEST, Some(WARN_AFTER))? {
            Some(line) => line,
            None => {
                warn(WARN_AFTER);
                self.receive_line(REQUEST, None)?.unwrap_or_default()
            }
        };
        PmiReply::parse(REQUEST, line, "barrier_out").map(drop)
    }

    /// Finalizes PMI: from now on the process manager does not take this process's end for a
    /// failure. Ignores errors: they occur only if the process manager has ended.
    pub(super) fn finalize(mut self) {
        let _ = self.request("cmd=finalize", "finalize_ack");
    }

    fn request(&mut self, request: &str, expected: &str) -> Result<PmiReply> {
        self.send(request)?;
        let line = self.receive_line(request, Some(ANSWER_TIMEOUT))?.ok_or_else(|| {
            let why = format!("the process manager has not answered `{request}` within {ANSWER_TIMEOUT:?}");
            Error::new(Cause::Join(why)).note(ADVICE)
        })?;
        PmiReply::parse(request, line, expected)
    }

    fn send(&mut self, request: &str) -> Result<()> {
        self.stream.write_all(format!("{request}\n").as_bytes()).map_err(|error| gone(request, &error))
    }

    /// Receives the next line, without its newline; `None` if it has not come in time.
    fn receive_line(&mut self, request: &str, limit: Option<Duration>) -> Result<Option<String>> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.unread.len() > LINE_BYTES_MAX {
                let start = String::from_utf8_lossy(&self.unread[..SHOWN]).into_owned();
                return Err(malformed(request, &start, "it has no end"));
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

/// A parsed line from the process manager.
#[derive(Debug)]
struct PmiReply {
    request: String,
    line: String,
    fields: BTreeMap<String, String>,
}

impl PmiReply {
    /// Parses a line. Error: it is not the expected answer, or it reports a failure.
    fn parse(request: &str, line: String, expected: &str) -> Result<PmiReply> {
        let pairs = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let fields = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let answer = PmiReply { request: request.to_string(), line, fields };
        if answer.get("cmd") != Some(expected) {
            return Err(answer.malformed(&format!("`cmd={expected}` was expected")));
        }
        if answer.get("rc").is_some_and(|code| code != "0") {
            let shown = shown(&answer.line);
            let why = format!("the process manager refused `{request}`: {shown:?}");
            return Err(Cause::Join(why).into());
        }
        Ok(answer)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.fields.get(key).map(String::as_str)
    }

    fn malformed(&self, why: &str) -> Error {
        malformed(&self.request, &self.line, why)
    }
}

fn shown(line: &str) -> &str {
    &line[..line.floor_char_boundary(SHOWN)]
}

fn malformed(request: &str, line: &str, why: &str) -> Error {
    let line = shown(line);
    let text = format!("the process manager's answer to `{request}` is malformed ({why}): {line:?}");
    Error::new(Cause::Join(text)).note(ADVICE)
}

fn gone(request: &str, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::UnexpectedEof => "it has closed the connection".to_string(),
        _ => error.to_string(),
    };
    Error::new(Cause::Join(format!("the process manager does not answer `{request}`: {why}"))).note(ADVICE)
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

    /// A manager that sends these answers, one to each line, and closes the connection. Returns the requests.
    fn manager(answers: &[&str]) -> (UnixStream, thread::JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_string()).collect();
        let serve = move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            let mut requests = Vec::new();
            for answer in answers {
                requests.push(lines.next().unwrap().unwrap());
                // A client that has read too much closes the connection before all is written.
                if (&theirs).write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
            requests
        };
        (ours, thread::spawn(serve))
    }

    fn refusal(answers: &[&str]) -> String {
        let (stream, serving) = manager(answers);
        let error = Client::initialize(stream).map(drop).unwrap_err().to_string();
        serving.join().unwrap();
        error
    }

    #[test]
    fn put_barrier_get_and_finalize_send_the_right_requests() {
        let rest = [
            "cmd=put_result rc=0 msg=success\n",
            "cmd=barrier_out tag=0\n",
            "cmd=get_result rc=0 msg=success value=a=b\n",
            "cmd=get_result rc=-1 msg=key_x_not_found value=unknown\n",
            "cmd=finalize_ack\n",
        ];
        let (stream, serving) = manager(&[&GREETINGS[..], &rest[..]].concat());
        let mut client = Client::initialize(stream).unwrap();
        assert!(client.put("key", &"x".repeat(20)).unwrap_err().to_string().contains("values of 19 bytes"));
        client.put("key", "a=b").unwrap();
        client.barrier(|_| panic!("it did not take long")).unwrap();
        assert_eq!(client.get("key").unwrap(), "a=b");
        assert!(client.get("x").unwrap_err().to_string().contains("key_x_not_found"));
        client.finalize();
        let requests = serving.join().unwrap();
        assert_eq!(requests[3], "cmd=put kvsname=space key=key value=a=b");
        assert_eq!((requests[4].as_str(), requests[7].as_str()), ("cmd=barrier_in", "cmd=finalize"));
    }

    #[test]
    fn malformed_answers_are_shown_in_the_error() {
        let other = refusal(&["HTTP/1.1 400 Bad Request\n"]);
        assert!(other.contains("`cmd=init pmi_version=1") && other.contains("HTTP/1.1 400"), "{other}");
        assert!(refusal(&["cmd=response_to_init rc=0 pmi_version=2\n"]).contains("not of version 1"));
        assert!(refusal(&["cmd=response_to_init rc=-1 pmi_version=1\n"]).contains("refused"));
        assert!(refusal(&[GREETINGS[0], "cmd=maxes vallen_max=much\n"]).contains("lacks vallen_max"));
        assert!(refusal(&[&"x".repeat(2 * LINE_BYTES_MAX)]).contains("it has no end"));
        assert!(refusal(&["\u{ff}\u{0}\n"]).contains("is malformed"));
    }

    #[test]
    fn a_manager_that_closes_the_connection_is_an_error() {
        assert!(refusal(&[]).contains("PMI_FD"));
        assert!(refusal(&GREETINGS[..2]).contains("does not answer `cmd=get_my_kvsname`"));
        let error = Client::open(-1).unwrap_err().to_string();
        assert!(error.contains("PMI_FD=-1 is not a connection") && error.contains("unset"), "{error}");
    }
}
