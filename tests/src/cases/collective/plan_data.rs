//! J: what the program reads and writes of a plan: its input, which a plan keeps, its result, and the buffers of a
//! schedule of the program.

use crate::cases::plans::{sums, values};
use crate::exchange::effort;
use crate::expected_error::misused;
use tasuki::schedule::{ALGORITHMS, BufferId, CollectiveKind, Shape};
use tasuki::{Job, Plan, Rank, Request, Result, Sum};

/// A plan with its input, and the result that every start must have.
struct Planned {
    name: String,
    plan: Plan<i64>,
    input: Vec<i64>,
    result: Vec<i64>,
}

/// What a member has, and what a collective gives it.
struct Expected {
    me: usize,
    ranks: usize,
    root: usize,
    count: usize,
}

impl Expected {
    fn mine(&self) -> Vec<i64> {
        values(self.me, 0, self.count)
    }

    /// Blocks for all members.
    fn blocks(&self, from: usize) -> Vec<i64> {
        values(from, 0, self.ranks * self.count)
    }

    fn own_block(&self, blocks: &[i64]) -> Vec<i64> {
        blocks[self.me * self.count..][..self.count].to_vec()
    }

    fn on_root(&self, values: Vec<i64>) -> Vec<i64> {
        if self.me == self.root { values } else { vec![] }
    }

    /// The values of all members, one behind the other.
    fn everybody(&self) -> Vec<i64> {
        (0..self.ranks).flat_map(|rank| values(rank, 0, self.count)).collect()
    }

    fn of(&self, collective: CollectiveKind) -> (Vec<i64>, Vec<i64>) {
        let sum = |upto| if upto == 0 { vec![] } else { sums(upto, 0, self.count) };
        match collective {
            CollectiveKind::Bcast => (self.on_root(self.mine()), values(self.root, 0, self.count)),
            CollectiveKind::Reduce => (self.mine(), self.on_root(sum(self.ranks))),
            CollectiveKind::Allreduce => (self.mine(), sum(self.ranks)),
            CollectiveKind::Scan => (self.mine(), sum(self.me + 1)),
            CollectiveKind::Exscan => (self.mine(), sum(self.me)),
            CollectiveKind::Gather => (self.mine(), self.on_root(self.everybody())),
            CollectiveKind::Allgather => (self.mine(), self.everybody()),
            CollectiveKind::Scatter => {
                (self.on_root(self.blocks(self.root)), self.own_block(&self.blocks(self.root)))
            }
            CollectiveKind::ReduceScatter => {
                (self.blocks(self.me), self.own_block(&sums(self.ranks, 0, self.ranks * self.count)))
            }
            CollectiveKind::Alltoall => {
                let from = |rank| self.own_block(&self.blocks(rank));
                (self.blocks(self.me), (0..self.ranks).flat_map(from).collect())
            }
            CollectiveKind::Barrier | CollectiveKind::Neighbours => (vec![], vec![]),
        }
    }
}

/// J: every collective, as a plan of the library and by every algorithm as a schedule of the program. The input is
/// written once, and each start gives the same result.
pub fn j_plans_keep_their_input(job: &Job) -> Result<()> {
    use CollectiveKind::*;
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    for count in [1, 5, effort(job, 70_001, 300)] {
        let root = count % ranks;
        let expected = Expected { me, ranks, root, count };
        let mut planned = Vec::new();
        let mut add = |name: &str, collective, plan| {
            let (input, result) = expected.of(collective);
            planned.push(Planned { name: format!("{name}, {collective:?} of {count}"), plan, input, result });
        };
        add("library", Bcast, world.bcast_init(count, Rank(root))?);
        add("library", Reduce, world.reduce_init(count, Sum, Rank(root))?);
        add("library", Allreduce, world.allreduce_init(count, Sum)?);
        add("library", Scan, world.scan_init(count, Sum)?);
        add("library", Exscan, world.exscan_init(count, Sum)?);
        add("library", Gather, world.gather_init(count, Rank(root))?);
        add("library", Allgather, world.allgather_init(count)?);
        add("library", Scatter, world.scatter_init(count, Rank(root))?);
        add("library", ReduceScatter, world.reduce_scatter_init(count, Sum)?);
        add("library", Alltoall, world.alltoall_init(count)?);
        for algorithm in ALGORITHMS.iter().filter(|_| count < 300) {
            let bytes = 8 * count as u64;
            let shape = Shape { value_bytes: 8, ..Shape::new(algorithm.collective, ranks, root, bytes) };
            if !matches!(algorithm.collective, Barrier | Neighbours) && (algorithm.fits)(&shape) {
                let schedule = algorithm.schedule(&shape, 1).trusted();
                add(algorithm.name, algorithm.collective, world.plan((&schedule, Sum))?);
            }
        }
        for Planned { name, plan, input, .. } in &mut planned {
            assert_eq!(plan.input()?.len(), input.len(), "{name}");
            plan.input()?.copy_from_slice(input);
        }
        for start in 0..effort(job, 4, 3) {
            planned.iter_mut().try_for_each(|planned| planned.plan.start())?;
            for Planned { name, plan, result, .. } in &mut planned {
                plan.wait()?;
                assert!(plan.result()? == *result, "{name}, start {start}");
            }
        }
        for Planned { name, plan, input, .. } in &mut planned {
            assert!(plan.input()? == *input, "{name}: the input has changed");
        }
    }
    job.barrier()
}

/// J: a program that changes one value of its input writes one value; the input of a member that writes none is zeros.
pub fn j_one_value_of_an_input_changes(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let count = effort(job, 1000, 100);
    let mut sum = world.allreduce_init::<i64>(count, Sum)?;
    let mut all = world.allgather_init::<i64>(count)?;
    if me == 0 {
        sum.input()?.copy_from_slice(&values(0, 0, count));
        all.input()?.copy_from_slice(&values(0, 0, count));
    }
    let mut wanted = values(0, 0, count);
    for start in 0..effort(job, 20, 4) {
        if me == 0 && start > 0 {
            (sum.input()?[start], all.input()?[start]) = (-1, -1);
        }
        if start > 0 {
            wanted[start] = -1;
        }
        sum.start()?;
        all.start()?;
        all.wait()?;
        sum.wait()?;
        assert_eq!(sum.result()?, wanted, "start {start}");
        assert_eq!(all.result()?[..count], wanted, "start {start}");
        assert!(all.result()?[count..] == vec![0; (ranks - 1) * count], "start {start}");
    }
    job.barrier()
}

/// J10: a result that was borrowed is read as often as the program likes after a wait. From a start to its wait, input,
/// result and buffers are refused, whether the plan runs in the calls of its members or in queues.
pub fn j10_results_are_borrowed_between_starts(job: &Job) -> Result<()> {
    let (world, me, ranks) = (job.world(), job.rank().index(), job.size());
    let tree =
        ALGORITHMS.iter().find(|one| (one.name, one.collective) == ("tree", CollectiveKind::Allreduce));
    let shape = Shape::new(CollectiveKind::Allreduce, ranks, 0, 8 * 3);
    let tree = tree.expect("there is an algorithm tree").schedule(&shape, 1);
    let mut plans = [world.allreduce_init::<i64>(3, Sum)?, world.plan((&tree, Sum))?];
    for (number, plan) in plans.iter_mut().enumerate() {
        for start in 0..effort(job, 20, 3) {
            plan.input()?.copy_from_slice(&values(me, start, 3));
            plan.start()?;
            misused(job, plan.input().map(drop), &["input(", "a start is active"]);
            misused(job, plan.result().map(drop), &["result(", "a start is active"]);
            misused(job, plan.buffer(BufferId::FIRST).map(drop), &["buffer(", "a start is active"]);
            misused(job, plan.buffer_mut(BufferId::FIRST).map(drop), &["buffer(", "a start is active"]);
            plan.wait()?;
            let result = plan.result()?;
            let (first, rest) = result.split_at(1);
            job.barrier()?; // all members have left the start
            assert_eq!([first, rest].concat(), sums(ranks, start, 3), "plan {number}, start {start}");
            assert_eq!(plan.result()?, sums(ranks, start, 3), "plan {number}, start {start}, again");
        }
    }
    let [of_library, of_program] = &mut plans;
    misused(job, of_library.buffer(BufferId::FIRST).map(drop), &["buffer 0", "own schedule"]);
    let none = BufferId::numbered(77).expect("77 is a small number");
    misused(job, of_program.buffer(none).map(drop), &["buffer 77"]);
    misused(job, of_program.buffer_mut(none).map(drop), &["buffer 77"]);
    // What the program writes into a buffer is there in the next start, unless the input lies there, too.
    of_program.buffer_mut(BufferId::FIRST)?.fill(1);
    of_program.start()?;
    of_program.wait()?;
    assert_eq!(of_program.result()?, sums(ranks, effort(job, 20, 3) - 1, 3));
    job.barrier()
}
