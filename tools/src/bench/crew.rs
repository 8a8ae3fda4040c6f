//! The program of any number of ranks that play collective calls beside other libraries.

use super::case::Case;
use super::collective::Collective;
use super::figure::{Key, Point};
use super::fuzzy::Fuzzy;
use super::link::Link;
use super::measure::Measure;
use super::plan::Plan;
use super::repetition::Series;
use super::session::Session;
use super::turns::Player;
use tasuki::Job;

/// The group of the hand-over.
const HAND_OVER: &str = "hand-over";

/// All ranks run this.
pub(super) fn app(job: &Job, plan: &Plan, link: Link<'_>) -> tasuki::Result<()> {
    let mut session = Session::new(job, plan, link, plan.cases.len())?;
    let mut hand_overs = Series::default();
    for &case in &plan.cases {
        let (point, what) = (Point::of_word(case, ""), format!("{case}, {} ranks", job.size()));
        let measure: Box<dyn Measure + '_> = match case {
            Case::Fuzzy | Case::FuzzyHidden => Box::new(Fuzzy::new(job, case, plan.effort.calls)),
            _ => Box::new(Collective::new(job, case, plan.effort.calls)),
        };
        let mut entries = vec![(point.ours(), Player::Ours(measure))];
        let points = if plan.has_peers { vec![point] } else { Vec::new() };
        entries.extend(session.others(&points)?);
        hand_overs.append(session.take(&what, &what, entries)?);
    }
    session.tell(HAND_OVER, Key::limit("hand_over"), hand_overs);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::case::Kind;
    use super::super::figure::{Answer, Event, Question};
    use super::super::limit::SharedFile;
    use super::super::plan::Effort;
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_collective_tells_its_figure_on_any_number_of_ranks() {
        let is_collective = |case: &Case| case.kind() == Kind::Collective;
        let cases: Vec<Case> = Case::all().iter().copied().filter(is_collective).collect();
        for ranks in [2, 3] {
            let file = SharedFile::create(0).unwrap();
            let (shared, effort) = (file.path(), Effort::TINY);
            let (sizes, cases) = (Vec::new(), cases.clone());
            let plan = Plan { cases, sizes, shared, limit_first: true, has_peers: true, effort };
            let told = Mutex::new(Vec::new());
            tasuki::local(ranks, |job| {
                let tell = |event| match event {
                    Event::Figure { key, series, .. } if job.rank().0 == 0 => {
                        assert!(series.all().iter().all(|one| one.figure > 0.0), "{key:?}");
                        told.lock().unwrap().push((key.case, series.all().len()));
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
            let told = told.into_inner().unwrap();
            assert_eq!(told.len(), plan.cases.len() + 1);
            assert!(told.iter().all(|(_, repetitions)| *repetitions > 0));
        }
    }
}
