//! Combines values in the [combining order](tasuki_schedule::combining_order): from the left within groups of [`GROUP`]
//! members, then the results of the groups by the same rule.
//!
//! All reductions by messages keep this order, so they give the same bits as compiled steps, and operations that do not
//! commute are correct. A scan at member i combines the values of members 0 to i in this order.

use bytemuck::Pod;
use std::ops::Deref;
use tasuki_core::queue::reduction::{Operator, ReduceOperation};
pub(crate) use tasuki_schedule::combining_order::GROUP;

/// Combines values that are given in the order of members.
#[derive(Debug)]
pub(super) struct OrderedFold<T> {
    /// For each level from that of single members on: the number of values in the present group, and their
    /// combination.
    levels: Vec<(usize, Vec<T>)>,
}

impl<T: Pod> OrderedFold<T> {
    pub(super) fn new() -> OrderedFold<T> {
        OrderedFold { levels: Vec::new() }
    }

    /// Adds the values of the next member.
    pub(super) fn push(&mut self, values: &[T], operation: &ReduceOperation<impl Deref<Target: Operator>>) {
        let mut values = values.to_vec();
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push((0, Vec::new()));
            }
            let (count, combined) = &mut self.levels[level];
            if *count == 0 {
                *combined = values;
            } else {
                operation.combine(combined, &values);
            }
            *count += 1;
            if *count < GROUP {
                return;
            }
            *count = 0;
            values = std::mem::take(combined);
        }
    }

    /// Returns the combination of all values; None if there are none.
    pub(super) fn finish(self, operation: &ReduceOperation<impl Deref<Target: Operator>>) -> Option<Vec<T>> {
        let groups = self.levels.into_iter().filter(|(count, _)| *count > 0).map(|(_, combined)| combined);
        groups.reduce(|right, mut left| {
            operation.combine(&mut left, &right);
            left
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::{cast_slice, cast_slice_mut};
    use std::cell::RefCell;

    /// Values are numbers of texts. A combination makes a new text, whose number is `first` and the number of
    /// combinations before.
    struct Joins {
        first: usize,
        joined: RefCell<Vec<(usize, usize)>>,
    }

    impl Operator for Joins {
        fn value_bytes(&self) -> usize {
            size_of::<usize>()
        }

        fn combine(&self, left: &mut [u8], right: &[u8]) {
            let (left, right): (&mut [usize], &[usize]) = (cast_slice_mut(left), cast_slice(right));
            let mut joined = self.joined.borrow_mut();
            joined.push((left[0], right[0]));
            left[0] = self.first + joined.len() - 1;
        }
    }

    /// Returns the combination of members `from` to `to` as text, by the definition.
    fn defined(from: usize, to: usize) -> String {
        let mut group = 1;
        while group * GROUP < to - from {
            group *= GROUP;
        }
        let part = |at: usize| if group == 1 { at.to_string() } else { defined(at, to.min(at + group)) };
        (from..to)
            .step_by(group)
            .map(part)
            .reduce(|left, right| format!("({left}+{right})"))
            .expect("a member")
    }

    #[test]
    fn values_are_combined_in_groups() {
        for count in [1, 2, 3, 31, 32, 33, 64, 65, 1023, 1024, 1025, 1100, 2049] {
            let mut texts: Vec<String> = (0..count).map(|member: usize| member.to_string()).collect();
            let mut fold = OrderedFold::new();
            let joins = Joins { first: count, joined: RefCell::default() };
            let operation = ReduceOperation::UserDefined(&joins);
            (0..count).for_each(|member| fold.push(&[member], &operation));
            let last = fold.finish(&operation).expect("there are values")[0];
            for (left, right) in joins.joined.into_inner() {
                texts.push(format!("({}+{})", texts[left], texts[right]));
            }
            assert_eq!(texts[last], defined(0, count), "{count}");
        }
    }
}
