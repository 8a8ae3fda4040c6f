//! A token passes once around all ranks, and each rank adds one. No rank receives a message: each puts the token into
//! the memory of the next rank.

use tasuki::prelude::*;

fn app(job: &Job) -> tasuki::Result<()> {
    // On every rank one value and one counter.
    let (token, arrived, next) = (job.alloc::<u64>(1)?, job.signal()?, job.rank_after(1));
    if job.rank() == 0 {
        job.put_signal(token.on(next), &[1], arrived.on(next), 1)?;
    }
    arrived.wait_at_least(1)?; // now the token is in this rank's memory
    let hops = token.get(0)?;
    println!("rank {}: the token comes with hop {hops}", job.rank());
    if job.rank() != 0 {
        job.put_signal(token.on(next), &(hops + 1), arrived.on(next), 1)?;
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    tasuki::main(app)
}
