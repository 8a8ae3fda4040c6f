//! Ranks that print what their launcher passed to them: arguments, environment, and on rank 0 the
//! standard input. The last rank ends with code 7 after the job has ended in order.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use tasuki::{Error, Job, Rank, Result};
use tasuki_tests::watchdog::Watchdog;

/// Lines of each rank. There are enough of them to be interleaved if the launcher interleaved
/// output, but less than 16 KiB for each rank: Intel MPI forwards 16 KiB at once and cuts lines
/// there.
const LINES: usize = 100;

fn main() -> ExitCode {
    let _watched = Watchdog::over("ranks_that_echo");
    let is_last = AtomicBool::new(false);
    let ended = tasuki::main(|job: &Job| -> Result<()> {
        write_lines(job).map_err(Error::program)?;
        is_last.store(job.rank().index() + 1 == job.size(), Ordering::Relaxed);
        job.barrier()
    });
    if ended == ExitCode::SUCCESS && is_last.into_inner() { ExitCode::from(7) } else { ended }
}

fn write_lines(job: &Job) -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let handed = std::env::var("HANDED").unwrap_or_default();
    let mut out = std::io::stdout().lock();
    for line in 0..LINES {
        writeln!(out, "rank {} of {}, line {line}: {words:?} {handed:?}", job.rank(), job.size())?;
    }
    if job.rank() == Rank(0) {
        for line in std::io::stdin().lock().lines() {
            writeln!(out, "rank 0 read {:?}", line?)?;
        }
    }
    Ok(())
}
