//! The quicker order: a wrapper that lets plans combine values in any order.

use crate::reduction::reduce_op::ReduceOp;
use tasuki_core::queue::reduction::Reduction;

/// The quicker order: an operation that a plan may apply in any order and with any grouping of the members' values.
///
/// Without it, a plan keeps the combining order ([`ReduceOp`]) wherever the bits of the result depend on it, and its
/// sums of floating-point numbers equal those of the calls. With it, the plan chooses the quickest algorithm. The
/// result may then differ in its last bits from that of a call, of another kind of plan, of another number of values or
/// processors, or with a helper; of one plan it is the same in each start and on all members. For more than 32 members,
/// and for long values where a helper runs the plan, this can be many times quicker; plans of few members that run no
/// helper gain nothing.
///
/// The operation must be associative and commutative, apart from rounding. Calls ignore the wrapper, and so do
/// operations whose bits do not depend on the order, as sums of integers: their plans are always free to choose.
///
/// ```
/// use tasuki::collective::AnyOrder;
/// use tasuki::{Request, Sum};
/// tasuki::local(3, |job| {
///     let mut sum = job.world().allreduce_init::<f64>(1, AnyOrder(Sum))?;
///     sum.input()?[0] = 0.5;
///     sum.start()?;
///     sum.wait()?;
///     assert_eq!(sum.result()?, [1.5]);
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnyOrder<O>(pub O);

impl<T, O: ReduceOp<T>> ReduceOp<T> for AnyOrder<O> {
    fn combine(&self, left: &mut [T], right: &[T]) {
        self.0.combine(left, right);
    }

    fn known(&self) -> Option<Reduction> {
        self.0.known()
    }

    fn in_order(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sum;
    use crate::collective::{Complex, Max, Product};

    #[test]
    fn operations_whose_bits_depend_on_the_order_keep_it_unless_any_order_will_do() {
        let is_kept = [
            ReduceOp::<f32>::in_order(&Sum),
            ReduceOp::<f64>::in_order(&Product),
            ReduceOp::<Complex<f32>>::in_order(&Sum),
            ReduceOp::<Complex<f64>>::in_order(&Product),
            ReduceOp::<f64>::in_order(&|a: f64, b: f64| a + b),
        ];
        assert_eq!(is_kept, [true; 5]);
        let is_free = [
            !ReduceOp::<i64>::in_order(&Sum),
            !ReduceOp::<f64>::in_order(&Max),
            !ReduceOp::<f64>::in_order(&AnyOrder(Sum)),
            !ReduceOp::<f64>::in_order(&AnyOrder(|a: f64, b: f64| a + b)),
        ];
        assert_eq!(is_free, [true; 4]);
        assert_eq!(ReduceOp::<f64>::known(&AnyOrder(Sum)), ReduceOp::<f64>::known(&Sum));
    }
}
