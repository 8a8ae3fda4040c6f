//! A process manager for tests that speaks PMI-1, like `mpiexec` of MPICH and Intel MPI. It starts
//! ranks, gives each one end of a socket pair as standard input, and answers their requests. A test
//! can make it answer wrongly.

use crate::case_runner::without_variables;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// Returns the answer to a request of a rank, given the correct answer; `None` closes the
/// connection.
pub type Manners = fn(usize, &str, String) -> Option<String>;

/// Gives the correct answer.
pub fn orderly(_rank: usize, _request: &str, answer: String) -> Option<String> {
    Some(answer)
}

/// The values that ranks have put, and the state of the barrier.
#[derive(Debug, Default)]
struct Space {
    values: BTreeMap<String, String>,
    arrived: usize,
    round: usize,
    finalized: usize,
}

/// State that the threads of all connections share.
#[derive(Debug)]
struct Shared {
    size: usize,
    space: Mutex<Space>,
    met: Condvar,
}

/// A running rank and its output.
#[derive(Debug)]
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    err: JoinHandle<String>,
}

/// A job that this manager started.
#[derive(Debug)]
pub struct Manager {
    shared: Arc<Shared>,
    ranks: Vec<Running>,
}

/// The end of a rank.
#[derive(Debug)]
pub struct Ended {
    /// The exit status of its process.
    pub status: ExitStatus,
    /// What it wrote to standard error.
    pub said: String,
}

impl Manager {
    /// Starts `size` ranks of a program, with `variables` in addition to those of PMI.
    pub fn start(
        program: &str,
        arguments: &[&str],
        size: usize,
        variables: &[(&str, &str)],
        manners: Manners,
    ) -> Manager {
        let shared = Arc::new(Shared { size, space: Mutex::new(Space::default()), met: Condvar::new() });
        let start = |rank: usize| {
            let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
            let shared = shared.clone();
            thread::spawn(move || shared.serve(rank, &ours, manners));
            let mut command = without_variables(Path::new(program));
            command.args(arguments).stdin(Stdio::from(OwnedFd::from(theirs)));
            run(with_pmi_variables(&mut command, rank, size).envs(variables.iter().copied()))
        };
        let ranks = (0..size).map(start).collect();
        Manager { shared, ranks }
    }

    /// Waits until each rank has written a line to standard output.
    pub fn read_lines(&mut self) {
        for rank in &mut self.ranks {
            let mut line = String::new();
            let len = rank.out.read_line(&mut line).expect("the output of a rank is text");
            assert!(len > 0, "a rank ended before it wrote a line");
        }
    }

    /// Sends SIGKILL to a rank.
    pub fn kill(&mut self, rank: usize) {
        self.ranks[rank].child.kill().expect("the rank is running");
    }

    /// Waits until all ranks have ended.
    pub fn wait(&mut self) -> Vec<Ended> {
        let ended = |mut rank: Running| {
            let status = rank.child.wait().expect("a child can be waited for");
            Ended { status, said: rank.err.join().expect("the output of a rank can be read") }
        };
        std::mem::take(&mut self.ranks).into_iter().map(ended).collect()
    }

    /// The number of ranks that have sent `finalize`.
    pub fn finalized(&self) -> usize {
        self.shared.space.lock().expect("no thread panicked while it held the lock").finalized
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.child.kill();
            let _ = rank.child.wait();
        }
    }
}

/// Sets the variables of PMI; the rank reaches the manager by its standard input.
fn with_pmi_variables(command: &mut Command, rank: usize, size: usize) -> &mut Command {
    let [rank, size] = [rank, size].map(|number| number.to_string());
    command.env("PMI_FD", "0").env("PMI_RANK", rank).env("PMI_SIZE", size)
}

fn run(command: &mut Command) -> Running {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let out = BufReader::new(child.stdout.take().expect("the output is a pipe"));
    let mut err = child.stderr.take().expect("the output is a pipe");
    let read = move || {
        let mut said = String::new();
        let _ = err.read_to_string(&mut said);
        said
    };
    Running { child, out, err: thread::spawn(read) }
}

impl Shared {
    /// Answers the requests of one rank until it closes the connection.
    fn serve(&self, rank: usize, stream: &UnixStream, manners: Manners) {
        let mut writer = stream;
        for request in BufReader::new(stream).lines().map_while(Result::ok) {
            let Some(answer) = manners(rank, &request, self.answer(&request)) else { return };
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &str) -> String {
        let fields: BTreeMap<&str, &str> =
            request.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or_default().to_string();
        let mut space = self.space.lock().expect("no thread panicked while it held the lock");
        match field("cmd").as_str() {
            "init" => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n".into(),
            "get_maxes" => "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n".into(),
            "get_my_kvsname" => "cmd=my_kvsname rc=0 kvsname=kvs_test\n".into(),
            "put" => {
                space.values.insert(field("key"), field("value"));
                "cmd=put_result rc=0 msg=success\n".into()
            }
            "get" => match space.values.get(&field("key")) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                None => "cmd=get_result rc=-1 msg=not_found value=unknown\n".into(),
            },
            "barrier_in" => {
                space.arrived += 1;
                if space.arrived == self.size {
                    space.arrived = 0;
                    space.round += 1;
                    self.met.notify_all();
                } else {
                    let round = space.round;
                    drop(self.met.wait_while(space, |space| space.round == round));
                }
                "cmd=barrier_out\n".into()
            }
            "finalize" => {
                space.finalized += 1;
                "cmd=finalize_ack\n".into()
            }
            other => panic!("{other} is not a request of PMI-1 that Tasuki needs"),
        }
    }
}
