//! Ranks, one of which fails while the others wait for it. `tools/tests/run/failures.rs` starts them.
//!
//! `ranks_that_fail WAY` says what rank 1 does: it returns its own error (`error`), returns the error of a call
//! (`call`), panics (`panic`), calls or posts to a handler of rank 2 that panics (`handler`, `post`), ends its process (`exit`, `abort`,
//! `kill`), leaves without meeting the others (`leave`), or waits for ever (`wait`). With `both`, rank 2 returns an
//! error, too. With `hide`, rank 1 returns its own error, and the others return those of their calls in errors that hide
//! them, as the crate anyhow does. With `quote`, the others return errors of their own that quote those of their calls.

use nix::sys::signal::{Signal, raise};
use std::process::ExitCode;
use std::time::Duration;
use tasuki::{Error, GlobalPtr, Handler, Handlers, Job, Rank, Request, Result};
use tasuki_tests::watchdog::Watchdog;

const PANICS: Handler<(), ()> = Handler::new("bakery", |_, ()| panic!("no bread"));

fn main() -> ExitCode {
    let _watched = Watchdog::over("ranks_that_fail");
    let way = std::env::args().nth(1).unwrap_or_default();
    tasuki::main_with(Handlers::new().add(PANICS), |job: &Job| {
        job.barrier()?;
        match (job.rank(), way.as_str()) {
            (Rank(1), _) => fail(job, &way),
            (_, "hide") => job.barrier().map_err(|error| Error::program(error.to_string())),
            (_, "quote") => job.barrier().map_err(|error| Error::program(format!("no butter ({error})"))),
            (Rank(2), "both") => Err(Error::program("no butter")),
            _ => job.barrier(),
        }
    })
}

#[expect(clippy::exit, reason = "the test is about programs that end their process")]
fn fail(job: &Job, way: &str) -> Result<()> {
    std::thread::sleep(Duration::from_millis(20)); // until the others wait
    match way {
        "error" | "both" | "hide" | "quote" => Err(Error::program("no bread")),
        "call" => job.load(GlobalPtr::<u64>::NULL).map(drop),
        "panic" => panic!("no bread"),
        "handler" => PANICS.call(job, Rank(2), &())?.wait(),
        "post" => {
            PANICS.post(job, Rank(2), &())?;
            job.barrier() // rank 2 serves the handler there, and nobody asks how it ended
        }
        "exit" => std::process::exit(3),
        "abort" => std::process::abort(),
        "kill" => Ok(raise(Signal::SIGKILL).map_err(Error::program)?),
        "leave" => Ok(()),
        "wait" => job.signal()?.wait_at_least(1),
        other => panic!("there is no way {other}"),
    }
}
