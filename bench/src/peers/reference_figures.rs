//! What each peer reached on the reference machine. If a peer is much slower than that, it was not measured correctly.

use crate::case::named;
use crate::result::comparison::Off;
use crate::result::library::Library;
use crate::result::row::Row;
use Library::{Intel, Mpich, Openmpi, Ucx};

/// The hand-over on the reference machine, in ns.
const HAND_OVER_NS: f64 = 36.6;
/// A figure that is worse by more than this factor, after scaling by the hand-over, does not count.
const WORSE_MAX: f64 = 1.5;

/// A figure that the best of some libraries reached.
struct Expected {
    of: &'static [Library],
    case: &'static str,
    variant: &'static str,
    bytes: u64,
    ranks: usize,
    figure: f64,
}

const fn word(of: &'static [Library], case: &'static str, ranks: usize, figure: f64) -> Expected {
    Expected { of, case, variant: "", bytes: 8, ranks, figure }
}

const fn own(of: &'static [Library], bytes: u64, figure: f64) -> Expected {
    Expected { of, case: "bandwidth_own", variant: "hot_reused", bytes, ranks: 2, figure }
}

const MPI: &[Library] = &[Mpich, Openmpi, Intel];

/// The figures are from the issue, in ns or in messages or bytes per second.
const ALL: &[Expected] = &[
    word(&[Openmpi], "message", 2, 110.0),
    word(&[Intel], "message", 2, 160.0),
    word(&[Mpich], "message", 2, 770.0),
    word(&[Ucx], "message", 2, 101.0),
    word(&[Ucx], "rate", 2, 30e6),
    own(&[Intel], 64 << 10, 33e9),
    own(&[Intel], 4 << 20, 40e9),
    word(MPI, "barrier", 2, 140.0),
    word(MPI, "barrier", 4, 3_200.0),
    word(MPI, "barrier", 8, 11_600.0),
];

/// Returns the libraries that are much slower than expected in these rows of one group.
pub(crate) fn too_bad(rows: &[Row]) -> Vec<Off> {
    let Some(clock) = rows.iter().find(|row| row.variant == "hand_over") else { return Vec::new() };
    let scale = clock.median / HAND_OVER_NS;
    ALL.iter().flat_map(|expected| expected.missed(rows, scale)).collect()
}

impl Expected {
    fn is_of(&self, row: &Row) -> bool {
        let is_here = (row.case.name, row.bytes, row.ranks) == (self.case, self.bytes, self.ranks);
        is_here && row.variant == self.variant && self.of.contains(&row.library)
    }

    /// Returns all these libraries if the best of those that were measured is too slow.
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
        let off = |&library| Off { library, case: Some((named(self.case), ranks)), why: why.clone() };
        self.of.iter().filter(|library| rows.iter().any(|row| row.library == **library)).map(off).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Limit;
    use crate::cases::State;
    use crate::harness::repetition::Summary;
    use crate::result::key::Key;

    fn off(figures: &[(Library, f64)], case: &str, hand_over: f64) -> Vec<Library> {
        let row = |key, median| {
            Row::new(key, 2, Summary { median, min: median, max: median, repetitions: 5, steady: true })
        };
        let of = |&(library, median)| row(Key { library, ..Key::ours(named(case), "", 8) }, median);
        let mut rows: Vec<Row> = figures.iter().map(of).collect();
        rows.push(row(Key::limit(Limit::HandOver, State::default(), 8), hand_over));
        too_bad(&rows).into_iter().map(|off| off.library).collect()
    }

    #[test]
    fn far_worse_than_expected_does_not_count() {
        assert_eq!(off(&[(Openmpi, 160.0)], "message", 36.6), []);
        assert_eq!(off(&[(Openmpi, 170.0)], "message", 36.6), [Openmpi]);
        assert_eq!(off(&[(Openmpi, 300.0)], "message", 73.2), []);
        assert_eq!(
            (off(&[(Ucx, 19e6)], "rate", 36.6), off(&[(Ucx, 21e6)], "rate", 36.6)),
            (vec![Ucx], vec![])
        );
        // The expected figure is that of the best MPI library; a single library may be worse.
        assert_eq!(off(&[(Mpich, 900.0), (Intel, 140.0)], "barrier", 36.6), []);
    }
}
