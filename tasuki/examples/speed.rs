use std::time::Instant;
use tasuki::prelude::*;
fn app(job: &Job) -> tasuki::Result<()> {
    let world = job.world();
    let n = 20000;
    let t = |name: &str, f: &mut dyn FnMut(u32) -> tasuki::Result<()>| -> tasuki::Result<()> {
        for i in 0..1000 {
            f(i)?;
        }
        world.barrier()?;
        let at = Instant::now();
        for i in 0..n {
            f(i)?;
        }
        let ns = at.elapsed().as_nanos() as f64 / n as f64;
        let all = world.allreduce(&[ns], |a: f64, b: f64| a.max(b))?;
        if job.rank() == 0 {
            println!("{name}: {:.0} ns", all[0]);
        }
        Ok(())
    };
    for _ in 0..2 {
        t("barrier", &mut |_| world.barrier())?;
        let mut b = world.barrier_init()?;
        t("barrier persistent", &mut |_| {
            b.start()?;
            b.wait()
        })?;
        let mut v = [1u64];
        t("bcast 8", &mut |i| world.bcast(&mut v, Rank(i % world.size() as u32)))?;
        let mut plans: Vec<_> =
            (0..world.size()).map(|r| world.bcast_init::<u64>(1, Rank(r as u32)).unwrap()).collect();
        t("bcast 8 persistent", &mut |i| {
            let p = &mut plans[i as usize % world.size()];
            p.start()?;
            p.wait()
        })?;
        let mut v = [1u64; 1024];
        t("bcast 8k", &mut |i| world.bcast(&mut v, Rank(i % world.size() as u32)))?;
        let mut plans: Vec<_> =
            (0..world.size()).map(|r| world.bcast_init::<u64>(1024, Rank(r as u32)).unwrap()).collect();
        t("bcast 8k persistent", &mut |i| {
            let p = &mut plans[i as usize % world.size()];
            p.start()?;
            p.wait()
        })?;
        let mut p = world.allgather_init::<u64>(1)?;
        t("allgather 8", &mut |_| world.allgather(&[1u64]).map(drop))?;
        t("allgather 8 persistent", &mut |_| {
            p.start()?;
            p.wait()
        })?;
    }
    Ok(())
}
fn main() -> std::process::ExitCode {
    tasuki::main(app)
}
