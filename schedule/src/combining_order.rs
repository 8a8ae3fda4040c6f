//! The combining order: the one order in which the values of a reduction are combined, wherever its result depends on
//! the order. The checker demands it of every schedule whose contract says so, and algorithms build on it.
//!
//! The values of the ranks, in the order of ranks, are cut into groups of [`GROUP`] consecutive values. The values of a
//! group are combined from the left: `((v0 . v1) . v2) . ...`. The results of the groups are combined by the same rule,
//! until one is left. So the values of up to 32 ranks are combined from the left.
//!
//! docs/design/collectives/combining-order.md says why.

use crate::shape::Shape;

/// Number of consecutive values that are combined from the left.
pub const GROUP: usize = 32;

/// The number of combinations that end with the value of member `number` of `members` members, if the combination is
/// written with each operator behind its two operands, as in `v0 v1 . v2 .` of three members: 0, 1 and 1.
pub(crate) fn combinations_after(number: usize, members: usize) -> u32 {
    let (mut ending, mut size) = (0, 1);
    // At each level, a block of `size` values is one operand. The first block of a group is no right operand.
    while size < members {
        let is_last = (number + 1).is_multiple_of(size) || number + 1 == members;
        ending += u32::from(is_last && !(number / size).is_multiple_of(GROUP));
        size = size.saturating_mul(GROUP);
    }
    ending
}

/// A combination of the values at two places; each place is named by the rank whose values lie there at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Combination {
    /// The operand that is only read. No later combination needs this place.
    pub(crate) from: usize,
    /// The other operand, which the result replaces.
    pub(crate) to: usize,
    /// True if the operand that is only read is the left one.
    pub(crate) in_front: bool,
}

/// The combinations of the values of `ranks` ranks in the combining order, so that the result is at the place of rank
/// `at`.
pub(crate) fn combinations(ranks: usize, at: usize) -> Vec<Combination> {
    let mut all = Vec::with_capacity(ranks.saturating_sub(1));
    let mut size = 1;
    while size < ranks {
        // The place of the block with that number: that of its first rank, or of `at`.
        let place = |block: usize| if at / size == block { at } else { block * size };
        let blocks = ranks.div_ceil(size);
        for first in (0..blocks).step_by(GROUP) {
            let mut result = place(first);
            for block in first + 1..blocks.min(first + GROUP) {
                let is_there = place(block) == at;
                let (from, to) = if is_there { (result, at) } else { (place(block), result) };
                all.push(Combination { from, to, in_front: is_there });
                result = to;
            }
        }
        size *= GROUP;
    }
    all
}

/// Returns true if combining all values from the left gives the result that the shape asks for.
pub(crate) fn is_from_the_left(shape: &Shape) -> bool {
    !is_demanded(shape) || shape.ranks <= GROUP
}

/// Returns true if any way to combine neighbours gives the result that the shape asks for.
pub(crate) fn is_any_grouping(shape: &Shape) -> bool {
    !is_demanded(shape) || shape.ranks <= 2
}

/// Returns true if the values must be combined in the combining order.
pub(crate) fn is_demanded(shape: &Shape) -> bool {
    shape.in_order && shape.collective.combines()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The combination by the rule, with brackets.
    fn by_the_rule(values: Vec<String>) -> String {
        let of_group = |group: &[String]| group.iter().cloned().reduce(|all, one| format!("({all} {one})"));
        match values.len() {
            1 => values.into_iter().next().expect("one value"),
            _ => by_the_rule(values.chunks(GROUP).filter_map(of_group).collect()),
        }
    }

    fn names(members: usize) -> Vec<String> {
        (0..members).map(|number| number.to_string()).collect()
    }

    const MEMBERS: [usize; 14] = [1, 2, 3, 9, 31, 32, 33, 34, 64, 65, 1023, 1024, 1025, 1090];

    #[test]
    fn operators_behind_their_operands_give_the_brackets_of_the_rule() {
        for members in MEMBERS {
            let mut stack: Vec<String> = Vec::new();
            for number in 0..members {
                stack.push(number.to_string());
                for _ in 0..combinations_after(number, members) {
                    let (right, left) = (stack.pop().expect("an operand"), stack.pop().expect("another"));
                    stack.push(format!("({left} {right})"));
                }
            }
            assert_eq!(stack, [by_the_rule(names(members))], "{members} members");
        }
    }

    #[test]
    fn combinations_give_the_result_of_the_rule_at_any_place() {
        for ranks in MEMBERS {
            for at in [0, 1, 2, 31, 32, 33, ranks / 2, ranks - 1].into_iter().filter(|&at| at < ranks) {
                let mut places: Vec<Option<String>> = names(ranks).into_iter().map(Some).collect();
                for Combination { from, to, in_front } in combinations(ranks, at) {
                    let read = places[from].take().expect("no place is read twice");
                    let there = places[to].take().expect("it is there");
                    let both = if in_front { (read, there) } else { (there, read) };
                    places[to] = Some(format!("({} {})", both.0, both.1));
                }
                assert_eq!(places[at], Some(by_the_rule(names(ranks))), "{ranks} ranks, at {at}");
                assert_eq!(places.iter().flatten().count(), 1);
            }
        }
    }
}
