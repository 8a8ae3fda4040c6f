//! Figures beside what they are compared with: limits, other libraries, or another variant. All these are rows of one
//! group, measured in turn.

use super::key::Key;

use super::library::Library;
use super::row::Row;
use super::target::{Bar, Verdict, With, beside};
use crate::case::{Case, named};

/// The comparison of a figure with another figure, or with a demand on the figure itself.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Comparison {
    pub(crate) with: With,
    /// The name of what the figure is compared with. If that is the best of several libraries, it is the name of the
    /// best one.
    pub(crate) name: &'static str,
    /// The other figure's median.
    pub(crate) median: Option<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) bar: Option<Bar>,
    pub(crate) verdict: Verdict,
}

/// A library that has no figure that counts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Off {
    pub(crate) library: Library,
    /// The case and the number of ranks; `None` means all cases.
    pub(crate) case: Option<(&'static Case, usize)>,
    pub(crate) why: String,
}

/// The other libraries of a run.
#[derive(Default)]
pub(crate) struct Field {
    /// The libraries that the user asked for.
    pub(crate) asked: Vec<Library>,
    pub(crate) off: Vec<Off>,
}

impl Field {
    fn is_off(&self, library: Library, row: &Row) -> bool {
        let is_of_row = |off: &Off| off.case.is_none_or(|case| case == (row.case, row.ranks));
        self.off.iter().any(|off| off.library == library && is_of_row(off))
    }
}

/// Compares each row of Tasuki with what its bars name and, even without a bar, with its limit, with the variant beside
/// it and with the best other library, where these exist.
pub(crate) fn compare(rows: &mut [Row], field: &Field) {
    let all = rows.to_vec();
    for row in rows.iter_mut().filter(|row| row.library == Library::Tasuki) {
        let has = |with: With| row.bars.iter().any(|bar| bar.with == with);
        let has_peers = [With::Mpi, With::Ucx, With::Others].into_iter().any(has);
        let is_played = row.case.peer_case(&row.variant).is_some();
        let plain = [
            (!has(With::Limit)).then_some(With::Limit),
            (!has(With::Beside)).then_some(With::Beside),
            (is_played && !has_peers).then_some(With::Others),
        ];
        let bars = row.bars.iter().map(|bar| (bar.with, Some(*bar)));
        let wanted = bars.chain(plain.into_iter().flatten().map(|with| (with, None)));
        row.comparisons = wanted.filter_map(|(with, bar)| compare_one(row, &all, with, bar, field)).collect();
        row.ratio_to_limit = row.comparison(With::Limit).and_then(|limit| limit.ratio);
        row.ratio_to_best = best(row, &all, With::Others, field).and_then(|best| row.ratio(best));
    }
}

fn compare_one(row: &Row, all: &[Row], with: With, bar: Option<Bar>, field: &Field) -> Option<Comparison> {
    let find = |key: &Key| all.iter().find(|other| other.library == key.library && other.key().is_alike(key));
    let (name, other) = match with {
        With::Itself => ("", None),
        With::Limit => {
            let limit = row.key().limited_by()?;
            ("limit", Some(all.iter().find(|other| other.key() == limit)?))
        }
        With::Message => ("message", Some(find(&Key::ours(named("message"), "", row.bytes))?)),
        With::Beside => {
            let (variant, name) = beside(&row.variant).filter(|(variant, _)| *variant != row.variant)?;
            (name, Some(find(&Key::ours(row.case, &variant, row.bytes))?))
        }
        With::Mpi | With::Ucx | With::Others => {
            // Only libraries that the user asked for are compared; without any there is no comparison.
            with.peers().iter().find(|peer| field.asked.contains(peer))?;
            let best = best(row, all, with, field);
            (best.map_or("none", |best| best.library.name()), best)
        }
    };
    let ratio = other.and_then(|other| row.ratio(other));
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

/// Returns the best of those libraries in the same case; a steady one if there is one.
fn best<'r>(row: &Row, all: &'r [Row], with: With, field: &Field) -> Option<&'r Row> {
    let is_asked =
        |other: &&Row| field.asked.contains(&other.library) && with.peers().contains(&other.library);
    let others = all.iter().filter(is_asked).filter(|other| other.key().is_alike(&row.key()));
    others.min_by(|a, b| Row::better_first(a, b))
}

/// If a library has measured a figure in several ways, keeps only the best.
pub(crate) fn keep_best(rows: &mut Vec<Row>) {
    let all = rows.clone();
    rows.retain(|row| {
        let is_same = |other: &&Row| other.library == row.library && other.key().is_alike(&row.key());
        let mut same = all.iter().filter(is_same);
        row.library == Library::Limit
            || same.all(|other| other.setting == row.setting || Row::better_first(row, other).is_le())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Limit;
    use crate::cases::State;
    use crate::harness::repetition::Summary;

    fn row(library: Library, case: &str, variant: &str, median: f64) -> Row {
        let key = Key { library, ..Key::ours(named(case), variant, 8) };
        Row::new(key, 2, Summary { median, min: 1.0, max: 2.0, repetitions: 5, steady: true })
    }

    fn of_message() -> Vec<Row> {
        let mut rows = vec![row(Library::Tasuki, "message", "", 50.0)];
        let key = Key::limit(Limit::HandOver, State::default(), 8);
        rows.push(Row {
            variant: key.variant,
            setting: key.setting,
            ..row(Library::Limit, "limit", "", 40.0)
        });
        let medians = [770.0, 110.0, 160.0, 60.0];
        rows.extend(Library::PEERS.into_iter().zip(medians).map(|(peer, ns)| row(peer, "message", "", ns)));
        rows
    }

    fn verdicts(mut rows: Vec<Row>, asked: &[Library], off: Vec<Off>) -> Vec<(&'static str, Verdict)> {
        compare(&mut rows, &Field { asked: asked.to_vec(), off });
        rows[0].comparisons.iter().map(|one| (one.name, one.verdict)).collect()
    }

    #[test]
    fn a_figure_is_held_against_limit_and_best() {
        let found = verdicts(of_message(), &Library::PEERS, vec![]);
        assert_eq!(found, [("limit", Verdict::Met), ("openmpi", Verdict::Met), ("ucx", Verdict::Missed)]);
        let found = verdicts(of_message(), &[Library::Openmpi], vec![]);
        assert_eq!(found[1..], [("openmpi", Verdict::None)]);
        let off = Off { library: Library::Mpich, case: None, why: "absent".into() };
        let found = verdicts(of_message(), &Library::PEERS, vec![off]);
        assert_eq!((found[1].1, found[2].1), (Verdict::Off, Verdict::Missed));
        let mut rows = of_message();
        rows[0].steady = false;
        assert!(
            verdicts(rows, &Library::PEERS, vec![]).iter().all(|(_, verdict)| *verdict == Verdict::Unsteady)
        );
    }

    #[test]
    fn variants_are_held_against_each_other() {
        for (case, variant, other, median, verdict) in [
            ("thirdparty", "work_beside", "work_alone", 103.0, Verdict::Missed),
            ("thirdparty", "copy_beside", "copy_alone", 91.0, Verdict::Met),
            ("thirdparty", "stencil_beside", "stencil_alone", 300.0, Verdict::None),
            ("persistent", "bcast", "bcast_call", 103.0, Verdict::Met),
            ("nonblocking", "ibcast", "ibcast_call", 151.0, Verdict::Missed),
        ] {
            let ours = |variant, median| row(Library::Tasuki, case, variant, median);
            let found = verdicts(vec![ours(variant, median), ours(other, 100.0)], &[], vec![]);
            assert_eq!(found[0].1, verdict, "{variant}");
        }
    }

    #[test]
    fn the_best_way_of_each_library_is_kept() {
        let of = |setting: &str, median, steady| Row {
            setting: setting.into(),
            steady,
            ..row(Library::Ucx, "message", "", median)
        };
        let mut rows = vec![of("a", 3.0, true), of("b", 2.0, true), of("c", 1.0, false)];
        keep_best(&mut rows);
        assert_eq!(rows.iter().map(|row| row.median).collect::<Vec<_>>(), [2.0]);
    }
}
