use tasuki::prelude::*;
use tasuki::schedule::{ALGORITHMS, Operation, Shape};
fn app(job: &Job) -> tasuki::Result<()> {
    let world = job.world();
    let (n, me) = (world.size(), job.rank().index());
    for algorithm in ALGORITHMS {
        for bytes in [8u64, 1000, 300_000] {
            let root = 1 % n;
            let shape = Shape::new(algorithm.operation, n, root, bytes);
            if !(algorithm.fits)(&shape) {
                continue;
            }
            let mut plan = world.plan_unchecked(&algorithm.schedule(&shape, 3))?;
            for step in 0..20u64 {
                let value = |rank: usize| (rank as u64 * 7 + step) as u8;
                match algorithm.operation {
                    Operation::Bcast => {
                        if me == root {
                            plan.write(0, &vec![value(root); bytes as usize])?
                        }
                    }
                    Operation::Allgather => {
                        plan.write(me * bytes as usize, &vec![value(me); bytes as usize])?
                    }
                    _ => {}
                }
                plan.start()?;
                plan.wait()?;
                match algorithm.operation {
                    Operation::Bcast => {
                        let v = plan.to_vec()?;
                        if v[0] != value(root) {
                            std::thread::sleep(std::time::Duration::from_millis(100));
                            eprintln!("later {:?}", plan.to_vec()?[0]);
                        }
                        assert!(
                            v.iter().all(|&v| v == value(root)),
                            "{} {bytes} {step} {:?} {:?}",
                            algorithm.name,
                            &v[..8],
                            v.iter().position(|&v| v != value(root))
                        )
                    }
                    Operation::Allgather => {
                        for (rank, block) in plan.to_vec()?.chunks(bytes as usize).enumerate() {
                            assert!(
                                block.iter().all(|&v| v == value(rank)),
                                "{} {rank} {:?}",
                                algorithm.name,
                                &block[..4]
                            );
                        }
                    }
                    _ => {}
                }
            }
        }
        if me == 0 {
            println!("{} done", algorithm.name);
        }
    }
    world.quiesce()?;
    if me == 0 {
        println!("{:?}", job.memory());
    }
    Ok(())
}
fn main() -> std::process::ExitCode {
    tasuki::main(app)
}
