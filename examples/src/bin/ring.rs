//! A token goes once around all ranks, each adding one. Nobody receives it: it is put into the next one's memory.

use tasuki::prelude::*;

fn app(job: &Job) -> tasuki::Result<()> {
    let token = job.alloc::<u64>(1)?; // one word on every rank
    let here = job.signal()?; // and a counter
    let next = job.rank_after(1);
    if job.rank() == Rank(0) {
        job.put_signal(token.on(next), &[1], here.on(next), 1)?;
    }
    here.wait_at_least(1)?; // then the token is in our memory
    let hops = token.get(0)?;
    println!("rank {}: the token comes with hop {hops}", job.rank());
    if job.rank() != Rank(0) {
        job.put_signal(token.on(next), &[hops + 1], here.on(next), 1)?;
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    tasuki::main(app)
}
