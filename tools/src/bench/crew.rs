//! The program of any number of ranks that take turns: collective calls beside other libraries, and cases in which each
//! rank has a part of its own.

use super::case::Case;
use super::collective::Collective;
use super::figure::{Key, Point};
use super::fuzzy::Fuzzy;
use super::link::Link;
use super::measure::Measure;
use super::overlap::Overlap;
use super::plan::{Effort, Plan};
use super::pressure::Pressure;
use super::repetition::Series;
use super::session::Session;
use super::turns::{Entry, Player};
use tasuki::Job;

/// The group of the hand-over.
const HAND_OVER: &str = "hand-over";

/// All ranks run this.
pub(super) fn app(job: &Job, plan: &Plan, link: Link<'_>) -> tasuki::Result<()> {
    let mut session = Session::new(job, plan, link, plan.cases.len())?;
    let mut hand_overs = Series::default();
    for &case in &plan.cases {
        let (point, what) = (Point::of_word(case, ""), format!("{case}, {} ranks", job.size()));
        let mut entries = entries_of(job, case, &plan.effort)?;
        let points = if plan.has_peers && case.has_peers() { vec![point] } else { Vec::new() };
        entries.extend(session.others(&points)?);
        hand_overs.append(session.take(&what, &what, entries)?);
    }
    session.tell(HAND_OVER, Key::limit("hand_over"), hand_overs);
    Ok(())
}

/// The figures of a case. Collective.
fn entries_of<'j>(job: &'j Job, case: Case, effort: &Effort) -> tasuki::Result<Vec<Entry<'j>>> {
    let measure: Box<dyn Measure + 'j> = match case {
        Case::OverlapCopy | Case::Thirdparty => {
            let all = Overlap::all(job, case, effort)?;
            return Ok(all.map(|(key, measure)| (key, Player::Ours(Box::new(measure) as _))).collect());
        }
        Case::Pressure => Box::new(Pressure::new(job, effort.commands)?),
        Case::Fuzzy | Case::FuzzyHidden => Box::new(Fuzzy::new(job, case, effort.calls)),
        _ => Box::new(Collective::new(job, case, effort.calls)),
    };
    Ok(vec![(Point::of_word(case, "").ours(), Player::Ours(measure))])
}

#[cfg(test)]
mod tests {
    use super::super::case::Kind;
    use super::super::figure::{Answer, Event, Question};
    use super::super::limit::SharedFile;
    use super::*;
    use std::sync::Mutex;

    fn of_kind(kind: Kind) -> Vec<Case> {
        Case::all().iter().copied().filter(|case| case.kind() == kind).collect()
    }

    /// Figures that ranks, here threads, tell of these cases: `case variant`, in order.
    fn figures(cases: &[Case], ranks: usize) -> Vec<String> {
        let file = SharedFile::create(0).unwrap();
        let (shared, effort) = (file.path(), Effort::TINY);
        let (sizes, cases) = (Vec::new(), cases.to_vec());
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
            assert_eq!(figures(&cases, ranks).len(), cases.len() + 1);
        }
    }

    #[test]
    fn many_ranks_fill_a_queue() {
        assert_eq!(figures(&[Case::Pressure], 4), ["pressure ", "limit hand_over"]);
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
