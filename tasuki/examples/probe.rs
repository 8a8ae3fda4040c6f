#![allow(missing_docs)]
use std::time::{Duration, Instant};
use tasuki::prelude::*;
fn main() -> std::process::ExitCode {
    tasuki::main(app)
}
fn app(job: &Job) -> tasuki::Result<()> {
    let (me, peer) = (job.rank(), job.rank_after(1));
    let done = job.signal()?;
    let back = job.signal()?;
    let word = job.alloc::<u64>(64 * 128)?;
    let queue = job.queue(2048)?;
    let names = job.alloc::<u64>(2)?;
    job.put(names.on(peer).at(0), &[bytemuck(queue.remote())])?;
    job.barrier()?;
    let remote: tasuki::RemoteQueue = tasuki::bytemuck::cast(names.get(0)?);
    // post
    for (name, batch) in (if std::env::var_os("CHAIN").is_some() {
        vec![]
    } else {
        vec![("one by one", 1usize), ("by 50", 50)]
    }) {
        let mut best = f64::MAX;
        let mut all = vec![];
        for round in 0..40u64 {
            job.barrier()?;
            let base = done.value();
            if me.0 == 0 {
                let cmds: Vec<Command> = (0..batch).map(|_| Command::nothing()).collect();
                job.compute(Duration::from_micros(50));
                let start = Instant::now();
                let mut posted = 0;
                while posted < 1000 {
                    job.post_many(remote, &cmds)?;
                    posted += batch;
                }
                let t = start.elapsed().as_nanos() as f64 / 1000.0;
                job.post(remote, &Command::nothing().then(done.on(peer).add(1)))?;
                best = best.min(t);
                all.push(t);
                back.wait_at_least(round + 1 + if batch == 50 { 40 } else { 0 })?;
            } else {
                done.wait_at_least(base + 1)?;
                job.raise(back.on(peer), 1)?;
            }
        }
        all.sort_by(f64::total_cmp);
        if me.0 == 0 {
            println!("post {name}: best {best:.1} median {:.1} ns", all[all.len() / 2]);
        }
    }
    // chain
    let rounds: u64 = std::env::var("CHAIN").map_or(200, |r| r.parse().unwrap());
    for source in [true, false] {
        let go = job.signal()?;
        let end = job.signal()?;
        let mut all = vec![];
        for round in 0..rounds {
            // 32 hops per rank: hop h at rank h%2
            for k in 0..32u64 {
                let h = 2 * k + u64::from(me.0);
                let from = word.on(me).at(((h * 16) % 8192) as usize);
                let to = word.on(peer).at((((h + 1) * 16) % 8192) as usize);
                let mut c = Command::copy(from, to, 1).when(go.reaches(round * 32 + k + 1));
                if source {
                    c = c.by_source();
                }
                c = if h == 63 { c.then(end.on(peer).add(1)) } else { c.then(go.on(peer).add(1)) };
                queue.post(&c)?;
            }
            job.barrier()?;
            if me.0 == 0 {
                let start = Instant::now();
                job.raise(go.on(me), 1)?;
                end.wait_at_least(round + 1)?;
                all.push(start.elapsed().as_nanos() as f64 / 64.0);
            } else {
                back.wait_at_least(if me.0 == 1 { round + 1 } else { 0 } + if source { 0 } else { rounds })?;
            }
            if me.0 == 0 {
                job.raise(back.on(peer), 1)?;
            }
            if round == 0 {}
        }
        all.sort_by(f64::total_cmp);
        if me.0 == 0 {
            println!(
                "chain source={source}: min {:.1} q1 {:.1} median {:.1}",
                all[0],
                all[all.len() / 4],
                all[all.len() / 2]
            );
        }
        job.barrier()?;
    }
    job.barrier()
}
fn bytemuck(q: tasuki::RemoteQueue) -> u64 {
    tasuki::bytemuck::cast(q)
}
