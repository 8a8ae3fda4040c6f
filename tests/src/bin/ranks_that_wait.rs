//! Ranks that print a line once all ranks have met, and then wait for a signal that is never
//! raised. `shm_pmi.rs` starts them.
//!
//! With the argument `first-leaves` rank 0 leaves instead of waiting.

use std::process::ExitCode;
use tasuki::{Job, Rank, Result};
use tasuki_tests::watchdog::Watchdog;

fn main() -> ExitCode {
    let _watched = Watchdog::over("ranks_that_wait");
    let leaves = std::env::args().nth(1).as_deref() == Some("first-leaves");
    tasuki::main(|job: &Job| -> Result<()> {
        let never = job.signal()?;
        job.barrier()?;
        println!("met");
        if leaves && job.rank() == Rank(0) {
            return Ok(());
        }
        never.wait_at_least(1)
    })
}
