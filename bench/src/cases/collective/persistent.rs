//! persistent: collectives that were prepared beforehand, one plan for each root, started and waited for; by the very
//! last rank, too, while all others wait. Also how collectives are played that have no call of their own.

use crate::case::Case;
use crate::cases::collective::calls::{CALLS_MIN, Play, Round, TIME_MAX_NS, WARM_UP, slowest};
use crate::harness::measure::{Measure, wrong};
use crate::harness::stopwatch::Stopwatch;
use std::time::Duration;
use tasuki::{Job, Plan, Rank, Signal, Sum};

/// What is prepared.
pub(crate) const OPERATIONS: [Case; 6] =
    [Case::Bcast, Case::Allreduce, Case::Reduce, Case::Allgather, Case::Alltoall, Case::Barrier];
/// Of these, what a rank is the last to start,
const LAST: [Case; 2] = [Case::Bcast, Case::Barrier];
/// up to this size.
const LAST_BYTES_MAX: u64 = 8 << 10;
/// Repetitions of a plan and a call in turn: their ratio is asked for to a few hundredths.
pub(crate) const REPETITIONS: usize = 7;
/// All others have said that they are about to wait; in this time they do.
const PAUSE: Duration = Duration::from_micros(20);
/// What variants of the same by calls end with,
const CALL: &str = "_call";
/// and what those of the last rank begin with.
const LATE: &str = "last_";

/// The variant by plans.
pub(crate) fn variant(operation: Case) -> String {
    operation.to_string()
}

/// The same by calls.
pub(crate) fn variant_of_calls(operation: Case) -> String {
    format!("{operation}{CALL}")
}

/// Of the last rank, if it is measured.
pub(crate) fn variant_of_last(operation: Case, bytes: u64) -> Option<String> {
    (LAST.contains(&operation) && bytes <= LAST_BYTES_MAX).then(|| format!("{LATE}{operation}"))
}

/// The variant by calls beside which another one stands.
pub(crate) fn beside_calls(variant: &str) -> String {
    format!("{}{CALL}", variant.strip_prefix(LATE).unwrap_or(variant))
}

/// Which operation the variant by plans is of; none of other variants, which nobody else can play.
pub(crate) fn operation_of(variant: &str) -> Option<Case> {
    OPERATIONS.into_iter().find(|operation| operation.to_string() == variant)
}

/// Whether a variant is by calls: a figure that others stand beside.
pub(crate) fn is_of_calls(variant: &str) -> bool {
    variant.ends_with(CALL)
}

/// The plans of a collective.
pub(crate) struct Plans {
    case: Case,
    made: Made,
}

enum Made {
    Barrier(Plan<u8>),
    /// One for each root, or the only one.
    Values(Vec<Plan<u64>>),
}

impl Plans {
    /// Collective. Of blocks of `bytes` bytes.
    pub(crate) fn new(job: &Job, case: Case, bytes: u64) -> tasuki::Result<Plans> {
        let (world, words) = (job.world(), bytes as usize / size_of::<u64>());
        let of_roots = |init: &dyn Fn(Rank) -> tasuki::Result<Plan<u64>>| job.ranks().map(init).collect();
        let plans: tasuki::Result<Vec<Plan<u64>>> = match case {
            Case::Bcast => of_roots(&|root| world.bcast_init(words, root)),
            Case::Reduce => of_roots(&|root| world.reduce_init(words, Sum, root)),
            Case::Scatter => of_roots(&|root| world.scatter_init(words, root)),
            Case::Allreduce => world.allreduce_init(words, Sum).map(|plan| vec![plan]),
            Case::Allgather => world.allgather_init(words).map(|plan| vec![plan]),
            Case::Alltoall => world.alltoall_init(words).map(|plan| vec![plan]),
            Case::ReduceScatter => world.reduce_scatter_init(words, Sum).map(|plan| vec![plan]),
            _ => return Ok(Plans { case, made: Made::Barrier(world.barrier_init()?) }),
        };
        Ok(Plans { case, made: Made::Values(plans?) })
    }

    /// Of plans that are there: one for each root, or the only one.
    pub(crate) fn made(case: Case, plans: Vec<Plan<u64>>) -> Plans {
        Plans { case, made: Made::Values(plans) }
    }

    /// Writes what this rank gives.
    pub(crate) fn give(&mut self, round: &Round) -> tasuki::Result<()> {
        let Made::Values(plans) = &mut self.made else { return Ok(()) };
        let (place, rank) = (place(plans, round), round.rank);
        let plan = &mut plans[place];
        match self.case {
            Case::Bcast | Case::Scatter if !round.is_root() => Ok(()),
            Case::Allgather => write(plan, rank, round.words, round.value(rank)),
            Case::Alltoall | Case::Scatter | Case::ReduceScatter => {
                (0..round.ranks).try_for_each(|to| write(plan, to, round.words, round.value_for(rank, to)))
            }
            _ => write(plan, 0, round.words, round.value(rank)),
        }
    }

    /// Starts it,
    #[inline]
    pub(crate) fn start(&mut self, round: &Round) -> tasuki::Result<()> {
        match &mut self.made {
            Made::Barrier(plan) => plan.start(),
            Made::Values(plans) => {
                let place = place(plans, round);
                plans[place].start()
            }
        }
    }

    /// and waits for it.
    #[inline]
    pub(crate) fn wait(&mut self, round: &Round) -> tasuki::Result<()> {
        match &mut self.made {
            Made::Barrier(plan) => plan.wait(),
            Made::Values(plans) => {
                let place = place(plans, round);
                plans[place].wait()
            }
        }
    }

    /// Checks what this rank got.
    pub(crate) fn expect(&self, round: &Round) -> tasuki::Result<()> {
        let Made::Values(plans) = &self.made else { return Ok(()) };
        let (rank, root, from) = (round.rank, round.root(), round.looked_at());
        let (block, value) = match self.case {
            Case::Bcast => (0, round.value(root)),
            Case::Reduce if !round.is_root() => return Ok(()),
            Case::Allgather => (from, round.value(from)),
            Case::Alltoall => (from, round.value_for(from, rank)),
            Case::Scatter => (if round.is_root() { rank } else { 0 }, round.value_for(root, rank)),
            Case::ReduceScatter => (rank, round.sum_for(rank)),
            _ => (0, round.sum()),
        };
        let (plan, mut got) = (&plans[place(plans, round)], [value; 2]);
        let first = block * round.words;
        plan.read(first, &mut got[..1])?;
        if round.words > 1 {
            plan.read(first + round.words - 1, &mut got[1..])?;
        }
        if got == [value; 2] { Ok(()) } else { Err(wrong(&self.case.to_string())) }
    }
}

/// Which of those plans it is.
fn place(plans: &[Plan<u64>], round: &Round) -> usize {
    if plans.len() == 1 { 0 } else { round.root() }
}

/// The first and the last word of a block.
fn write(plan: &mut Plan<u64>, block: usize, words: usize, value: u64) -> tasuki::Result<()> {
    plan.write(block * words, &[value])?;
    if words > 1 { plan.write((block + 1) * words - 1, &[value]) } else { Ok(()) }
}

impl Play for Plans {
    fn play(&mut self, round: &Round) -> tasuki::Result<()> {
        self.give(round)?;
        self.start(round)?;
        self.wait(round)?;
        self.expect(round)
    }
}

/// Start and wait of the rank that comes last. It is never the root.
pub(crate) struct Last<'j> {
    job: &'j Job,
    plans: Plans,
    late: Rank,
    /// That all others are about to wait.
    ready: Signal<'j>,
    round: Round,
    calls: u64,
    clock_ns: u64,
}

impl<'j> Last<'j> {
    /// Collective. `calls` times, of blocks of `bytes` bytes.
    pub(crate) fn new(job: &'j Job, case: Case, bytes: u64, calls: u64) -> tasuki::Result<Last<'j>> {
        let (plans, ready) = (Plans::new(job, case, bytes)?, job.signal()?);
        let (late, round) = (Rank(job.size() as u32 - 1), Round::new(job, bytes));
        Ok(Last { job, plans, late, ready, round, calls, clock_ns: Stopwatch::cost_ns() })
    }

    /// The time of one on the rank that comes last; 0 on the others.
    fn once(&mut self) -> tasuki::Result<u64> {
        let others = self.round.ranks as u64 - 1;
        self.round.next_of_root();
        self.job.barrier()?;
        self.plans.give(&self.round)?;
        let mut took = 0;
        if self.job.rank() == self.late {
            self.ready.wait_at_least(self.round.number / self.round.ranks as u64 * others)?;
            let pause = Stopwatch::start();
            while u128::from(pause.ns(0)) < PAUSE.as_nanos() {
                std::thread::yield_now(); // to others on this processor
            }
            let watch = Stopwatch::start();
            self.plans.start(&self.round)?;
            self.plans.wait(&self.round)?;
            took = watch.ns(self.clock_ns);
        } else {
            self.plans.start(&self.round)?;
            self.job.raise(self.ready.on(self.late), 1)?;
            self.plans.wait(&self.round)?;
        }
        self.plans.expect(&self.round)?;
        Ok(took)
    }

    /// The mean of so many in ns.
    fn time(&mut self, calls: u64) -> tasuki::Result<f64> {
        let mut took = 0;
        for _ in 0..calls {
            took += self.once()?;
        }
        slowest(self.job.world(), took as f64 / calls as f64)
    }
}

impl Measure for Last<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        let (watch, calls) = (Stopwatch::start(), WARM_UP.min(self.calls));
        self.time(calls)?;
        let each = slowest(self.job.world(), watch.ns(0) as f64 / calls as f64)?;
        self.time(self.calls.min(((TIME_MAX_NS / each.max(1.0)) as u64).max(CALLS_MIN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_told_apart() {
        for operation in OPERATIONS {
            let (plan, calls) = (variant(operation), variant_of_calls(operation));
            assert_eq!(operation_of(&plan), Some(operation));
            assert!(operation_of(&calls).is_none() && is_of_calls(&calls) && !is_of_calls(&plan));
            assert_eq!(beside_calls(&plan), calls);
        }
        let last = variant_of_last(Case::Bcast, 8).unwrap();
        assert_eq!((last.as_str(), beside_calls(&last)), ("last_bcast", variant_of_calls(Case::Bcast)));
        assert!(
            variant_of_last(Case::Bcast, 1 << 20).is_none() && variant_of_last(Case::Reduce, 8).is_none()
        );
        assert_eq!(operation_of(&last), None);
    }
}
