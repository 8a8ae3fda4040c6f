//! single_driver: a plan whose commands are spread over the ranks as lists, and the same by one list that one rank
//! runs, with the same copies. Broadcasts down a binary tree, from another root in each and run by it; allgathers by
//! the lists of the ACP library's interface, all of which rank 0 runs.

use crate::case::Case;
use crate::cases::collective::persistent::Plans;
use tasuki::schedule::{ALGORITHMS, Algorithm, CollectiveKind, Shape};
use tasuki::{Cause, Error, Job, Sum};

/// What is prepared in both forms.
pub(crate) const OPERATIONS: [Case; 2] = [Case::Bcast, Case::Allgather];

/// Who has the commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Each rank a list of its own.
    Spread,
    /// One rank all of them.
    SingleDriver,
}

/// What variants of either form end with.
const SPREAD: &str = "_spread";
const DRIVEN: &str = "_driven";

impl Form {
    /// Both, in the order in which they are shown.
    pub(crate) const ALL: [Form; 2] = [Form::Spread, Form::SingleDriver];

    /// The variant of an operation in this form.
    pub(crate) fn variant(self, operation: Case) -> String {
        format!("{operation}{}", if self == Form::Spread { SPREAD } else { DRIVEN })
    }
}

/// The variant beside which one by one list stands, if it is such a one.
pub(crate) fn beside_spread(variant: &str) -> Option<String> {
    Some(format!("{}{SPREAD}", variant.strip_suffix(DRIVEN)?))
}

/// The algorithm of that name.
pub(crate) fn named(operation: CollectiveKind, name: &str) -> tasuki::Result<&'static Algorithm> {
    let found = ALGORITHMS.iter().find(|one| one.operation == operation && one.name == name);
    found.ok_or_else(|| Error::new(Cause::Bug(format!("there is no {operation:?} by {name}"))))
}

/// The plans of a form: one for each root, or the only one. Collective. Of blocks of `bytes` bytes.
pub(crate) fn plans(job: &Job, operation: Case, form: Form, bytes: u64) -> tasuki::Result<Plans> {
    let (what, name, roots) = match operation {
        Case::Bcast => (CollectiveKind::Bcast, "binary", job.size()),
        _ => (CollectiveKind::Allgather, "command lists", 1),
    };
    let algorithm = named(what, name)?;
    let plan = |root: usize| {
        let spread = algorithm.schedule(&Shape::new(what, job.size(), root, bytes), 1);
        let schedule = if form == Form::SingleDriver { spread.driven_by(root) } else { spread };
        job.world().plan_with(&schedule, Sum)
    };
    Ok(Plans::made(operation, (0..roots).map(plan).collect::<tasuki::Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_stand_beside_each_other() {
        for operation in OPERATIONS {
            let [spread, driven] = Form::ALL.map(|form| form.variant(operation));
            assert_eq!((beside_spread(&driven), beside_spread(&spread)), (Some(spread), None));
        }
    }
}
