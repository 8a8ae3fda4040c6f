//! overlap_copy, thirdparty: a rank works, without any call, while others copy from its memory. How much longer does it
//! work, and how much slower is the copy?
//!
//! ```text
//! rank 1, one processor       works, and says when it begins and when it has ended
//! the mover, the other one    copies from rank 1 to rank 0 all the while: rank 0 itself (overlap_copy), or rank 2
//!                             while rank 0 sleeps in a wait (thirdparty)
//! ```

use crate::case::Case;
use crate::cases::overlap::stencil::{IN_L1, IN_L2, Stencil};
use crate::harness::measure::{Measure, wrong};
use crate::harness::measurement_plan::Effort;
use crate::harness::stopwatch::Stopwatch;
use crate::result::figure::Key;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tasuki::{After, Array, Job, Rank, Signal};

/// Ranks of thirdparty.
pub(crate) const THIRDPARTY_RANKS: usize = 3;
/// Bytes of a copy,
const BYTES: u64 = 1 << 20;
const VALUES: usize = BYTES as usize / size_of::<u64>();
/// and copies after which the first place is copied again.
const PLACES: usize = 8;
/// Copies that there are at least, of which the last does not count: rank 1 may have ended during it, and be of help.
const COPIES_MIN: usize = 3;

/// Where the bytes come from and go to.
const FROM: Rank = Rank(1);
const TO: Rank = Rank(0);
/// Results on the lead.
const WORK_NS: usize = 0;
const COPY_RATE: usize = 1;

/// What rank 1 does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// Nothing: it sleeps, outside the library, so that it is of no help with the copy, and as long as it works
    /// elsewhere: the first copies are of what it has just written, and take longer.
    Away,
    InL1,
    InL2,
}

/// A figure: what happens, and what of it is timed.
#[derive(Clone, Copy)]
struct OverlapScene {
    variant: &'static str,
    work: Work,
    copies: bool,
    result: usize,
}

/// In turns: each of what is beside the other, and the same alone.
const SCENES: [OverlapScene; 6] = [
    OverlapScene { variant: "work_alone", work: Work::InL1, copies: false, result: WORK_NS },
    OverlapScene { variant: "work_beside", work: Work::InL1, copies: true, result: WORK_NS },
    OverlapScene { variant: "copy_alone", work: Work::Away, copies: true, result: COPY_RATE },
    OverlapScene { variant: "copy_beside", work: Work::InL1, copies: true, result: COPY_RATE },
    OverlapScene { variant: "stencil_alone", work: Work::InL2, copies: false, result: WORK_NS },
    OverlapScene { variant: "stencil_beside", work: Work::InL2, copies: true, result: WORK_NS },
];

/// Memory and signals of all figures of a case.
struct Stage<'j> {
    job: &'j Job,
    mover: Rank,
    source: Array<u64>,
    target: Array<u64>,
    /// On the lead.
    results: Array<u64>,
    begun: Signal<'j>,
    ended: Signal<'j>,
    told: Signal<'j>,
    round: u64,
    in_l1: Stencil,
    in_l2: Stencil,
    points: u64,
    /// How long rank 1 has worked in its first-level cache, the last time.
    worked: Duration,
}

/// One figure of a case.
pub(crate) struct Overlap<'j> {
    stage: Rc<RefCell<Stage<'j>>>,
    scene: OverlapScene,
    rounds: u64,
}

impl<'j> Overlap<'j> {
    /// All figures of a case, by their keys. Collective, of as many ranks as the case has.
    pub(crate) fn all(
        job: &'j Job,
        case: Case,
        effort: &Effort,
    ) -> tasuki::Result<impl Iterator<Item = (Key, Overlap<'j>)> + use<'j>> {
        let (stage, rounds) = (Rc::new(RefCell::new(Stage::new(job, case, effort.points)?)), effort.overlaps);
        let of = move |scene: OverlapScene| {
            (Key::ours(case, scene.variant, BYTES), Overlap { stage: stage.clone(), scene, rounds })
        };
        Ok(SCENES.into_iter().map(of))
    }
}

impl<'j> Stage<'j> {
    fn new(job: &'j Job, case: Case, points: u64) -> tasuki::Result<Stage<'j>> {
        let mover = if case == Case::Thirdparty { Rank(2) } else { TO };
        let (source, target) = (job.alloc(PLACES * VALUES)?, job.alloc(PLACES * VALUES)?);
        let results = job.alloc(2)?;
        let (begun, ended, told) = (job.signal()?, job.signal()?, job.signal()?);
        target.fill(0)?;
        let (in_l1, in_l2, round) = (Stencil::new(IN_L1), Stencil::new(IN_L2), 0);
        Ok(Stage {
            job,
            mover,
            source,
            target,
            results,
            begun,
            ended,
            told,
            round,
            in_l1,
            in_l2,
            points,
            worked: Duration::ZERO,
        })
    }

    /// One round of a scene; its result on the lead. Between `begun` and `ended` rank 1 makes no call.
    fn round(&mut self, scene: OverlapScene) -> tasuki::Result<u64> {
        self.round += 1;
        let me = self.job.rank();
        if me == FROM {
            self.source.fill(self.round)?;
        }
        self.job.barrier()?;
        if me == FROM {
            self.perform(scene.work)?;
        }
        if me == self.mover {
            self.begun.wait_at_least(self.round)?;
            if scene.copies {
                self.copy_meanwhile()?
            } else {
                self.ended.wait_at_least(self.round)?
            }
            self.job.raise(self.told.on(TO), 1)?;
        }
        if me == TO {
            self.told.wait_at_least(self.round)?;
            self.check(scene)?;
        }
        self.job.barrier()?;
        if me == TO { self.results.get(scene.result) } else { Ok(0) }
    }

    /// Rank 1's part.
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

    /// The mover's part: copies until rank 1 has ended.
    fn copy_meanwhile(&self) -> tasuki::Result<()> {
        let (watch, mut copies, mut took) = (Stopwatch::start(), 0, 0);
        while copies < COPIES_MIN || self.ended.value() < self.round {
            took = watch.ns(0);
            let at = copies % PLACES * VALUES;
            let (from, to) = (self.source.on(FROM).at(at), self.target.on(TO).at(at));
            let copy = self.job.copy(from, to, VALUES, After::Nothing)?;
            self.job.complete(copy)?;
            copies += 1;
        }
        let rate = ((copies - 1) as f64 * BYTES as f64 / (took.max(1) as f64 / 1e9)) as u64;
        self.job.store(self.results.on(TO).at(COPY_RATE), rate)
    }

    /// That what was copied at least has arrived, every word of it.
    fn check(&self, scene: OverlapScene) -> tasuki::Result<()> {
        let mut values = vec![0; if scene.copies { COPIES_MIN * VALUES } else { 0 }];
        self.target.read(0, &mut values)?;
        if values.iter().all(|&value| value == self.round) { Ok(()) } else { Err(wrong("overlap")) }
    }
}

impl Measure for Overlap<'_> {
    /// The median of some rounds, after one that does not count.
    fn measure(&mut self) -> tasuki::Result<f64> {
        let mut stage = self.stage.borrow_mut();
        stage.round(self.scene)?;
        let mut results =
            (0..self.rounds.max(1)).map(|_| stage.round(self.scene)).collect::<tasuki::Result<Vec<_>>>()?;
        results.sort_unstable();
        Ok(results[results.len() / 2] as f64)
    }
}
