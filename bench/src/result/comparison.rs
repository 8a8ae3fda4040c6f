//! Figures beside what they are held against: limits, other libraries, the same case without something.

use crate::case::Case;
use crate::cases::collective::persistent;
use crate::cases::collective::single_driver;
use crate::result::figure::Key;
use crate::result::library::Library;
use crate::result::row::Row;
use crate::result::target::{Bar, With};

/// One figure beside another one, or beside a demand that stands for itself.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Comparison {
    /// What with.
    pub(crate) with: With,
    /// Whose figure that is; of the best, who it is.
    pub(crate) name: String,
    /// The other figure's median.
    pub(crate) median: Option<f64>,
    /// Ours divided by it, if both are steady.
    pub(crate) ratio: Option<f64>,
    /// What is asked of it.
    pub(crate) bar: Option<Bar>,
    /// What came of that.
    pub(crate) verdict: Verdict,
}

/// What came of a bar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// There is none, or not all of those were asked for whom it is about.
    None,
    /// Met.
    Met,
    /// Missed.
    Missed,
    /// Missed because a library could not be measured that might have been better.
    Off,
    /// One of the two figures is not steady.
    Unsteady,
}

/// The other libraries of a run.
#[derive(Default)]
pub(crate) struct Field {
    /// Who was asked for.
    pub(crate) asked: Vec<Library>,
    /// Who has no figure that counts, for which case, with how many ranks, and why.
    pub(crate) off: Vec<Off>,
}

/// A library that has no figure that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Off {
    /// Who.
    pub(crate) library: Library,
    /// In which case; in all, if none is named.
    pub(crate) case: Option<Case>,
    /// With how many ranks.
    pub(crate) ranks: usize,
    /// Why.
    pub(crate) why: String,
}

impl Field {
    fn is_off(&self, library: Library, row: &Row) -> bool {
        let is_of_it =
            |off: &Off| off.case.is_none() || (off.case == Some(row.case) && off.ranks == row.ranks);
        self.off.iter().any(|off| off.library == library && is_of_it(off))
    }
}

/// Compares each row of ours with whatever it is to be compared with.
pub(crate) fn compare(rows: &mut [Row], field: &Field) {
    let all = rows.to_vec();
    for row in rows.iter_mut().filter(|row| row.library == Library::Tasuki) {
        let with = |with| row.bars.iter().any(|bar| bar.with == with);
        let mut plain = Vec::new();
        if !with(With::Limit) {
            plain.push(With::Limit);
        }
        if !with(With::Alone) {
            plain.push(With::Alone);
        }
        if row.case == Case::SingleDriver {
            plain.push(With::Spread);
        }
        if row.has_peers() && ![With::Mpi, With::Ucx, With::Others].into_iter().any(with) {
            plain.push(With::Others);
        }
        let bars = row.bars.iter().map(|bar| (bar.with, Some(*bar)));
        let wanted = bars.chain(plain.into_iter().map(|with| (with, None)));
        row.comparisons = wanted.filter_map(|(with, bar)| compare_one(row, &all, with, bar, field)).collect();
        row.ratio_to_limit = row.ratio(With::Limit);
        row.ratio_to_best = best(row, &all, With::Others, field).and_then(|best| ratio(row, best));
    }
}

fn compare_one(row: &Row, all: &[Row], with: With, bar: Option<Bar>, field: &Field) -> Option<Comparison> {
    let (name, other) = match with {
        With::Itself => (String::new(), None),
        With::Limit => ("limit".into(), Some(limit(row, all)?)),
        With::Message => {
            let message = Key::ours(Case::Message, "", row.bytes);
            let is_it = |other: &&Row| other.is_of(&message);
            (message.case.to_string(), Some(all.iter().find(is_it)?))
        }
        With::Alone => {
            let alone = Key::ours(row.case, &With::alone(&row.variant)?, row.bytes);
            ("alone".into(), Some(all.iter().find(|other| other.is_of(&alone))?))
        }
        With::Spread => {
            let spread = Key::ours(row.case, &single_driver::beside_spread(&row.variant)?, row.bytes);
            let is_it = |other: &&Row| other.is_of(&spread) && other.ranks == row.ranks;
            ("spread".into(), Some(all.iter().find(is_it)?))
        }
        With::Calls => {
            let calls = Key::ours(row.case, &persistent::beside_calls(&row.variant), row.bytes);
            let is_it = |other: &&Row| other.is_of(&calls) && other.ranks == row.ranks;
            ("call".into(), Some(all.iter().find(is_it)?))
        }
        With::Mpi | With::Ucx | With::Others => {
            // Of those that were asked for; if there is none, nobody wants to know.
            with.peers().iter().find(|peer| field.asked.contains(peer))?;
            let best = best(row, all, with, field);
            (best.map_or("none".into(), |best| best.library.to_string()), best)
        }
    };
    let ratio = other.and_then(|other| ratio(row, other));
    let verdict = verdict(row, with, bar, ratio, field);
    Some(Comparison { with, name, median: other.map(|other| other.median), ratio, bar, verdict })
}

fn verdict(row: &Row, with: With, bar: Option<Bar>, ratio: Option<f64>, field: &Field) -> Verdict {
    let Some(bar) = bar else { return Verdict::None };
    let value = if with == With::Itself { row.steady.then_some(row.median) } else { ratio };
    let of_bar = || with.peers().iter().filter(|peer| **peer != Library::Ucx || row.case.is_for_two());
    match value {
        _ if of_bar().any(|&peer| field.asked.contains(&peer) && field.is_off(peer, row)) => Verdict::Off,
        None => Verdict::Unsteady,
        Some(_) if !of_bar().all(|peer| field.asked.contains(peer)) => Verdict::None,
        Some(value) if bar.is_met(value) => Verdict::Met,
        Some(_) => Verdict::Missed,
    }
}

fn ratio(row: &Row, other: &Row) -> Option<f64> {
    (row.steady && other.steady).then_some(row.median / other.median)
}

fn limit<'r>(row: &Row, all: &'r [Row]) -> Option<&'r Row> {
    let wanted = row.key().bounded_by()?;
    all.iter().find(|other| other.key() == wanted)
}

/// The best of those libraries in the same case; a steady one if there is one.
fn best<'r>(row: &Row, all: &'r [Row], with: With, field: &Field) -> Option<&'r Row> {
    let is_like = |other: &&Row| {
        (other.case, &other.variant, other.bytes, other.ranks)
            == (row.case, &row.variant, row.bytes, row.ranks)
    };
    let is_asked =
        |other: &&Row| field.asked.contains(&other.library) && with.peers().contains(&other.library);
    let others = all.iter().filter(is_asked).filter(is_like);
    others.min_by(|a, b| Row::better_first(a, b))
}

/// Keeps the best of several ways in which one library played the same.
pub(crate) fn keep_best(rows: &mut Vec<Row>) {
    let of = |row: &Row| (row.case, row.library, row.variant.clone(), row.bytes, row.ranks);
    let all = rows.clone();
    rows.retain(|row| {
        let mut same = all.iter().filter(|other| of(other) == of(row));
        row.library == Library::Limit
            || same.all(|other| other.setting == row.setting || Row::better_first(row, other).is_le())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::repetition::Summary;

    fn row(library: Library, case: Case, setting: &str, median: f64, steady: bool) -> Row {
        let key = Key { library, ..Key::ours(case, "", 8).by(setting) };
        Row::new(key, 2, Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady })
    }

    fn limit(median: f64) -> Row {
        let summary = Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady: true };
        Row::new(Key::limit("hand_over"), 2, summary)
    }

    const ALL: [Library; 4] = [Library::Mpich, Library::Openmpi, Library::Intel, Library::Ucx];

    fn verdicts(rows: &mut [Row], asked: &[Library], off: Vec<Off>) -> Vec<(String, Verdict)> {
        compare(rows, &Field { asked: asked.to_vec(), off });
        rows[0].comparisons.iter().map(|one| (one.name.clone(), one.verdict)).collect()
    }

    fn of_message() -> Vec<Row> {
        let mut rows = vec![row(Library::Tasuki, Case::Message, "", 50.0, true), limit(40.0)];
        let medians = [770.0, 110.0, 160.0, 60.0];
        rows.extend(ALL.into_iter().zip(medians).map(|(peer, ns)| row(peer, Case::Message, "", ns, true)));
        rows
    }

    #[test]
    fn a_figure_is_held_against_limit_and_best() {
        let mut rows = of_message();
        let told = verdicts(&mut rows, &ALL, vec![]);
        let expected = [("limit", Verdict::Met), ("openmpi", Verdict::Met), ("ucx", Verdict::Missed)];
        assert_eq!(told, expected.map(|(name, verdict)| (name.to_string(), verdict)));
        assert_eq!((rows[0].ratio_to_limit, rows[0].ratio_to_best), (Some(1.25), Some(50.0 / 60.0)));
        assert_eq!((rows[1].ratio_to_limit, rows[2].ratio_to_best), (None, None));
    }

    #[test]
    fn who_was_not_asked_for_decides_nothing_and_who_is_off_makes_it_missed() {
        let told = verdicts(&mut of_message(), &[Library::Openmpi], vec![]);
        assert_eq!(told[1..], [("openmpi".to_string(), Verdict::None)]);
        let off = Off { library: Library::Mpich, case: None, ranks: 2, why: "absent".into() };
        let told = verdicts(&mut of_message(), &ALL, vec![off]);
        assert_eq!((told[1].1, told[2].1), (Verdict::Off, Verdict::Missed));
    }

    #[test]
    fn what_is_unsteady_is_compared_with_nothing() {
        let mut rows = of_message();
        rows[0].steady = false;
        assert!(verdicts(&mut rows, &ALL, vec![]).iter().all(|(_, verdict)| *verdict == Verdict::Unsteady));
        assert_eq!((rows[0].ratio_to_limit, rows[0].ratio_to_best), (None, None));
    }

    #[test]
    fn what_has_something_beside_it_is_held_against_the_same_alone() {
        let of = |variant: &str, median| {
            let summary = Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady: true };
            Row::new(Key::ours(Case::Thirdparty, variant, 8).by("a"), 3, summary)
        };
        for (beside, median, verdict) in [
            ("work_beside", 101.0, Verdict::Met),
            ("work_beside", 103.0, Verdict::Missed),
            ("copy_beside", 91.0, Verdict::Met),
            ("copy_beside", 89.0, Verdict::Missed),
            ("stencil_beside", 300.0, Verdict::None),
        ] {
            let alone = beside.replace("beside", "alone");
            let mut rows = vec![of(beside, median), of("other_alone", 1.0), of(&alone, 100.0)];
            let told = verdicts(&mut rows, &[], vec![]);
            assert_eq!(told, [("alone".to_string(), verdict)]);
            assert_eq!(rows[0].ratio(With::Alone), Some(median / 100.0));
            assert!(rows[2].comparisons.is_empty());
        }
    }

    #[test]
    fn plans_are_held_against_the_same_by_calls_of_as_many_ranks() {
        let of = |variant: &str, ranks, median| {
            let summary = Summary { median, min: 1.0, max: 2.0, repetitions: 7, steady: true };
            Row::new(Key::ours(Case::Persistent, variant, 8), ranks, summary)
        };
        for (variant, median, verdict) in [
            ("bcast", 103.0, Verdict::Met),
            ("bcast", 104.0, Verdict::Missed),
            ("last_bcast", 50.0, Verdict::Met),
            ("last_bcast", 51.0, Verdict::Missed),
        ] {
            let mut rows = vec![of(variant, 4, median), of("bcast_call", 2, 1.0), of("bcast_call", 4, 100.0)];
            assert_eq!(verdicts(&mut rows, &[], vec![]), [("call".to_string(), verdict)]);
            assert!(rows[2].comparisons.is_empty() && !rows[2].is_shown() && rows[0].is_shown());
        }
    }

    #[test]
    fn the_best_way_of_each_library_is_kept() {
        let mut rows = vec![
            row(Library::Tasuki, Case::Message, "a", 3.0, true),
            row(Library::Tasuki, Case::Message, "b", 2.0, true),
            row(Library::Ucx, Case::Message, "a", 3.0, true),
            row(Library::Ucx, Case::Message, "b", 1.0, false),
        ];
        keep_best(&mut rows);
        let kept: Vec<(Library, f64)> = rows.iter().map(|row| (row.library, row.median)).collect();
        assert_eq!(kept, [(Library::Tasuki, 2.0), (Library::Ucx, 3.0)]);
    }
}
