//! Which collective call it is, without its arguments: the code that all words about calls have in common, and its
//! name.

use tasuki_schedule::collective_names::COLLECTIVES;
use tasuki_schedule::shape::CollectiveKind;

/// A collective call, without its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallName {
    Collective(CollectiveKind),
    /// One whose blocks differ in length, and any exchange with neighbours.
    Uneven(CollectiveKind),
    /// A call of which words hold nothing but the name: its place among [`NAMED_CALLS`], from 1 on; 0 if it has none.
    Named(u64),
}

/// The codes of calls with equal blocks are up to this one.
const EVEN_MAX: u64 = COLLECTIVES.len() as u64;
/// The code of calls of which words hold nothing but the name.
pub(crate) const NAMED: u64 = 30;
const _: () = assert!(2 * EVEN_MAX < NAMED);

/// The names of calls that are not operations, and of calls that a member has not begun because an argument was wrong.
#[rustfmt::skip]
const NAMED_CALLS: [&str; 51] = [
    "barrier", "ibarrier", "barrier_init", "bcast", "ibcast", "bcast_init", "reduce", "ireduce", "reduce_init",
    "allreduce", "iallreduce", "allreduce_init", "gather", "igather", "gather_init", "scatter", "iscatter",
    "scatter_init", "allgather", "iallgather", "allgather_init", "alltoall", "ialltoall", "alltoall_init",
    "reduce_scatter", "ireduce_scatter", "reduce_scatter_init", "scan", "iscan", "scan_init", "exscan", "iexscan",
    "exscan_init", "neighbours", "ineighbours", "neighbours_init", "neighbor_alltoall", "ineighbor_alltoall",
    "neighbor_alltoall_init", "plan", "split", "dup", "recreate", "quiesce", "Cartesian::new", "Neighbourhood::new",
    "fuzzy_barrier", "alloc_on", "job.barrier", "job.alloc", "plan.start",
];

impl CallName {
    /// A start of a plan.
    pub(crate) const START: CallName = CallName::Named(NAMED_CALLS.len() as u64);

    pub(crate) fn named(name: &str) -> CallName {
        CallName::Named(NAMED_CALLS.iter().position(|known| *known == name).map_or(0, |at| at as u64 + 1))
    }

    /// Returns its code: five bits, not all 0.
    #[inline]
    pub(crate) const fn code(self) -> u64 {
        match self {
            CallName::Collective(kind) => kind as u64 + 1,
            CallName::Uneven(kind) => EVEN_MAX + kind as u64 + 1,
            CallName::Named(_) => NAMED,
        }
    }

    /// Returns the call of a code; of named calls the one of that number. None: no call has the code.
    pub(crate) fn of_code(code: u64, number: u64) -> Option<CallName> {
        let all =
            COLLECTIVES.iter().flat_map(|&(_, kind)| [CallName::Collective(kind), CallName::Uneven(kind)]);
        all.chain([CallName::Named(number)]).find(|call| call.code() == code)
    }

    /// Returns its name, the same for all forms of a call. None: it has none.
    pub(crate) fn text(self) -> Option<&'static str> {
        match self {
            CallName::Uneven(CollectiveKind::Neighbours) => Some("neighbor_alltoall"),
            CallName::Collective(kind) | CallName::Uneven(kind) => Some(kind.name()),
            CallName::Named(number) => NAMED_CALLS.get((number as usize).checked_sub(1)?).copied(),
        }
    }

    pub(crate) fn is_rooted(self) -> bool {
        matches!(self, CallName::Collective(kind) | CallName::Uneven(kind) if kind.is_rooted())
    }

    /// Returns true for a call of the job.
    pub(crate) fn is_of_job(self) -> bool {
        matches!(self, CallName::Named(_)) && self.text().is_some_and(|name| name.starts_with("job."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_calls_have_names() {
        let forms = |name: &str| [name.to_string(), format!("i{name}"), format!("{name}_init")];
        let uneven = forms("neighbor_alltoall");
        let all = COLLECTIVES.iter().flat_map(|(name, _)| forms(name)).chain(uneven);
        for name in all.chain(["split", "dup", "plan"].map(String::from)) {
            assert_eq!(CallName::named(&name).text(), Some(&*name));
        }
        assert_eq!((CallName::START.text(), CallName::named("").text()), (Some("plan.start"), None));
    }
}
