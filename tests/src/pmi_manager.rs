//! A process manager that speaks PMI-1, as the `mpiexec` of MPICH and Intel MPI do: it starts ranks, each with a socket
//! of its own as standard input, and answers them. It can be told to answer otherwise than it should.

use crate::case_runner::without_variables;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// What is answered to a rank's request, given the answer that would be right; `None` hangs up.
pub type Manners = fn(usize, &str, String) -> Option<String>;

/// Answers as it should.
pub fn orderly(_rank: usize, _request: &str, answer: String) -> Option<String> {
    Some(answer)
}

/// What the ranks have told, and who waits in the barrier.
#[derive(Debug, Default)]
struct Space {
    values: BTreeMap<String, String>,
    arrived: usize,
    round: usize,
    finalized: usize,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    size: usize,
    space: Mutex<Space>,
    met: Condvar,
}

/// A rank that is running, with what is heard of it.
#[derive(Debug)]
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    err: JoinHandle<String>,
}

/// A job under this manager.
#[derive(Debug)]
pub struct Manager {
    shared: Arc<Shared>,
    ranks: Vec<Running>,
}

/// How a rank ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// What it wrote to standard error.
    pub said: String,
}

impl Manager {
    /// Starts `size` ranks of a program, with these variables beside the protocol's own.
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
            run(tell(&mut command, rank, size).envs(variables.iter().copied()))
        };
        let ranks = (0..size).map(start).collect();
        Manager { shared, ranks }
    }

    /// Waits until each rank has written a line, and forgets it.
    pub fn hear_all(&mut self) {
        for rank in &mut self.ranks {
            let mut line = String::new();
            let heard = rank.out.read_line(&mut line).expect("what a rank writes is text");
            assert!(heard > 0, "a rank ended before it said anything");
        }
    }

    /// Kills a rank as `kill -9` does.
    pub fn kill(&mut self, rank: usize) {
        self.ranks[rank].child.kill().expect("the rank is running");
    }

    /// Waits for all ranks to end.
    pub fn wait(&mut self) -> Vec<Ended> {
        let ended = |mut rank: Running| {
            let status = rank.child.wait().expect("a child can be waited for");
            Ended { status, said: rank.err.join().expect("what a rank writes can be read") }
        };
        std::mem::take(&mut self.ranks).into_iter().map(ended).collect()
    }

    /// How many ranks have taken leave of the manager.
    pub fn finalized(&self) -> usize {
        self.shared.space.lock().expect("nobody panics with it").finalized
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

/// Tells a program that it is a rank, with its standard input as the way to the manager.
fn tell(command: &mut Command, rank: usize, size: usize) -> &mut Command {
    let [rank, size] = [rank, size].map(|number| number.to_string());
    command.env("PMI_FD", "0").env("PMI_RANK", rank).env("PMI_SIZE", size)
}

fn run(command: &mut Command) -> Running {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started");
    let out = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut err = child.stderr.take().expect("it is a pipe");
    let read = move || {
        let mut said = String::new();
        let _ = err.read_to_string(&mut said);
        said
    };
    Running { child, out, err: thread::spawn(read) }
}

impl Shared {
    /// Answers one rank until it goes.
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
        let mut space = self.space.lock().expect("nobody panics with it");
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
            other => panic!("{other} is no request of PMI-1 that Tasuki needs"),
        }
    }
}
