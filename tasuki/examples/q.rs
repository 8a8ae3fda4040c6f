#![allow(missing_docs)]
use tasuki::prelude::*;
fn main() -> std::process::ExitCode { tasuki::main(app) }
fn app(job: &Job) -> tasuki::Result<()> {
    let (data, arrived, done) = (job.alloc::<u64>(128)?, job.signal()?, job.signal()?);
    let (me, peer) = (job.rank(), job.rank_after(1));
    let queue = job.queue(256)?;
    data.fill(u64::from(me.0) + 10)?;
    job.barrier()?;
    for i in 0..64u64 {
        queue.post(&Command::copy(data.on(me), data.on(peer).at(64 + i as usize), 1).when(arrived.reaches(64 - i)).then(done.on(peer).add(1)))?;
    }
    println!("{me}: {:?}", queue.standing());
    for _ in 0..64 { job.raise(arrived.on(peer), 1)?; }
    done.wait_at_least(64)?;
    println!("{me}: {:?} {:?}", queue.standing(), queue.failure());
    assert_eq!(data.get(127)?, u64::from(job.rank_after(-1).0) + 10);
    queue.post(&Command::copy(GlobalPtr::<u64>::from(data.on(peer)), data.on(me).at(127), 100).then(done.on(me).add(1)))?;
    let bad = done.wait_at_least(65);
    println!("{me}: {}", bad.unwrap_err());
    job.barrier()
}
