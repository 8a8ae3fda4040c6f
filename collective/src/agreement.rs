//! Makes all members of a communicator choose algorithms by the same data.
//!
//! Members may start with different data: each node has its own tuning file, and a rank may have been started without
//! one. Before the first plan of a communicator, an allgather gives each member the data of all members. Each member
//! derives the same [`Selection`] from them:
//!
//! - Costs: the members' own if they are equal, else the built-in costs.
//! - Helper: if any member has one, all members compile their plans for a helper.
//! - Ranks per processor: the smallest number that a member has found. If each member is bound to a processor, the
//!   number is at most that of the members that share one processor.
//! - Forced algorithms: if members force different ones, all members get an error, and no plan is made.
//!
//! Communicators that are split from this one afterwards inherit the result. Cost: one exchange of 40 bytes per
//! member.

use bytemuck::{Pod, Zeroable};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use tasuki_core::base::Result;
use tasuki_schedule::{CollectiveKind, CostParameters, Selection};

/// The data from which this member alone would choose algorithms, and the data from which all members choose. The
/// latter are unset before the exchange.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agreed {
    pub(crate) own: Arc<Selection>,
    pub(crate) all: OnceLock<Selection>,
}

impl Agreed {
    /// Returns true if this member is configured to use the algorithm of that name.
    pub(crate) fn is_forced(&self, collective: CollectiveKind, name: &str) -> bool {
        self.own.forced.of(collective).is_some_and(|algorithm| algorithm.name == name)
    }

    pub(crate) fn new(own: Selection) -> Agreed {
        Agreed { own: Arc::new(own), all: OnceLock::new() }
    }
}

/// What each member sends to all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct MemberSelection {
    /// Hash of its cost parameters.
    costs: u64,
    /// Hash of the algorithms that its `TASUKI_COLLECTIVES` forces.
    forced: u64,
    per_processor: u64,
    /// The processor that it is bound to, counted from 1; 0 if it is not bound to one processor.
    bound: u64,
    /// 1 if only the member itself runs its plans.
    has_no_helper: u64,
}

impl MemberSelection {
    pub(crate) fn of(selection: &Selection, allowed: &[usize]) -> MemberSelection {
        let Selection { costs, ref forced, per_processor, has_no_helper } = *selection;
        let bound = if let [only] = allowed { *only as u64 + 1 } else { 0 };
        let (costs, forced, per_processor) = (number(&costs), number(forced), per_processor as u64);
        MemberSelection { costs, forced, per_processor, bound, has_no_helper: has_no_helper.into() }
    }
}

fn number(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Returns the data from which all members choose, given the words of all members. Error: a member whose forced
/// algorithms differ from those of the member before it; the first such member.
pub(crate) fn selection_of_all(own: &Selection, words: &[MemberSelection]) -> Result<Selection, usize> {
    let alike =
        |what: fn(&MemberSelection) -> u64| words.windows(2).position(|two| what(&two[0]) != what(&two[1]));
    if let Some(before) = alike(|word| word.forced) {
        return Err(before + 1);
    }
    let costs = if alike(|word| word.costs).is_some() { CostParameters::default() } else { own.costs };
    let least = words.iter().map(|word| word.per_processor).min().unwrap_or(1);
    let per_processor = if least > 1 { least.min(most_bound(words)) as usize } else { 1 };
    let has_no_helper = words.iter().all(|word| word.has_no_helper != 0);
    Ok(Selection { costs, per_processor, has_no_helper, forced: own.forced.clone() })
}

/// Returns the largest number of members that are bound to one processor, but at least two: other ranks of the job use
/// the processors too. Returns `u64::MAX`, which is no limit, if any member is not bound.
fn most_bound(words: &[MemberSelection]) -> u64 {
    let mut bound: Vec<u64> = words.iter().map(|word| word.bound).collect();
    bound.sort_unstable();
    let most = bound.chunk_by(|one, next| one == next).map(<[u64]>::len).max().unwrap_or(0);
    if bound.first() == Some(&0) { u64::MAX } else { most.max(2) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_derive_the_same_selection() {
        let plain = Selection::default();
        let costs = CostParameters { turn_ns: 1, ..CostParameters::default() };
        let quick = Selection { costs, per_processor: 7, ..Selection::default() };
        let of_all = |members: &[&Selection]| -> Vec<_> {
            let words: Vec<MemberSelection> =
                members.iter().map(|member| MemberSelection::of(member, &[0, 1])).collect();
            members.iter().map(|member| selection_of_all(member, &words)).collect()
        };
        assert_eq!(of_all(&[&quick, &quick]), vec![Ok(quick.clone()); 2]);
        assert_eq!(
            of_all(&[&plain, &quick]),
            vec![Ok(plain.clone()); 2],
            "the built-in costs, and the smaller number of ranks per processor"
        );
        let crowded = Selection { per_processor: 2, ..plain.clone() };
        let more = Selection { per_processor: 4, ..plain.clone() };
        assert_eq!(of_all(&[&crowded, &more]), vec![Ok(crowded); 2]);
        let forced = Selection { forced: "bcast=chain".parse().unwrap(), ..plain.clone() };
        assert_eq!(of_all(&[&forced, &forced]), vec![Ok(forced.clone()); 2]);
        assert_eq!(of_all(&[&plain, &plain, &forced]), vec![Err(2); 3]);
    }

    #[test]
    fn ranks_per_processor_are_limited_by_the_bound_members() {
        // The data of a rank that may use only one processor.
        let own = Selection { per_processor: 5, ..Selection::default() };
        let of = |bound: &[&[usize]]| {
            let words: Vec<MemberSelection> =
                bound.iter().map(|allowed| MemberSelection::of(&own, allowed)).collect();
            selection_of_all(&own, &words).unwrap().per_processor
        };
        assert_eq!(of(&[&[0], &[1], &[0], &[1], &[0]]), 3);
        assert_eq!(of(&[&[0], &[1]]), 2, "at least two, because other ranks use the processors too");
        assert_eq!(of(&[&[0], &[0, 1], &[0]]), 5);
        let alone = Selection::default();
        let words = [MemberSelection::of(&alone, &[0]), MemberSelection::of(&alone, &[0])];
        assert_eq!(selection_of_all(&alone, &words).unwrap().per_processor, 1);
    }
}
