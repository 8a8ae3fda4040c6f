//! A rank that takes the steps that its arguments name, one after the other. The launcher's tests
//! start it. It uses only the core crate, so that it can also do what no program should.
//!
//! ```text
//! tasuki run -n 4 target/debug/examples/scripted_rank join @1:exit:3 wait leave
//! ```
//!
//! | step | what the rank does |
//! |---|---|
//! | `@R:STEP` | takes `STEP` if it is rank R |
//! | `join`, `leave` | joins or leaves the job |
//! | `meet` | waits until all ranks have joined |
//! | `wait` | waits as a call does, until a rank has died |
//! | `fail:WHY` | reports that it gives up, for this reason |
//! | `say:TEXT` | prints the text |
//! | `sleep:MS` | sleeps for this time |
//! | `hold` | sleeps for ever |
//! | `until:PATH` | sleeps until there is such a file |
//! | `child` | starts a child process that sleeps for ever |
//! | `exit:N`, `abort` | ends its process |

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;
use tasuki_core::base::{Rank, Result};
use tasuki_core::bootstrap::{JobConnection, Membership, Settings, join};
use tasuki_core::node::node_state::{PublishedWait, RankStage, UnderWay};
use tasuki_core::node::park::DOZING;
use tasuki_core::os::{clock, futex, process};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn until(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The state of the program between two steps.
#[derive(Default)]
struct State {
    joined: Option<(Membership, JobConnection)>,
}

fn run() -> Result<ExitCode> {
    let rank = std::env::var("TASUKI_RANK").or_else(|_| std::env::var("PMI_RANK")).unwrap_or_default();
    let mut state = State::default();
    for argument in std::env::args().skip(1) {
        let step = match argument.strip_prefix('@').and_then(|rest| rest.split_once(':')) {
            Some((whose, _)) if whose != rank => continue,
            Some((_, step)) => step,
            None => &argument,
        };
        let (verb, object) = step.split_once(':').unwrap_or((step, ""));
        if let Some(code) = state.take(verb, object)? {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl State {
    /// Takes one step. Returns the exit code if it is the last.
    fn take(&mut self, verb: &str, object: &str) -> Result<Option<ExitCode>> {
        match verb {
            "join" => self.joined = Some(join(&Settings::from_environment()?)?),
            "leave" => self.joined.take().into_iter().for_each(|(_, connection)| connection.leave()),
            "meet" => self.meet(),
            "wait" => return Ok(Some(self.wait())),
            "fail" => {
                let membership = self.membership();
                membership.node_state.declare_dead(membership.rank, object, clock::now_ns());
            }
            "say" => writeln!(std::io::stdout(), "{object}").expect("standard output"),
            "sleep" => std::thread::sleep(Duration::from_millis(object.parse().expect("milliseconds"))),
            "hold" => std::thread::sleep(Duration::from_secs(3600)),
            "until" => until(Path::new(object)),
            "child" => drop(Command::new("sleep").arg("3600").spawn().expect("a descendant")),
            "exit" => return Ok(Some(ExitCode::from(object.parse::<u8>().expect("an exit code")))),
            "abort" => std::process::abort(),
            other => panic!("{other} is no step"),
        }
        Ok(None)
    }

    fn membership(&self) -> &Membership {
        &self.joined.as_ref().expect("a rank that has joined").0
    }

    fn meet(&self) {
        let node_state = &self.membership().node_state;
        while Rank::all(node_state.size())
            .any(|rank| node_state.rank_state(rank).stage() == RankStage::Absent)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for a signal that never comes. The wait is published and the thread sleeps.
    fn wait(&self) -> ExitCode {
        let Membership { rank, node_state, .. } = self.membership();
        let rank_state = node_state.rank_state(*rank);
        rank_state.publish_wait(&PublishedWait {
            call: "wait(signal 7 >= 4)".into(),
            since_ns: clock::now_ns(),
            ended_by: None,
            under_way: UnderWay::default(),
            thread: process::thread_id(),
        });
        while !node_state.is_over() {
            let epoch = rank_state.park().begin_sleep(DOZING, || ());
            if !node_state.is_over() {
                futex::wait(rank_state.park().futex(), epoch.0, Duration::from_secs(1), futex::Scope::Shared);
            }
            rank_state.park().end_sleep();
        }
        let death = node_state.death().expect("the job is over");
        eprintln!("rank {rank}: wait(signal 7 >= 4): rank {} died", death.rank);
        ExitCode::FAILURE
    }
}
