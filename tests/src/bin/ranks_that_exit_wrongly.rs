//! Ranks that end in ways in which no rank should end: `ranks_that_exit_wrongly WHAT`, started by
//! `tools/tests/run/ends.rs`.
//!
//! - `exit`, `exit_1`: rank 1 ends its process with code 0 or 1 while the others wait.
//! - `exit_from_a_thread`: a thread of rank 1 ends the process with code 0.
//! - `fork_returns`, `fork_fails`, `fork_panics`: each rank forks a child that returns from the
//!   program, fails, or panics. The rank waits until the child has ended, and continues.
//!
//! Unsafe: a fork whose child returns from the program, which is what the test is about.
#![allow(unsafe_code)]

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tasuki::{Error, Job, Rank, Request, Result, Slot};

/// The parent treats a child that runs longer than this as hung.
const WATCHDOG: Duration = Duration::from_secs(40);

fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    tasuki::main(|job: &Job| match what.as_str() {
        "exit" => exit(job, || end_process(0)),
        "exit_1" => exit(job, || end_process(1)),
        "exit_from_a_thread" => exit(job, || {
            let _ = std::thread::spawn(|| end_process(0)).join();
        }),
        "fork_returns" => fork_a_child(job, || Ok(())),
        "fork_fails" => fork_a_child(job, || Err(Error::argument("a child that fails"))),
        "fork_panics" => fork_a_child(job, || panic!("a child that panics")),
        other => Err(Error::argument(format!("{other:?} is no way to end"))),
    })
}

#[allow(clippy::exit)] // the test is about exactly this
fn end_process(code: i32) {
    std::process::exit(code);
}

/// Rank 1 ends its process while all other ranks wait for it.
fn exit(job: &Job, end: impl Fn()) -> Result<()> {
    let never = job.signal()?;
    job.barrier()?;
    if job.rank() == Rank(1) {
        end();
    }
    never.wait_at_least(1)
}

/// The child drops everything of the rank's job that it has. The job of the parent must not be
/// affected.
fn fork_a_child(job: &Job, child_ends: impl Fn() -> Result<()>) -> Result<()> {
    const LONG: usize = 10_000;
    let world = job.world();
    let (next, previous) = (job.rank_after(1), job.rank_after(-1));
    let table = job.alloc::<u64>(1)?;
    let signal = job.signal()?;
    let receive = |count: usize, slot| world.irecv(vec![0_u64; count], previous, slot);
    let receives = [receive(1, Slot(1))?, receive(LONG, Slot(2))?];
    let mut send = world.isend(vec![7_u64; LONG], next, Slot(3))?;
    job.barrier()?;
    // SAFETY: the child calls the library only to drop what it has. It also uses the allocator,
    // which the C library keeps usable after a fork.
    match unsafe { fork() }.expect("fork works") {
        ForkResult::Child => return child_ends(),
        ForkResult::Parent { child } => see_to_its_end(child),
    }
    job.barrier()?;
    world.send(&[5_u64], next, Slot(1))?;
    world.send(&vec![6_u64; LONG], next, Slot(2))?;
    let mut values = vec![0_u64; LONG];
    world.recv(&mut values, previous, Slot(3))?;
    assert!(values.iter().all(|&value| value == 7), "the send under way during the fork is right");
    send.wait()?;
    for (mut receive, expected) in receives.into_iter().zip([5, 6]) {
        assert!(
            receive.wait()?.0.iter().all(|&value| value == expected),
            "the receive under way during the fork is right"
        );
    }
    job.put_signal(table.on(next), &[9], signal.on(next), 1)?;
    signal.wait_at_least(1)?;
    assert_eq!(table.get(0)?, 9);
    job.barrier()
}

/// Waits for the end of a child; panics if the child hangs.
fn see_to_its_end(child: Pid) {
    let start = Instant::now();
    while matches!(waitpid(child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
        if start.elapsed() > WATCHDOG {
            let _ = kill(child, Signal::SIGKILL);
            panic!("the child does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
