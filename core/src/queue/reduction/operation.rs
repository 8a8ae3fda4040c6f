//! The operation of a reduction, in the one form that everything uses between the program's call and the loop that
//! combines values. Only the pointer to an operation of the program differs: a blocking call borrows it, a nonblocking
//! call and a plan own it.

use super::{Operator, Reduction};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use std::ops::Deref;
use std::sync::Arc;

/// How values are combined. `P` points to the operation if it is the program's own.
#[derive(Clone, Copy)]
pub enum ReduceOperation<P> {
    /// No values are combined.
    Nothing,
    /// By a built-in operation. Every rank can apply it, and to values of others in place.
    Builtin(Reduction),
    /// By an operation of the program. Values of others are copied first, because it gets them as slices, which no
    /// other rank may change.
    UserDefined(P),
}

/// The operation of a blocking call, which one thread applies while the call lasts.
pub type BorrowedOperation<'o> = ReduceOperation<&'o dyn Operator>;
/// The operation of a nonblocking call, which any thread of the rank applies, one at a time.
pub type BoxedOperation = ReduceOperation<Box<dyn Operator + Send>>;
/// The operation of a plan, which several threads of the rank may apply at once.
pub type SharedOperation = ReduceOperation<Arc<dyn Operator + Send + Sync>>;

impl<P> ReduceOperation<P> {
    /// Returns the built-in operation if there is one, otherwise the program's own, to which `user_defined` makes a
    /// pointer.
    #[inline]
    pub fn new(builtin: Option<Reduction>, user_defined: impl FnOnce() -> P) -> ReduceOperation<P> {
        builtin.map_or_else(|| ReduceOperation::UserDefined(user_defined()), ReduceOperation::Builtin)
    }

    /// Returns the operation if it is built in.
    #[inline]
    pub fn builtin(&self) -> Option<Reduction> {
        if let ReduceOperation::Builtin(reduction) = self { Some(*reduction) } else { None }
    }

    /// Borrows the operation. `of` borrows it if it is the program's own.
    #[inline]
    pub fn borrow<'o>(&'o self, of: impl FnOnce(&'o P) -> &'o dyn Operator) -> BorrowedOperation<'o> {
        match self {
            ReduceOperation::Nothing => ReduceOperation::Nothing,
            ReduceOperation::Builtin(reduction) => ReduceOperation::Builtin(*reduction),
            ReduceOperation::UserDefined(operator) => ReduceOperation::UserDefined(of(operator)),
        }
    }
}

impl<P: Deref<Target: Operator>> ReduceOperation<P> {
    /// Combines each value of `left` with the value at the same index of `right`, and stores the result in `left`. Both
    /// have the same length.
    #[inline]
    pub fn combine<T: Pod>(&self, left: &mut [T], right: &[T]) {
        let (left, right) = (cast_slice_mut(left), cast_slice(right));
        match self {
            ReduceOperation::Nothing => {}
            ReduceOperation::Builtin(reduction) => reduction.combine(left, right),
            ReduceOperation::UserDefined(operator) => operator.combine(left, right),
        }
    }

    /// Returns how many elements of type `T` make a value: more than 1 only if an operation of the program combines
    /// values that are passed as their bytes.
    #[inline]
    pub fn elements_of_value<T>(&self) -> usize {
        match self {
            ReduceOperation::UserDefined(operator) => (operator.value_bytes() / size_of::<T>().max(1)).max(1),
            ReduceOperation::Nothing | ReduceOperation::Builtin(_) => 1,
        }
    }

    /// Returns a text that is equal on all members whose plans may combine values with each other.
    pub fn text_for_comparison(&self) -> String {
        match self {
            ReduceOperation::Nothing => String::new(),
            ReduceOperation::Builtin(reduction) => format!("{reduction:?}"),
            ReduceOperation::UserDefined(operator) => {
                format!("their own, of {} bytes", operator.value_bytes())
            }
        }
    }
}
