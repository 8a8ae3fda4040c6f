//! Work beside communication that proceeds without calls of the working rank. In overlap_copy and thirdparty a rank
//! works, without any call, while another rank copies from its memory. In overlap_coll two ranks share a processor and
//! work, while a helper on another processor runs their plans.
//!
//! ```text
//! rank 1, one processor       works, and says when it begins and when it has ended
//! the mover, the other one    copies from rank 1 to rank 0 all the while: rank 0 itself (overlap_copy), or rank 2
//!                             while rank 0 sleeps in a wait (thirdparty)
//! ```

use super::collective_data::{Operation, Round, back_to_back, slowest};
use super::collectives::Plans;
use super::{Figure, Figures, Setup, Stopwatch, expect, figure};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;
use tasuki::onesided::After;
use tasuki::{Array, Job, Rank, Signal};

/// Number of values of an array so that two arrays fit in the first-level cache (16 KiB together), or in the
/// second-level cache (256 KiB together).
const IN_L1: usize = 1 << 10;
const IN_L2: usize = 16 << 10;

/// Work without any call: sweeps of a stencil over an array of values.
struct Stencil {
    values: Vec<f64>,
    next: Vec<f64>,
}

impl Stencil {
    /// Makes a stencil over this many values, at least three.
    fn new(values: usize) -> Stencil {
        let row: Vec<f64> = (0..values.max(3)).map(|at| (at % 7) as f64).collect();
        Stencil { next: row.clone(), values: row }
    }

    /// Computes at least this many values, in whole sweeps, so that the amount of work is always the same.
    #[inline(never)]
    fn work(&mut self, points: u64) {
        for _ in 0..points.div_ceil(self.values.len() as u64) {
            let (inner, last) = (&self.values, self.next.len() - 1);
            for (to, of) in self.next[1..last].iter_mut().zip(inner.windows(3)) {
                *to = 0.25 * of[0] + 0.5 * of[1] + 0.25 * of[2];
            }
            std::mem::swap(&mut self.values, &mut self.next);
            black_box(&mut self.values);
        }
    }
}

/// Number of words in a copy, and number of copies for which there is room.
const WORDS: usize = (1 << 20) / size_of::<u64>();
const PLACES: usize = 8;
/// The mover makes at least this many copies. All of them are checked.
const COPIES_MIN: usize = 3;
const FROM: Rank = Rank(1);
const TO: Rank = Rank(0);
/// Indices of the results, in the memory of the lead.
const WORK_NS: usize = 0;
const COPY_RATE: usize = 1;

/// What rank 1 does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// It sleeps for as long as it would work. If it waited in the library instead, it would copy, too.
    Away,
    InL1,
    InL2,
}

/// The variant, the work of rank 1, true if the mover copies, and the index of the result that counts.
type Scene = (&'static str, Work, bool, usize);

const SCENES: [Scene; 6] = [
    ("work_alone", Work::InL1, false, WORK_NS),
    ("work_beside", Work::InL1, true, WORK_NS),
    ("copy_alone", Work::Away, true, COPY_RATE),
    ("copy_beside", Work::InL1, true, COPY_RATE),
    ("stencil_alone", Work::InL2, false, WORK_NS),
    ("stencil_beside", Work::InL2, true, WORK_NS),
];

/// Memory and signals of all figures of a case.
struct OverlapBuffers<'j> {
    job: &'j Job,
    mover: Rank,
    source: Array<u64>,
    target: Array<u64>,
    results: Array<u64>,
    begun: Signal<'j>,
    ended: Signal<'j>,
    moved: Signal<'j>,
    round: u64,
    in_l1: Stencil,
    in_l2: Stencil,
    points: u64,
    /// How long rank 1 worked in its first-level cache in the most recent round.
    worked: Duration,
}

/// overlap_copy with two ranks, thirdparty with three. A figure is the median of several rounds; one round before them
/// does not count.
pub(crate) fn copies<'j>(s: &Setup<'j>) -> Figures<'j> {
    let job = s.job;
    let (source, target, results) = (job.alloc(PLACES * WORDS)?, job.alloc(PLACES * WORDS)?, job.alloc(2)?);
    target.fill(0)?;
    let stage = Rc::new(RefCell::new(OverlapBuffers {
        job,
        mover: if job.size() > 2 { Rank(2) } else { TO },
        source,
        target,
        results,
        begun: job.signal()?,
        ended: job.signal()?,
        moved: job.signal()?,
        round: 0,
        in_l1: Stencil::new(IN_L1),
        in_l2: Stencil::new(IN_L2),
        points: s.effort.times(4 << 20),
        worked: Duration::ZERO,
    }));
    let rounds = s.effort.times(5);
    let of = |scene: Scene| {
        let stage = stage.clone();
        let repeat = move || {
            let mut stage = stage.borrow_mut();
            stage.round(scene)?;
            let mut results = (0..rounds).map(|_| stage.round(scene)).collect::<tasuki::Result<Vec<_>>>()?;
            results.sort_unstable();
            Ok(results[results.len() / 2] as f64)
        };
        figure(scene.0, repeat)
    };
    Ok(SCENES.map(of).into())
}

impl OverlapBuffers<'_> {
    /// Runs one round and returns its result on the lead. Between `begun` and `ended` rank 1 makes no call.
    fn round(&mut self, (_, work, copies, result): Scene) -> tasuki::Result<u64> {
        self.round += 1;
        let (me, round) = (self.job.rank(), self.round);
        if me == FROM {
            self.source.fill(round)?;
        }
        self.job.barrier()?;
        if me == FROM {
            self.perform(work)?;
        }
        if me == self.mover {
            self.begun.wait_at_least(round)?;
            if copies {
                self.copy_meanwhile()?
            } else {
                self.ended.wait_at_least(round)?
            }
            self.job.raise(self.moved.on(TO), 1)?;
        }
        if me == TO {
            self.moved.wait_at_least(round)?;
            let mut words = vec![0; if copies { COPIES_MIN * WORDS } else { 0 }];
            self.target.read(0, &mut words)?;
            expect(words.iter().all(|&word| word == round), true, "overlap")?;
        }
        self.job.barrier()?;
        if me == TO { self.results.get(result) } else { Ok(0) }
    }

    fn perform(&mut self, work: Work) -> tasuki::Result<()> {
        self.job.raise(self.begun.on(self.mover), 1)?;
        let watch = Stopwatch::start();
        match work {
            Work::Away => std::thread::sleep(self.worked),
            Work::InL1 => self.in_l1.work(self.points),
            Work::InL2 => self.in_l2.work(self.points),
        }
        let took = watch.ns(0);
        if work == Work::InL1 {
            self.worked = Duration::from_nanos(took);
        }
        self.job.raise(self.ended.on(self.mover), 1)?;
        self.job.store(self.results.on(TO).at(WORK_NS), took)
    }

    /// Copies until rank 1 has ended. The last copy does not count, because rank 1 ended during it.
    fn copy_meanwhile(&self) -> tasuki::Result<()> {
        let (watch, mut copies, mut took) = (Stopwatch::start(), 0, 0);
        while copies < COPIES_MIN || self.ended.value() < self.round {
            took = watch.ns(0);
            let at = copies % PLACES * WORDS;
            let (from, to) = (self.source.on(FROM).at(at), self.target.on(TO).at(at));
            let copy = self.job.copy(from, to, WORDS, After::Nothing)?.handle();
            self.job.complete(copy)?;
            copies += 1;
        }
        let bytes = (copies - 1) * WORDS * size_of::<u64>();
        let rate = (bytes as f64 / (took.max(1) as f64 / 1e9)) as u64;
        self.job.store(self.results.on(TO).at(COPY_RATE), rate)
    }
}

/// Number of rounds beside work, number of warm-up rounds that do not count, and number of points that are computed in
/// each round.
const ROUNDS: u64 = 8;
const WARM_UP: usize = 2;
const POINTS: u64 = 48 << 20;
/// Number of starts of the plans without work.
const CALLS: u64 = 200;
/// Number of readings of the clock from which the cost of one is derived.
const LOOKS: u64 = 1_000;

/// Returns the options of the job: its two ranks on the first processor, the helper on the last.
pub(crate) fn options(processors: &[usize]) -> Vec<String> {
    let (ranks, helper) = (processors[0], processors[processors.len() - 1]);
    ["--bind", &format!("{ranks},{ranks}"), "--helper", &format!("node:{helper}")].map(String::from).into()
}

/// overlap_coll: the processor time that start and wait of a plan take beside work, and the time of the plan where no
/// rank works.
pub(crate) fn plans<'j>(s: &Setup<'j>) -> Figures<'j> {
    let mut figures = Vec::new();
    for (name, operation) in [("bcast", Operation::Bcast), ("allreduce", Operation::Allreduce)] {
        for bytes in [8 << 10, 1 << 20] {
            let mut plans = Plans::new(s.job, operation, bytes)?;
            let alone = back_to_back(s.job, bytes, s.effort.times(CALLS), move |round| plans.play(round));
            let beside = beside_work(s, Plans::new(s.job, operation, bytes)?, bytes);
            let of_bytes = |figure| Figure { bytes: Some(bytes), ..figure };
            figures.push(of_bytes(figure(format!("{name}_alone"), alone)));
            figures.push(of_bytes(figure(format!("{name}_beside"), beside)));
        }
    }
    Ok(figures)
}

/// Returns the processor time of this thread in ns.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn processor_ns_of(call: impl FnOnce() -> tasuki::Result<()>) -> tasuki::Result<f64> {
    let begin = processor_ns();
    call().map(|()| processor_ns() - begin)
}

/// The cost of reading the clock is subtracted. The cost in warm caches is subtracted from each start. The cost after
/// work is measured in each round, around nothing, and its median is subtracted from the median of the rounds.
fn beside_work<'j>(
    s: &Setup<'j>,
    mut plans: Plans,
    bytes: u64,
) -> impl FnMut() -> tasuki::Result<f64> + use<'j> {
    let (job, rounds, points) = (s.job, s.effort.rounds_beside(ROUNDS), s.effort.times(POINTS));
    let (mut work, mut round) = (Stencil::new(IN_L1), Round::new(job, bytes));
    move || {
        let begin = processor_ns();
        let look = ((0..LOOKS).fold(begin, |_, _| processor_ns()) - begin) / LOOKS as f64;
        let (mut took, mut clock) = (Vec::new(), Vec::new());
        for _ in 0..WARM_UP as u64 + rounds {
            round.next();
            plans.give(&round)?;
            job.barrier()?;
            let start = processor_ns_of(|| plans.start(&round))? - look;
            work.work(points);
            took.push(start + processor_ns_of(|| plans.wait(&round))?);
            plans.check(&round)?;
            work.work(points);
            clock.push(processor_ns_of(|| Ok(()))?);
        }
        let middle = |mut all: Vec<f64>| {
            all.drain(..WARM_UP);
            all.sort_by(f64::total_cmp);
            let at = all.len() / 2;
            if all.len().is_multiple_of(2) { (all[at - 1] + all[at]) / 2.0 } else { all[at] }
        };
        slowest(job.world(), (middle(took) - middle(clock)).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_smooths_what_is_inside() {
        let mut stencil = Stencil::new(5);
        (stencil.values, stencil.next) = (vec![0.0, 0.0, 4.0, 0.0, 0.0], vec![0.0; 5]);
        stencil.work(6); // two sweeps
        assert_eq!(stencil.values, [0.0, 1.0, 1.5, 1.0, 0.0]);
    }
}
