//! The program of any number of ranks that take turns: collective calls beside other libraries, and cases in which each
//! rank has a part of its own.

use crate::case::Case;
use crate::cases::collective::calls::{Calls, Collective};
use crate::cases::collective::fuzzy_barrier::Fuzzy;
use crate::cases::collective::persistent::{self, Last, OPERATIONS, Plans};
use crate::cases::collective::single_driver::{self, Form};
use crate::cases::overlap::copy_overlap::Overlap;
use crate::cases::queue_contention::QueueContention;
use crate::harness::control_channel::Link;
use crate::harness::interleave::{Entry, Player};
use crate::harness::measure::Measure;
use crate::harness::measurement_plan::{Effort, Plan};
use crate::harness::repetition::Series;
use crate::harness::session::Session;
use crate::result::figure::{Key, Point};
use crate::sizes;
use std::fmt;
use tasuki::Job;

/// The group of the hand-over.
const HAND_OVER: &str = "hand-over";

/// All ranks run this.
pub(crate) fn app(job: &Job, plan: &Plan, link: Link<'_>) -> tasuki::Result<()> {
    let scenes = scenes(&plan.cases, &plan.sizes);
    let mut session = Session::new(job, plan, link, scenes.len())?;
    let (mut hand_overs, usual) = (Series::default(), plan.effort.patience.wanted);
    for scene in &scenes {
        session.want(usual.max(if scene.case == Case::Persistent { persistent::REPETITIONS } else { 0 }));
        let what = format!("{scene}, {} ranks", job.size());
        let mut entries = scene.entries(job, &plan.effort)?;
        let has_peers = plan.has_peers && scene.case.has_peers();
        entries.extend(session.others(&if has_peers { vec![scene.point()] } else { Vec::new() })?);
        hand_overs.append(session.take(&what, &what, entries)?);
    }
    session.tell(HAND_OVER, Key::limit("hand_over"), hand_overs);
    Ok(())
}

/// Figures that are taken in turn: of one case, or of one size of it.
pub(crate) struct Scene {
    case: Case,
    /// What is called; of [`Case::Persistent`] and [`Case::SingleDriver`], what it is that was prepared.
    operation: Case,
    bytes: u64,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.case)?;
        if self.operation != self.case {
            write!(f, " {}", self.operation)?;
        }
        if self.case.has_sizes() { write!(f, " {}", sizes::show(self.bytes)) } else { Ok(()) }
    }
}

/// All of some cases.
pub(crate) fn scenes(cases: &[Case], asked: &[u64]) -> Vec<Scene> {
    let of = |case, operation, sizes: &[u64]| -> Vec<Scene> {
        sizes.iter().map(|&bytes| Scene { case, operation, bytes }).collect()
    };
    let of_case = |&case: &Case| match case {
        Case::Persistent => OPERATIONS
            .into_iter()
            .flat_map(|operation| of(case, operation, sizes::of_prepared(operation, asked)))
            .collect(),
        Case::SingleDriver => single_driver::OPERATIONS
            .into_iter()
            .flat_map(|operation| of(case, operation, sizes::of(case, asked)))
            .collect(),
        _ if case.has_sizes() => of(case, case, sizes::of(case, asked)),
        _ => of(case, case, &[size_of::<u64>() as u64]),
    };
    cases.iter().flat_map(of_case).collect()
}

impl Scene {
    /// What others may play of it.
    fn point(&self) -> Point {
        let name =
            if self.case == self.operation { String::new() } else { persistent::variant(self.operation) };
        Point::of_collective(self.case, &name, self.bytes)
    }

    /// Its figures. Collective.
    fn entries<'j>(&self, job: &'j Job, effort: &Effort) -> tasuki::Result<Vec<Entry<'j>>> {
        let &Scene { case, operation, bytes } = self;
        let (calls, key) = (effort.calls, self.point().ours());
        Ok(match case {
            Case::OverlapCopy | Case::Thirdparty => {
                Overlap::all(job, case, effort)?.map(|(key, measure)| (key, ours(measure))).collect()
            }
            Case::Persistent => self.prepared(job, calls)?,
            Case::SingleDriver => self.single_driver(job, calls)?,
            Case::QueueContention => vec![(key, ours(QueueContention::new(job, effort.commands)?))],
            Case::Fuzzy | Case::FuzzyHidden => vec![(key, ours(Fuzzy::new(job, case, calls)))],
            _ => vec![(key, ours(Collective::new(job, Calls::new(job, operation, bytes), bytes, calls)))],
        })
    }

    /// Plans whose commands all ranks have, and one rank.
    fn single_driver<'j>(&self, job: &'j Job, calls: u64) -> tasuki::Result<Vec<Entry<'j>>> {
        let &Scene { case, operation, bytes } = self;
        let entry = |form: Form| {
            let plans = single_driver::plans(job, operation, form, bytes)?;
            let key = Key::ours(case, &form.variant(operation), bytes);
            Ok((key, ours(Collective::new(job, plans, bytes, calls))))
        };
        Form::ALL.into_iter().map(entry).collect()
    }

    /// Plans, the same by calls, and start and wait of the last rank.
    fn prepared<'j>(&self, job: &'j Job, calls: u64) -> tasuki::Result<Vec<Entry<'j>>> {
        let &Scene { case, operation, bytes } = self;
        let plans = Plans::new(job, operation, bytes)?;
        let mut entries = vec![(self.point().ours(), ours(Collective::new(job, plans, bytes, calls)))];
        let by_calls = Collective::new(job, Calls::new(job, operation, bytes), bytes, calls);
        entries.push((Key::ours(case, &persistent::variant_of_calls(operation), bytes), ours(by_calls)));
        if let Some(variant) = persistent::variant_of_last(operation, bytes) {
            let last = Last::new(job, operation, bytes, calls)?;
            entries.push((Key::ours(case, &variant, bytes), ours(last)));
        }
        Ok(entries)
    }
}

fn ours<'j>(measure: impl Measure + 'j) -> Player<'j> {
    Player::Ours(Box::new(measure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Kind;
    use crate::limit::SharedFile;
    use crate::result::figure::{Answer, Event, Question};
    use std::sync::Mutex;

    fn of_kind(kind: Kind) -> Vec<Case> {
        Case::all().iter().copied().filter(|case| case.kind() == kind).collect()
    }

    /// Figures that ranks, here threads, tell of these cases: `case variant`, in order.
    fn figures(cases: &[Case], ranks: usize) -> Vec<String> {
        let file = SharedFile::create(0).unwrap();
        let (shared, effort) = (file.path(), Effort::TINY);
        let (sizes, cases) = (vec![8, 4096], cases.to_vec());
        let plan = Plan { cases, sizes, shared, limit_first: true, has_peers: true, effort };
        let told = Mutex::new(Vec::new());
        tasuki::local(ranks, |job| {
            let tell = |event| match event {
                Event::Figure { key, series, .. } if job.rank().0 == 0 => {
                    assert!(!series.all().is_empty(), "{key:?}");
                    assert!(series.all().iter().all(|one| one.figure > 0.0), "{key:?}");
                    told.lock().unwrap().push(format!("{} {}", key.case, key.variant));
                }
                _ => {}
            };
            let ask = |question| match question {
                Question::Who(_) => Ok(Answer::Ready(Vec::new())),
                Question::Measure(_) => Ok(Answer::Figure(None)),
            };
            app(job, &plan, Link { tell: &tell, ask: &ask })
        })
        .unwrap();
        told.into_inner().unwrap()
    }

    #[test]
    fn every_collective_tells_its_figure_on_any_number_of_ranks() {
        let cases = of_kind(Kind::Collective);
        for ranks in [2, 3] {
            let told = figures(&cases, ranks);
            let count = |case: &Case| told.iter().filter(|name| **name == format!("{case} ")).count();
            let has_variants = |case: &Case| matches!(case, Case::Persistent | Case::SingleDriver);
            for case in cases.iter().filter(|case| !has_variants(case)) {
                assert_eq!(count(case), if case.has_sizes() { 2 } else { 1 }, "{case}: {told:?}");
            }
        }
    }

    #[test]
    fn plans_are_measured_beside_calls_and_by_the_last_rank() {
        let told = figures(&[Case::Persistent], 3);
        let count = |name: String| told.iter().filter(|told| **told == format!("persistent {name}")).count();
        for operation in OPERATIONS {
            let sizes = if operation == Case::Barrier { 1 } else { 2 };
            assert_eq!(count(persistent::variant(operation)), sizes, "{operation}: {told:?}");
            assert_eq!(count(persistent::variant_of_calls(operation)), sizes, "{operation}: {told:?}");
        }
        assert_eq!((count("last_bcast".into()), count("last_barrier".into())), (2, 1), "{told:?}");
    }

    #[test]
    fn plans_of_one_rank_stand_beside_those_of_all() {
        let told = figures(&[Case::SingleDriver], 3);
        for variant in
            single_driver::OPERATIONS.into_iter().flat_map(|case| Form::ALL.map(|form| form.variant(case)))
        {
            let count = told.iter().filter(|told| **told == format!("single_driver {variant}")).count();
            assert_eq!(count, 2, "{variant}: {told:?}");
        }
    }

    #[test]
    fn many_ranks_fill_a_queue() {
        assert_eq!(figures(&[Case::QueueContention], 4), ["queue_contention ", "limit hand_over"]);
    }

    #[test]
    fn work_and_copies_are_measured_beside_each_other_and_alone() {
        for (case, ranks) in [(Case::OverlapCopy, 2), (Case::Thirdparty, 3)] {
            let told = figures(&[case], ranks);
            assert_eq!(told.len(), 6 + 1);
            for what in ["work", "copy", "stencil"] {
                assert!(told.contains(&format!("{case} {what}_alone")), "{told:?}");
                assert!(told.contains(&format!("{case} {what}_beside")), "{told:?}");
            }
        }
    }
}
