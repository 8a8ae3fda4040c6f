use tasuki::prelude::*;
use tasuki::schedule::{ALGORITHMS, Operation, Shape};
fn app(job: &Job) -> tasuki::Result<()> {
    let world = job.world();
    let (n, me) = (world.size(), job.rank().index());
    let minus =
        |a: [i64; 2], b: [i64; 2]| [a[0].wrapping_mul(b[0]), a[0].wrapping_mul(b[1]).wrapping_add(a[1])];
    for count in [1usize, 5, 3000] {
        for root in 0..n {
            let (root_rank, value) = (Rank(root as u32), |rank: usize, step: usize, at: usize| {
                (rank * 1000 + step * 7 + at) as i64
            });
            let mut sum = world.allreduce_init::<i64>(count, Sum)?;
            let mut own = world.allreduce_init::<[i64; 2]>(count, minus)?;
            let mut red = world.reduce_init::<i64>(count, Max, root_rank)?;
            let mut redown = world.reduce_init::<[i64; 2]>(count, minus, root_rank)?;
            let mut scan = world.scan_init::<i64>(count, Sum)?;
            let mut exscan = world.exscan_init::<i64>(count, Sum)?;
            let mut rs = world.reduce_scatter_init::<i64>(count, Sum)?;
            let mut gather = world.gather_init::<i64>(count, root_rank)?;
            let mut scatter = world.scatter_init::<i64>(count, root_rank)?;
            let mut a2a = world.alltoall_init::<i64>(count)?;
            let mut near = world.neighbours_init::<i64>(&[n, 1], &[true, true], count)?;
            for step in 0..6 {
                let mine: Vec<i64> = (0..count).map(|at| value(me, step, at)).collect();
                let pairs: Vec<[i64; 2]> = mine.iter().map(|&v| [v, v]).collect();
                sum.write(0, &mine)?;
                red.write(0, &mine)?;
                scan.write(0, &mine)?;
                exscan.write(0, &mine)?;
                own.write(0, &pairs)?;
                redown.write(0, &pairs)?;
                for r in 0..n {
                    let block: Vec<i64> = mine.iter().map(|v| v * 10 + r as i64).collect();
                    rs.write(r * count, &block)?;
                    a2a.write(r * count, &block)?;
                    if me == root {
                        scatter.write(r * count, &block)?;
                    }
                }
                gather.write(if me == root { me * count } else { 0 }, &mine)?;
                for b in 0..4 {
                    let block: Vec<i64> = mine.iter().map(|v| v * 10 + b as i64).collect();
                    near.write(b * count, &block)?;
                }
                // all at once, in orders of their own
                if me % 2 == 0 {
                    sum.start()?;
                    own.start()?;
                    red.start()?;
                    redown.start()?;
                    scan.start()?;
                    exscan.start()?;
                    rs.start()?;
                    gather.start()?;
                    scatter.start()?;
                    a2a.start()?;
                    near.start()?;
                } else {
                    near.start()?;
                    a2a.start()?;
                    scatter.start()?;
                    gather.start()?;
                    rs.start()?;
                    exscan.start()?;
                    scan.start()?;
                    redown.start()?;
                    red.start()?;
                    own.start()?;
                    sum.start()?;
                }
                sum.wait()?;
                own.wait()?;
                red.wait()?;
                redown.wait()?;
                scan.wait()?;
                exscan.wait()?;
                rs.wait()?;
                gather.wait()?;
                scatter.wait()?;
                a2a.wait()?;
                near.wait()?;
                let fold = |upto: usize, at: usize| (0..upto).map(|r| value(r, step, at)).sum::<i64>();
                let ordered =
                    |at: usize| (1..n).map(|r| [value(r, step, at); 2]).fold([value(0, step, at); 2], minus);
                for at in 0..count {
                    assert_eq!(sum.to_vec()?[at], fold(n, at), "sum");
                    if count == 3000 {
                        break;
                    }
                    assert_eq!(own.to_vec()?[at], ordered(at), "own");
                    assert_eq!(scan.to_vec()?[at], fold(me + 1, at), "scan");
                    if me > 0 {
                        assert_eq!(exscan.to_vec()?[at], fold(me, at), "exscan");
                    }
                    if me == root {
                        assert_eq!(red.to_vec()?[at], value(n - 1, step, at), "max");
                        assert_eq!(redown.to_vec()?[at], ordered(at), "redown");
                    }
                    assert_eq!(rs.to_vec()?[me * count + at], 10 * fold(n, at) + (n * me) as i64, "rs");
                    if me == root {
                        for r in 0..n {
                            assert_eq!(gather.to_vec()?[r * count + at], value(r, step, at), "gather");
                        }
                    }
                    assert_eq!(
                        scatter.to_vec()?[if me == root { me * count } else { 0 } + at],
                        value(root, step, at) * 10 + me as i64,
                        "scatter"
                    );
                    for r in 0..n {
                        assert_eq!(a2a.to_vec()?[r * count + at], value(r, step, at) * 10 + me as i64, "a2a");
                    }
                    let got = near.to_vec()?;
                    assert_eq!(got[at], value((me + n - 1) % n, step, at) * 10 + 1, "near before");
                    assert_eq!(got[count + at], value((me + 1) % n, step, at) * 10, "near after");
                    assert_eq!(got[3 * count + at], value(me, step, at) * 10 + 2, "near self");
                }
            }
        }
    }
    for algorithm in ALGORITHMS {
        for bytes in [8u64, 1000, 300_000] {
            let root = 1 % n;
            let shape = Shape::new(algorithm.operation, n, root, bytes);
            if !(algorithm.fits)(&shape)
                || ![Operation::Bcast, Operation::Allgather].contains(&algorithm.operation)
            {
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
                    _ => plan.write(me * bytes as usize, &vec![value(me); bytes as usize])?,
                }
                plan.start()?;
                plan.wait()?;
                match algorithm.operation {
                    Operation::Bcast => {
                        assert!(plan.to_vec()?.iter().all(|&v| v == value(root)), "{}", algorithm.name)
                    }
                    _ => {
                        for (rank, block) in plan.to_vec()?.chunks(bytes as usize).enumerate() {
                            assert!(
                                block.iter().all(|&v| v == value(rank)),
                                "{} {rank} {:?}",
                                algorithm.name,
                                &block[..4]
                            );
                        }
                    }
                }
            }
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
