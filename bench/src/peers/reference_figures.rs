//! What each peer reached on the reference machine. One that falls far behind that was not measured as it should be.

use crate::case::Case;
use crate::result::comparison::Off;
use crate::result::library::Library;
use crate::result::row::Row;
use Library::{Intel, Mpich, Openmpi, Ucx};

/// The hand-over there, in ns.
const HAND_OVER_NS: f64 = 36.6;
/// More than this many times worse, after scaling by the hand-over, does not count.
const WORSE_MAX: f64 = 1.5;

/// A figure that the best of some libraries reached.
struct Expected {
    of: &'static [Library],
    case: Case,
    variant: &'static str,
    bytes: u64,
    ranks: usize,
    figure: f64,
}

const fn word(of: &'static [Library], case: Case, ranks: usize, figure: f64) -> Expected {
    Expected { of, case, variant: "", bytes: 8, ranks, figure }
}

const fn own(of: &'static [Library], bytes: u64, figure: f64) -> Expected {
    Expected { of, case: Case::BandwidthOwn, variant: "hot_reused", bytes, ranks: 2, figure }
}

const MPI: &[Library] = &[Mpich, Openmpi, Intel];

/// From the issue, in ns, messages or bytes a second.
const ALL: &[Expected] = &[
    word(&[Openmpi], Case::Message, 2, 110.0),
    word(&[Intel], Case::Message, 2, 160.0),
    word(&[Mpich], Case::Message, 2, 770.0),
    word(&[Ucx], Case::Message, 2, 101.0),
    word(&[Ucx], Case::Rate, 2, 30e6),
    own(&[Intel], 64 << 10, 33e9),
    own(&[Intel], 4 << 20, 40e9),
    word(MPI, Case::Barrier, 2, 140.0),
    word(MPI, Case::Barrier, 4, 3_200.0),
    word(MPI, Case::Barrier, 8, 11_600.0),
];

/// Libraries whose figures are too bad to count, where the hand-over is so many ns.
pub(crate) fn too_bad(rows: &[Row], hand_over_ns: f64) -> Vec<Off> {
    let scale = hand_over_ns / HAND_OVER_NS;
    ALL.iter().flat_map(|expected| expected.missed(rows, scale)).collect()
}

impl Expected {
    fn is_of(&self, row: &Row) -> bool {
        let is_here = (row.case, row.bytes, row.ranks) == (self.case, self.bytes, self.ranks);
        is_here && row.variant == self.variant && self.of.contains(&row.library)
    }

    /// All of them if the best of those that were measured is too bad.
    fn missed(&self, rows: &[Row], scale: f64) -> Vec<Off> {
        let best = rows.iter().filter(|row| self.is_of(row)).min_by(|a, b| Row::better_first(a, b));
        let Some(best) = best else { return Vec::new() };
        let (scaled, worse) = if best.metric.is_rate() {
            let scaled = self.figure / scale;
            (scaled, scaled / best.median)
        } else {
            let scaled = self.figure * scale;
            (scaled, best.median / scaled)
        };
        if worse <= WORSE_MAX {
            return Vec::new();
        }
        let (bytes, ranks, unit) = (self.bytes, self.ranks, best.unit);
        let why = format!(
            "{:.3e} {unit} at {bytes} B, {ranks} ranks, is {worse:.1} times worse than what it reached on the \
             reference machine ({scaled:.3e}, scaled by the hand-over)",
            best.median
        );
        let off = |&library| Off { library, case: Some(self.case), ranks, why: why.clone() };
        self.of.iter().filter(|library| rows.iter().any(|row| row.library == **library)).map(off).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::repetition::Summary;
    use crate::result::figure::Key;

    fn row(library: Library, case: Case, median: f64) -> Row {
        let key = Key { library, ..Key::ours(case, "", 8) };
        Row::new(key, 2, Summary { median, min: median, max: median, repetitions: 5, steady: true })
    }

    #[test]
    fn far_worse_than_expected_does_not_count() {
        let off = |library, case, median, hand_over| {
            let off = too_bad(&[row(library, case, median)], hand_over);
            off.into_iter().map(|off| off.library).collect::<Vec<_>>()
        };
        assert_eq!(off(Openmpi, Case::Message, 160.0, 36.6), []);
        assert_eq!(off(Openmpi, Case::Message, 170.0, 36.6), [Openmpi]);
        assert_eq!(off(Openmpi, Case::Message, 300.0, 73.2), []);
        assert_eq!(off(Ucx, Case::Rate, 19e6, 36.6), [Ucx]);
        assert_eq!(off(Ucx, Case::Rate, 21e6, 36.6), []);
        // The best of all MPI libraries: one alone may be worse.
        let rows = [row(Mpich, Case::Barrier, 900.0), row(Intel, Case::Barrier, 140.0)];
        assert_eq!(too_bad(&rows, 36.6), []);
        assert_eq!(off(Intel, Case::Barrier, 900.0, 36.6), [Intel]);
    }
}
