//! Ranks of which one fails while the others wait for it: what the tests of error messages start.
//!
//! `failing WAY`: rank 1 returns an error of its own (`error`), returns that of a call (`call`), panics (`panic`), ends its
//! process (`exit`, `abort`, `kill`), or leaves without meeting the others (`leave`). With `both` rank 2 returns an error,
//! too.

use nix::sys::signal::{Signal, raise};
use std::process::ExitCode;
use std::time::Duration;
use tasuki::{Error, GlobalPtr, Job, Rank, Result};
use tasuki_tests::watchdog::Watchdog;

fn main() -> ExitCode {
    let _watched = Watchdog::over("failing");
    let way = std::env::args().nth(1).unwrap_or_default();
    tasuki::main(|job: &Job| {
        job.barrier()?;
        match (job.rank(), way.as_str()) {
            (Rank(1), _) => fail(job, &way),
            (Rank(2), "both") => Err(Error::program("no butter")),
            _ => job.barrier(),
        }
    })
}

#[expect(clippy::exit, reason = "what a program does that ends its process is what is tested")]
fn fail(job: &Job, way: &str) -> Result<()> {
    std::thread::sleep(Duration::from_millis(20)); // until the others wait
    match way {
        "error" | "both" => Err(Error::program("no bread")),
        "call" => job.load(GlobalPtr::<u64>::NULL).map(drop),
        "panic" => panic!("no bread"),
        "exit" => std::process::exit(3),
        "abort" => std::process::abort(),
        "kill" => Ok(raise(Signal::SIGKILL).map_err(Error::program)?),
        "leave" => Ok(()),
        other => panic!("there is no way {other}"),
    }
}
