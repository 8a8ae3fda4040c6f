//! A case: a function, the numbers of ranks it runs on, and the ways in which it can be started.

use std::ops::RangeInclusive;
use tasuki::{Handlers, Job, Result};

/// The function that every rank of a case's job runs. It asserts: if a rank panics, the job ends
/// with an error that names that rank.
pub type Body = fn(&Job) -> Result<()>;

/// One promise of the library, checked by one function.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the function, and of the tests that run it.
    pub name: &'static str,
    /// Families of the case, separated by spaces: an area's letter with the number of a promise,
    /// such as `A4`, or a word.
    pub id: &'static str,
    /// The fewest ranks the case needs, and the most it is run on.
    pub ranks: RangeInclusive<usize>,
    /// The ways in which the case can be started.
    pub ways: Ways,
    /// The function.
    pub body: Body,
}

/// The ways of starting a job in which a case makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// Threads, processes, simulated ranks.
    Everywhere,
    /// Threads and processes, because the case needs real time, real threads or memory of real
    /// size.
    Real,
    /// Only one process for each rank, because the case changes state of its whole process, which
    /// would affect ranks in other threads of that process.
    Processes,
}

/// The numbers of ranks on which cases run, if the case allows them.
pub const COUNTS: [usize; 6] = [1, 2, 3, 4, 5, 8];

impl Case {
    /// Those of [`COUNTS`] that the case allows.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        COUNTS.into_iter().filter(|count| self.ranks.contains(count))
    }

    /// Two ranks and `many`, or the nearest numbers that the case allows: for ways of starting that take long.
    pub fn few_and_many(&self, many: usize) -> Vec<usize> {
        let (least, most) = (*self.ranks.start(), *self.ranks.end());
        let mut counts: Vec<usize> = [2, many].map(|count| count.clamp(least, most)).to_vec();
        counts.dedup();
        counts
    }

    /// The handlers with which the case's job is started.
    pub fn handlers(&self) -> Handlers {
        if self.is_of("D19") { crate::cases::handlers::handlers() } else { Handlers::new() }
    }

    /// Returns true if the case belongs to `family`: an area such as `A`, or one promise such as
    /// `D1`.
    pub fn is_of(&self, family: &str) -> bool {
        let is_area = family.len() == 1;
        self.id.split(' ').any(|id| id == family || (is_area && id.starts_with(family)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_an_area_or_one_behaviour() {
        let is_of = |id, family| {
            let case = Case { name: "", id, ranks: 1..=1, ways: Ways::Real, body: |_| Ok(()) };
            case.is_of(family)
        };
        assert!(is_of("A6 A7", "A") && is_of("A6 A7", "A7") && is_of("G11b", "G") && is_of("G", "G"));
        assert!(is_of("D1", "D1") && !is_of("D10", "D1") && !is_of("D20", "D1"));
        assert!(!is_of("own memory", "A") && !is_of("bad input", "B") && !is_of("P20", "A"));
    }
}
