#![allow(missing_docs)]
use std::time::Instant;
use tasuki::{Command, RemoteQueue};
fn main() -> std::process::ExitCode {
    tasuki::main(|job| {
        let stop = std::env::var("STOP").is_ok();
        let batch: usize = std::env::var("BATCH").map_or(50, |b| b.parse().unwrap());
        let (queue, names) = (job.queue(2048)?, job.alloc::<RemoteQueue>(1)?);
        let pids = job.alloc::<u64>(1)?;
        let (me, peer) = (job.rank(), job.rank_after(1));
        job.put(names.on(peer), &[queue.remote()])?;
        job.put(pids.on(peer), &[u64::from(std::process::id())])?;
        job.barrier()?;
        let theirs = names.get(0)?;
        let pid = pids.get(0)?;
        let (word, done) = (job.alloc::<u64>(1)?, job.signal()?);
        let mut times = vec![];
        let mut drains = vec![];
        for round in 1..=std::env::var("ROUNDS").map_or(60u64, |r| r.parse().unwrap()) {
            if job.rank().index() == 0 {
                let batches: Vec<Vec<Command>> = (0..1000 / batch)
                    .map(|b| {
                        (0..batch).map(|i| Command::store(word.on(peer), (b * batch + i) as u64)).collect()
                    })
                    .collect();
                std::thread::sleep(std::time::Duration::from_micros(20));
                if stop {
                    std::process::Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
                let t = Instant::now();
                if batch == 1 {
                    for b in &batches {
                        job.post(theirs, &b[0])?;
                    }
                } else {
                    for b in &batches {
                        job.post_many(theirs, b)?;
                    }
                }
                let took = t.elapsed().as_nanos() as f64 / 1000.0;
                times.push(took);
                let last = Command::nothing().then(done.on(peer).add(1)).then(done.on(me).add(1));
                job.post(theirs, &last)?;
                if stop {
                    std::process::Command::new("kill").args(["-CONT", &pid.to_string()]).status().unwrap();
                }
                done.wait_at_least(round)?;
                drains.push(t.elapsed().as_nanos() as f64 / 1000.0);
            } else {
                done.wait_at_least(round)?;
            }
            job.barrier()?;
        }
        if job.rank().index() == 0 {
            times.sort_by(f64::total_cmp);
            drains.sort_by(f64::total_cmp);
            println!(
                "batch {batch} stop {stop}: per post {:.1} ({:.1} - {:.1}); until drained {:.1}",
                times[times.len() / 2],
                times[times.len() / 10],
                times[times.len() * 9 / 10],
                drains[drains.len() / 2]
            );
        }
        Ok(())
    })
}
