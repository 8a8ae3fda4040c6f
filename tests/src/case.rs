//! What a case is: a body, the ranks it needs, and the ways in which it can run.

use std::ops::RangeInclusive;
use tasuki::{Handlers, Job, Result};

/// What every rank of a case's job runs. It asserts: a rank that panics ends the job with an error that names it.
pub type Body = fn(&Job) -> Result<()>;

/// One property, as a program.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the body, and of the tests that run it.
    pub name: &'static str,
    /// What it is about: a letter for the area, a number for the behaviour, e.g. `A4`.
    pub id: &'static str,
    /// How few ranks it needs, and how many make sense.
    pub ranks: RangeInclusive<usize>,
    /// In which ways it can run.
    pub ways: Ways,
    /// The body.
    pub body: Body,
}

/// In which ways of starting a job a case makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ways {
    /// Threads, processes, simulated ranks.
    Everywhere,
    /// Threads and processes: it needs real time, real threads, or memory of real size.
    Real,
    /// A process for each rank: what it does to its process would hit the other ranks.
    Processes,
}

/// How many ranks the cases run on, as far as they can.
pub const COUNTS: [usize; 6] = [1, 2, 3, 4, 5, 8];

impl Case {
    /// The numbers of ranks to run it on.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        COUNTS.into_iter().filter(|count| self.ranks.contains(count))
    }

    /// The handlers that its job has.
    pub fn handlers(&self) -> Handlers {
        if self.is_of("D19") { crate::cases::handlers::handlers() } else { Handlers::new() }
    }

    /// Whether it belongs to a family: an area such as `A`, or one behaviour such as `D1`.
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
