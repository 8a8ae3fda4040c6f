//! Collective operations: blocking calls; plans that are started repeatedly and run by all ranks or by one; and
//! nonblocking calls that are waited for at once.

use super::collective_data::{Operation, Round, back_to_back, mean_of_calls};
use super::{Figures, Setup, Stopwatch, figure, wrong};
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::schedule::{ALGORITHMS, Algorithm, CollectiveKind, Shape};
use tasuki::{Error, Job, Plan, Rank, Request, Sum};

/// Number of calls in a repetition.
const CALLS: u64 = 1_000;

/// Blocking calls of the operation of the case.
pub(crate) fn call<'j>(s: &Setup<'j>) -> Figures<'j> {
    let play = calls(s, Operation::named(s.operation));
    Ok(vec![figure("", back_to_back(s.job, s.bytes, s.effort.times(CALLS), play))])
}

/// Returns a function that makes the blocking call of an operation.
fn calls<'j>(s: &Setup<'j>, operation: Operation) -> impl FnMut(&Round) -> tasuki::Result<()> + use<'j> {
    use Operation::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Gather, Reduce, ReduceScatter, Scatter};
    let (world, words, ranks) = (s.world(), s.words(), s.job.size());
    let room = |is_needed: bool| vec![0_u64; if is_needed { words * ranks } else { 0 }];
    let mut block = vec![0_u64; words];
    let mut blocks = room(matches!(operation, Alltoall | Scatter | ReduceScatter));
    let mut all = room(matches!(operation, Alltoall | Allgather | Gather));
    move |round| {
        let root = Rank(round.root);
        match operation {
            Barrier => {}
            Bcast | Scatter if !round.is_root() => {}
            Alltoall | Scatter | ReduceScatter => {
                for (to, block) in blocks.chunks_exact_mut(words).enumerate() {
                    Round::give(block, round.value_for(round.rank, to));
                }
            }
            _ => Round::give(&mut block, round.value(round.rank)),
        }
        let from = round.checked();
        let of_checked = from * words..(from + 1) * words;
        match operation {
            Barrier => world.barrier(),
            Bcast => {
                world.bcast(&mut block, root)?;
                Round::check(&block, round.value(round.root))
            }
            Reduce => {
                world.reduce(&mut block, Sum, root)?;
                if round.is_root() { Round::check(&block, round.sum()) } else { Ok(()) }
            }
            Allreduce => {
                world.allreduce(&mut block, Sum)?;
                Round::check(&block, round.sum())
            }
            Gather => {
                world.gather((&block, &mut all), root)?;
                if round.is_root() { Round::check(&all[of_checked], round.value(from)) } else { Ok(()) }
            }
            Allgather => {
                world.allgather((&block, &mut all))?;
                Round::check(&all[of_checked], round.value(from))
            }
            Alltoall => {
                world.alltoall((&blocks, &mut all))?;
                Round::check(&all[of_checked], round.value_for(from, round.rank))
            }
            Scatter => {
                world.scatter(&blocks, &mut block, root)?;
                Round::check(&block, round.value_for(round.root, round.rank))
            }
            ReduceScatter => {
                let sum = world.reduce_scatter(&blocks, Sum)?;
                Round::check(&sum, round.sum_for(round.rank))
            }
        }
    }
}

/// Nonblocking calls that are waited for at once, compared with blocking calls. A call takes vectors of values; waiting
/// for it returns vectors that the next call takes.
pub(crate) fn nonblocking<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (world, words) = (s.world(), s.words());
    let operation = Operation::named(s.operation.trim_start_matches('i'));
    let mut block = vec![0_u64; words];
    let begin_and_wait = move |round: &Round| {
        let mut values = std::mem::take(&mut block);
        let root = round.root;
        let value = match operation {
            Operation::Bcast => {
                Round::give(&mut values, if round.is_root() { round.value(root) } else { 0 });
                block = world.ibcast(values, Rank(root))?.wait()?;
                round.value(root)
            }
            Operation::Allreduce => {
                Round::give(&mut values, round.value(round.rank));
                block = world.iallreduce(values, Sum)?.wait()?;
                round.sum()
            }
            _ => {
                block = values;
                return world.ibarrier()?.wait();
            }
        };
        Round::check(&block, value)
    };
    let times = s.effort.times(CALLS);
    Ok(vec![
        figure(s.operation, back_to_back(s.job, s.bytes, times, begin_and_wait)),
        figure(format!("{}_call", s.operation), back_to_back(s.job, s.bytes, times, calls(s, operation))),
    ])
}

/// The largest block for which the last rank is measured separately, and the operations for which it is.
const LAST_BYTES_MAX: u64 = 8 << 10;
const LAST: [Operation; 2] = [Operation::Bcast, Operation::Barrier];

/// Plans, one for each root, that are started and waited for, compared with blocking calls. The time of the last rank
/// to arrive is measured, too.
pub(crate) fn persistent<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, bytes, operation, times) =
        (s.job, s.bytes, Operation::named(s.operation), s.effort.times(CALLS));
    let mut plans = Plans::new(job, operation, bytes)?;
    let mut figures = vec![
        figure(s.operation, back_to_back(job, bytes, times, move |round| plans.play(round))),
        figure(format!("{}_call", s.operation), back_to_back(job, bytes, times, calls(s, operation))),
    ];
    if LAST.contains(&operation) && bytes <= LAST_BYTES_MAX {
        figures.push(figure(format!("last_{}", s.operation), last(s, operation)?));
    }
    Ok(figures)
}

/// The plans of an operation and their buffers.
pub(crate) struct Plans {
    operation: Operation,
    barrier: Option<Plan<u8>>,
    /// One plan, or one for each root.
    of_values: Vec<Plan<u64>>,
}

impl Plans {
    /// Makes the plans with the algorithms that plans choose themselves. Collective.
    pub(crate) fn new(job: &Job, operation: Operation, bytes: u64) -> tasuki::Result<Plans> {
        let (world, words) = (job.world(), bytes as usize / size_of::<u64>());
        let of_roots = |init: &dyn Fn(Rank) -> tasuki::Result<Plan<u64>>| job.ranks().map(init).collect();
        let of_values: tasuki::Result<Vec<Plan<u64>>> = match operation {
            Operation::Bcast => of_roots(&|root| world.bcast_init(words, root)),
            Operation::Reduce => of_roots(&|root| world.reduce_init(words, Sum, root)),
            Operation::Allreduce => world.allreduce_init(words, Sum).map(|plan| vec![plan]),
            Operation::Allgather => world.allgather_init(words).map(|plan| vec![plan]),
            Operation::Alltoall => world.alltoall_init(words).map(|plan| vec![plan]),
            Operation::Barrier => Ok(Vec::new()),
            _ => return Err(wrong("an operation without plans")),
        };
        let is_barrier = operation == Operation::Barrier;
        let barrier = is_barrier.then(|| world.barrier_init()).transpose()?;
        Ok(Plans { operation, barrier, of_values: of_values? })
    }

    fn plan(&mut self, round: &Round) -> &mut Plan<u64> {
        let place = if self.of_values.len() == 1 { 0 } else { round.root };
        &mut self.of_values[place]
    }

    /// Writes the values that this rank contributes.
    pub(crate) fn give(&mut self, round: &Round) -> tasuki::Result<()> {
        let (operation, rank, words) = (self.operation, round.rank, round.words);
        let mut write = |block: usize, value: u64| {
            let block = &mut self.plan(round).input()?[block * words..][..words];
            [block[0], block[words - 1]] = [value; 2];
            Ok(())
        };
        match operation {
            Operation::Barrier => Ok(()),
            Operation::Bcast if !round.is_root() => Ok(()),
            Operation::Alltoall => (0..round.ranks).try_for_each(|to| write(to, round.value_for(rank, to))),
            _ => write(0, round.value(rank)),
        }
    }

    #[inline]
    pub(crate) fn start(&mut self, round: &Round) -> tasuki::Result<()> {
        match &mut self.barrier {
            Some(plan) => plan.start(),
            None => self.plan(round).start(),
        }
    }

    #[inline]
    pub(crate) fn wait(&mut self, round: &Round) -> tasuki::Result<()> {
        match &mut self.barrier {
            Some(plan) => plan.wait(),
            None => self.plan(round).wait(),
        }
    }

    /// Checks the values that this rank received.
    pub(crate) fn check(&mut self, round: &Round) -> tasuki::Result<()> {
        let (rank, root, from, words) = (round.rank, round.root, round.checked(), round.words);
        let (block, value) = match self.operation {
            Operation::Barrier => return Ok(()),
            Operation::Reduce if !round.is_root() => return Ok(()),
            Operation::Bcast => (0, round.value(root)),
            Operation::Allgather => (from, round.value(from)),
            Operation::Alltoall => (from, round.value_for(from, rank)),
            _ => (0, round.sum()),
        };
        let block = &self.plan(round).result()?[block * words..][..words];
        Round::check(&[block[0], block[words - 1]], value)
    }

    /// Starts the plan and waits for it.
    pub(crate) fn play(&mut self, round: &Round) -> tasuki::Result<()> {
        self.give(round)?;
        self.start(round)?;
        self.wait(round)?;
        self.check(round)
    }
}

/// The other ranks wait at least for this time before the last rank starts.
const PAUSE: Duration = Duration::from_micros(20);

/// Times start and wait of the last rank, which is never the root. It starts when all other ranks have said that they
/// are about to wait.
fn last<'j>(
    s: &Setup<'j>,
    operation: Operation,
) -> tasuki::Result<impl FnMut() -> tasuki::Result<f64> + use<'j>> {
    let (job, others, clock_ns) = (s.job, s.job.size() as u64 - 1, Stopwatch::cost_ns());
    let (mut plans, ready) = (Plans::new(job, operation, s.bytes)?, job.signal()?);
    let (late, mut round) = (Rank(s.job.size() - 1), Round::new(job, s.bytes));
    let mut once = move || -> tasuki::Result<u64> {
        round.number += round.ranks as u64; // the root stays rank 0
        job.barrier()?;
        plans.give(&round)?;
        let mut took = 0;
        if job.rank() == late {
            ready.wait_at_least(round.number / round.ranks as u64 * others)?;
            let pause = Stopwatch::start();
            while u128::from(pause.ns(0)) < PAUSE.as_nanos() {
                std::thread::yield_now(); // to others on this processor
            }
            let watch = Stopwatch::start();
            plans.start(&round)?;
            plans.wait(&round)?;
            took = watch.ns(clock_ns);
        } else {
            plans.start(&round)?;
            job.raise(ready.on(late), 1)?;
            plans.wait(&round)?;
        }
        plans.check(&round).map(|()| took)
    };
    let times = s.effort.times(CALLS);
    Ok(move || {
        mean_of_calls(job.world(), times, |calls| {
            let took = (0..calls).map(|_| once()).sum::<tasuki::Result<u64>>()?;
            Ok(took as f64 / calls as f64)
        })
    })
}

/// Returns the algorithm with this name.
pub(crate) fn algorithm(operation: CollectiveKind, name: &str) -> tasuki::Result<&'static Algorithm> {
    let found = ALGORITHMS.iter().find(|one| one.collective == operation && one.name == name);
    found.ok_or_else(|| Error::new(Cause::Bug(format!("there is no {operation:?} by {name}"))))
}

/// Plans of one schedule in two forms: one list of steps on each rank, and one list of all steps that one rank runs.
/// Broadcasts use a binary tree; each has another root, and that root runs the single list. Rank 0 runs the single list
/// of the allgathers, which are those of the ACP library's interface.
pub(crate) fn single_driver<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (job, bytes, ranks) = (s.job, s.bytes, s.job.size());
    let operation = Operation::named(s.operation);
    let (kind, name, roots) = match operation {
        Operation::Bcast => (CollectiveKind::Bcast, "binary", ranks),
        _ => (CollectiveKind::Allgather, "command lists", 1),
    };
    let algorithm = algorithm(kind, name)?;
    let form = |form: &str| {
        let plan = |root: usize| {
            let spread = algorithm.schedule(&Shape::new(kind, ranks, root, bytes), 1);
            let schedule = if form == "driven" { spread.driven_by(root) } else { spread };
            job.world().plan((&schedule, Sum))
        };
        let of_values = (0..roots).map(plan).collect::<tasuki::Result<_>>()?;
        let mut plans = Plans { operation, barrier: None, of_values };
        let variant = format!("{}_{form}", s.operation);
        let repeat = back_to_back(job, bytes, s.effort.times(CALLS), move |round| plans.play(round));
        Ok(figure(variant, repeat))
    };
    ["spread", "driven"].into_iter().map(form).collect()
}
