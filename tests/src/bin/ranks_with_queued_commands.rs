//! Two ranks with commands in their queues. `tools/tests/queues.rs` starts them and looks at them
//! with `tasuki ps`. Rank 1 computes until the file exists that the argument names; then all
//! commands may run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tasuki::engine::RemoteQueue;
use tasuki::{Command, Handler, Handlers, Job, Queue, Rank, Result};
use tasuki_tests::watchdog::Watchdog;

const NOTHING: Handler<(), ()> = Handler::new("nothing", |_, ()| ());

fn main() -> ExitCode {
    let _watched = Watchdog::over("ranks_with_queued_commands");
    let file = PathBuf::from(std::env::args().nth(1).unwrap_or_default());
    tasuki::main_with(Handlers::new().add(NOTHING), |job: &Job| -> Result<()> {
        let (steps, credit, done, word) = (job.signal()?, job.signal()?, job.signal()?, job.alloc::<u64>(1)?);
        let away = job.signal()?;
        let (bound, names) = (job.queue(4)?, job.alloc::<RemoteQueue>(2)?);
        job.put(names.on(Rank(0)).at(job.rank().index()), &[bound.remote()])?;
        job.barrier()?;
        if job.rank() == Rank(1) {
            job.raise(away.on(Rank(0)), 1)?; // from now on this rank makes no progress
            while !file.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            job.raise(steps.on(Rank(0)), 7)?;
            job.raise(credit.on(Rank(0)), 2)?;
            return job.barrier();
        }
        away.wait_at_least(1)?;
        let (waiting, session) = (job.queue(64)?, Queue::session(job, 8, &credit)?);
        job.raise(steps.on(Rank(0)), 2)?;
        for threshold in [9, 4, 9] {
            waiting.post(Command::nothing().when(steps.reaches(threshold)).then(done.on(Rank(0)).add(1)))?;
        }
        let put = || Command::put(word.on(Rank(1)), &[5_u64]).by_destination().then(done.on(Rank(0)).add(1));
        waiting.post(put())?;
        (0..2).try_for_each(|_| session.post(Command::nothing().then(done.on(Rank(0)).add(1))).map(drop))?;
        names.to_vec()?[1].post(job, put())?;
        (0..3).try_for_each(|_| NOTHING.post_then(job, Rank(1), &(), done.on(Rank(0)).add(1)))?;
        done.wait_at_least(10)?;
        job.barrier()
    })
}
