//! Reductions: how incoming values are combined with the values at the destination. Built-in element types and
//! operations, or a user-defined operator.
#![allow(unsafe_code)]
//! Unsafe: incoming values are read in place by a pointer, because other ranks may write that memory meanwhile.

pub mod blocks;
pub mod extremes;
mod operation;

use crate::os::simd::vectorized;
use bytemuck::Pod;
use extremes::{Distant, Ordered};
pub use operation::{BorrowedOperation, BoxedOperation, ReduceOperation, SharedOperation};
use std::fmt;

/// Each operation has a loop of its own without branches, so that the compiler can vectorize it.
macro_rules! integer {
    ($type:ty, $how:expr, $values:expr) => {
        match $how {
            Combine::Sum => each::<$type>($values, |a, b| a.wrapping_add(b)),
            Combine::Product => each::<$type>($values, |a, b| a.wrapping_mul(b)),
            Combine::Min => each::<$type>($values, Ordered::least),
            Combine::Max => each::<$type>($values, Ordered::greatest),
            Combine::MinAbs => each::<$type>($values, Distant::nearest),
            Combine::MaxAbs => each::<$type>($values, Distant::farthest),
            Combine::And => each::<$type>($values, |a, b| a & b),
            Combine::Or => each::<$type>($values, |a, b| a | b),
            Combine::Xor => each::<$type>($values, |a, b| a ^ b),
        }
    };
}

macro_rules! float {
    ($type:ty, $how:expr, $values:expr) => {
        match $how {
            Combine::Sum => each::<$type>($values, |a, b| a + b),
            Combine::Product => each::<$type>($values, |a, b| a * b),
            Combine::Min => each::<$type>($values, Ordered::least),
            Combine::Max => each::<$type>($values, Ordered::greatest),
            Combine::MinAbs => each::<$type>($values, Distant::nearest),
            Combine::MaxAbs => each::<$type>($values, Distant::farthest),
            Combine::And | Combine::Or | Combine::Xor => {} // `Reduction::new` refuses these
        }
    };
}

macro_rules! complex {
    ($type:ty, $how:expr, $values:expr) => {
        match $how {
            Combine::Sum => each::<[$type; 2]>($values, |[a, b], [c, d]| [a + c, b + d]),
            Combine::Product => each::<[$type; 2]>($values, |[a, b], [c, d]| [a * c - b * d, a * d + b * c]),
            Combine::MinAbs => each::<[$type; 2]>($values, Distant::nearest),
            Combine::MaxAbs => each::<[$type; 2]>($values, Distant::farthest),
            _ => {} // `Reduction::new` refuses these
        }
    };
}

/// Two arrays of values that are combined. Both have the same length.
struct Values<'v> {
    /// The values at the destination, which receive the result.
    into: &'v mut [u8],
    /// The incoming values: readable memory, which other ranks may write. Each value is read once.
    from: *const u8,
    /// True if the incoming value is the left operand.
    incoming_first: bool,
}

#[inline(always)]
fn each<T: Pod>(values: Values<'_>, combine: impl Fn(T, T) -> T) {
    match values.incoming_first {
        true => values.each(|ours, theirs| combine(theirs, ours)),
        false => values.each(combine),
    }
}

impl Values<'_> {
    #[inline(always)]
    fn each<T: Pod>(self, combine: impl Fn(T, T) -> T) {
        let Values { into, from, .. } = self;
        let one = move |ours: &mut [u8], at: usize| {
            // SAFETY: `from` has as many bytes as `into`, and value number `at` of `into` exists.
            let theirs = unsafe { from.add(at * size_of::<T>()).cast::<T>().read_unaligned() };
            let result = combine(bytemuck::pod_read_unaligned(ours), theirs);
            ours.copy_from_slice(bytemuck::bytes_of(&result));
        };
        if into.len() == size_of::<T>() {
            return one(into, 0); // takes a third of the time that the setup of the loop takes
        }
        let bytes = into.len();
        let values = into.chunks_exact_mut(size_of::<T>()).enumerate();
        vectorized(bytes, move || values.for_each(move |(at, ours)| one(ours, at)));
    }
}

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementType {
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// Floating point, 4 bytes.
    F32,
    /// Floating point, 8 bytes.
    F64,
    /// A complex number of two of 4 bytes.
    C32,
    /// A complex number of two of 8 bytes.
    C64,
}

/// The operation that combines two values. Sums and products of integers wrap.
///
/// Min, Max, MinAbs and MaxAbs: if a value is NaN, the result is NaN, always with the same bits: positive and quiet,
/// without a payload (of 8 bytes `0x7ff8000000000000`, of 4 bytes `0x7fc00000`). A complex number is NaN if one of its
/// parts is, and as a result both parts are. Infinities are numbers like others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The lesser. -0.0 is less than 0.0.
    Min,
    /// The greater. 0.0 is greater than -0.0.
    Max,
    /// The one nearer to zero, with its sign. If both are equally near, the left operand. The distance of a complex
    /// number is the sum of the absolute values of its parts.
    MinAbs,
    /// The one farther from zero, with its sign. If both are equally far, the left operand.
    MaxAbs,
    /// Bitwise and; integers only.
    And,
    /// Bitwise or; integers only.
    Or,
    /// Bitwise exclusive or; integers only.
    Xor,
}

/// A way to combine values: an operation on an element type, or a user-defined operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    how: ReductionKind,
    /// True if the incoming value is the left operand. It matters for operations that do not commute.
    incoming_first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReductionKind {
    /// A built-in operation, which every rank can apply.
    Builtin(ElementType, Combine),
    /// A user-defined operator of one rank: its number at that rank, and the bytes of a value.
    User(u32, u32),
}

/// A user-defined operator. It is known to the rank that registered it and to no other rank.
pub trait Operator {
    /// Returns the bytes of a value: at least 1.
    fn value_bytes(&self) -> usize;

    /// Combines each value of `left` with the value at the same index of `right`, and stores the result in `left`. Both
    /// have the same length, a multiple of the size of a value. They may begin at any address; most begin at a multiple
    /// of 64.
    fn combine(&self, left: &mut [u8], right: &[u8]);
}

const ELEMENT_TYPES: [ElementType; 12] = [
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::F32,
    ElementType::F64,
    ElementType::C32,
    ElementType::C64,
];

const COMBINES: [Combine; 9] = [
    Combine::Sum,
    Combine::Product,
    Combine::Min,
    Combine::Max,
    Combine::MinAbs,
    Combine::MaxAbs,
    Combine::And,
    Combine::Or,
    Combine::Xor,
];

/// The code of a user-defined operator. No built-in reduction has it.
const USER_DEFINED: u8 = 127;
const _: () = assert!(ELEMENT_TYPES.len() * COMBINES.len() <= USER_DEFINED as usize);

impl ElementType {
    /// Bytes of a value.
    pub fn bytes(self) -> u64 {
        match self {
            ElementType::I8 | ElementType::U8 => 1,
            ElementType::I16 | ElementType::U16 => 2,
            ElementType::I32 | ElementType::U32 | ElementType::F32 => 4,
            ElementType::I64 | ElementType::U64 | ElementType::F64 | ElementType::C32 => 8,
            ElementType::C64 => 16,
        }
    }

    /// Returns true if the operation is defined for this element type.
    fn supports(self, combine: Combine) -> bool {
        match self {
            ElementType::F32 | ElementType::F64 => {
                !matches!(combine, Combine::And | Combine::Or | Combine::Xor)
            }
            ElementType::C32 | ElementType::C64 => {
                matches!(combine, Combine::Sum | Combine::Product | Combine::MinAbs | Combine::MaxAbs)
            }
            _ => true,
        }
    }
}

impl Reduction {
    /// Returns the element type and the operation, if it is built in.
    pub fn builtin(&self) -> Option<(ElementType, Combine)> {
        match self.how {
            ReductionKind::Builtin(element, how) => Some((element, how)),
            ReductionKind::User(..) => None,
        }
    }

    /// Returns the name of the operation of that number, as in [`Combine`].
    pub fn name_of(number: u8) -> String {
        COMBINES.get(usize::from(number)).map_or(String::new(), |how| format!("{how:?}"))
    }

    /// A built-in reduction. `None` if the operation is not defined for the type: bitwise operations on floating-point
    /// numbers, minimum and maximum of complex numbers.
    pub fn new(element: ElementType, combine: Combine) -> Option<Reduction> {
        element
            .supports(combine)
            .then_some(Reduction { how: ReductionKind::Builtin(element, combine), incoming_first: false })
    }

    /// A reduction by the user-defined operator number `operator`, on values of `bytes` bytes. Only the rank that
    /// registered the operator can run it.
    pub fn user_defined(operator: u32, bytes: u32) -> Reduction {
        Reduction { how: ReductionKind::User(operator, bytes.max(1)), incoming_first: false }
    }

    /// The same reduction with the incoming value as the left (true) or the right operand (false).
    pub fn with_incoming_first(self, incoming_first: bool) -> Reduction {
        Reduction { incoming_first, ..self }
    }

    /// All built-in reductions, with the incoming value as the right operand.
    pub fn all() -> impl Iterator<Item = Reduction> {
        ELEMENT_TYPES
            .iter()
            .flat_map(|&element| COMBINES.iter().filter_map(move |&c| Reduction::new(element, c)))
    }

    /// Bytes of a value.
    pub fn bytes(self) -> u64 {
        match self.how {
            ReductionKind::Builtin(element, _) => element.bytes(),
            ReductionKind::User(_, bytes) => bytes.into(),
        }
    }

    /// Number of the user-defined operator, if it needs one.
    pub fn operator(self) -> Option<u32> {
        if let ReductionKind::User(operator, _) = self.how { Some(operator) } else { None }
    }

    /// Encodes the reduction as two numbers. In the first, bit 7 is set if the incoming value is the left operand; bits
    /// 0-6 hold element type and operation, or all ones for a user-defined operator. The second holds the operator's
    /// number and the bytes of a value.
    pub(super) fn encode(self) -> (u8, u64) {
        let (low, second) = match self.how {
            ReductionKind::Builtin(element, combine) => {
                (element as u8 * COMBINES.len() as u8 + combine as u8, 0)
            }
            ReductionKind::User(operator, bytes) => {
                (USER_DEFINED, u64::from(operator) | u64::from(bytes) << 32)
            }
        };
        (low | u8::from(self.incoming_first) << 7, second)
    }

    pub(super) fn decode(element: u8, second: u64) -> Option<Reduction> {
        let (low, incoming_first) = (element & USER_DEFINED, element & !USER_DEFINED != 0);
        if low == USER_DEFINED {
            return Some(
                Reduction::user_defined(second as u32, (second >> 32) as u32)
                    .with_incoming_first(incoming_first),
            );
        }
        let (value, combine) = (usize::from(low) / COMBINES.len(), usize::from(low) % COMBINES.len());
        Some(
            Reduction::new(*ELEMENT_TYPES.get(value)?, COMBINES[combine])?
                .with_incoming_first(incoming_first),
        )
    }

    /// Combines each value of `from` with the value at the same index of `into`, and stores the result in `into`. Both
    /// have the same length, a multiple of the size of a value. `operator` is needed for a user-defined operator. May
    /// overwrite `from`.
    pub fn apply(self, into: &mut [u8], from: &mut [u8], operator: Option<&dyn Operator>) {
        match (self.how, operator) {
            (ReductionKind::Builtin(..), _) => self.combine(into, from),
            (ReductionKind::User(..), Some(operator)) if self.incoming_first => {
                operator.combine(from, into);
                into.copy_from_slice(from);
            }
            (ReductionKind::User(..), Some(operator)) => operator.combine(into, from),
            (ReductionKind::User(..), None) => {}
        }
    }

    /// Combines values like [`Reduction::apply`], by a built-in operation.
    pub fn combine(self, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len(), "both sides have the same number of bytes");
        // SAFETY: `from` is as long as `into`, as the assertion checks.
        unsafe { self.combine_from(into, from.as_ptr()) }
    }

    /// Combines values like [`Reduction::combine`] while other ranks may write the incoming ones. Each incoming value
    /// is then read as a value that was there at some time, or as a mixture of the bytes of several values.
    ///
    /// # Safety
    /// `into.len()` bytes at `from` are readable.
    pub unsafe fn combine_from(self, into: &mut [u8], from: *const u8) {
        if let ReductionKind::Builtin(element, combine) = self.how {
            combine_builtin(element, combine, Values { into, from, incoming_first: self.incoming_first });
        }
    }

    /// Combines `len` bytes of values at `from` into those at `to`, by a built-in operation. Other ranks may write both
    /// meanwhile. `len` is a multiple of the size of a value.
    ///
    /// # Safety
    /// `len` bytes at both addresses are accessible.
    pub unsafe fn combine_between(self, from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: `in_blocks` passes a part of the range at `from` that is as long as `into`, and the caller promises
        // that the whole range is accessible.
        let combine = |into: &mut [u8], from: *const u8| unsafe {
            self.combine_from(into, from);
            true
        };
        // SAFETY: the caller promises `len` accessible bytes at both addresses.
        unsafe { blocks::in_blocks((from, to, len), self.bytes() as usize, combine) };
    }
}

/// Combines the values by a built-in operation.
fn combine_builtin(element: ElementType, how: Combine, values: Values<'_>) {
    match element {
        ElementType::I8 => integer!(i8, how, values),
        ElementType::I16 => integer!(i16, how, values),
        ElementType::I32 => integer!(i32, how, values),
        ElementType::I64 => integer!(i64, how, values),
        ElementType::U8 => integer!(u8, how, values),
        ElementType::U16 => integer!(u16, how, values),
        ElementType::U32 => integer!(u32, how, values),
        ElementType::U64 => integer!(u64, how, values),
        ElementType::F32 => float!(f32, how, values),
        ElementType::F64 => float!(f64, how, values),
        ElementType::C32 => complex!(f32, how, values),
        ElementType::C64 => complex!(f64, how, values),
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            ReductionKind::Builtin(element, combine) => write!(f, "{combine:?} of {element:?}"),
            ReductionKind::User(operator, bytes) => {
                write!(f, "operator {operator} of values of {bytes} bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce<T: Pod>(element: ElementType, combine: Combine, into: &[T], from: &[T]) -> Vec<T> {
        let mut into = into.to_vec();
        let reduction = Reduction::new(element, combine).expect("the type has this operation");
        let mut from = from.to_vec();
        reduction.apply(bytemuck::cast_slice_mut(&mut into), bytemuck::cast_slice_mut(&mut from), None);
        into
    }

    #[test]
    fn operations_on_integers() {
        let (a, b) = ([3_i32, -5, 7], [-3_i32, 4, -7]);
        let expected = [
            (Combine::Sum, [0, -1, 0]),
            (Combine::Product, [-9, -20, -49]),
            (Combine::Min, [-3, -5, -7]),
            (Combine::Max, [3, 4, 7]),
            (Combine::MinAbs, [3, 4, 7]),
            (Combine::MaxAbs, [3, -5, 7]),
            (Combine::And, [3 & -3, -5 & 4, 7 & -7]),
            (Combine::Or, [3 | -3, -5 | 4, 7 | -7]),
            (Combine::Xor, [3 ^ -3, -5 ^ 4, 7 ^ -7]),
        ];
        for (combine, values) in expected {
            assert_eq!(reduce(ElementType::I32, combine, &a, &b), values, "{combine:?}");
        }
    }

    #[test]
    fn integer_sums_wrap_and_floats_have_no_bitwise_operations() {
        assert_eq!(reduce(ElementType::U8, Combine::Sum, &[255_u8], &[2]), [1]);
        assert_eq!(reduce(ElementType::I64, Combine::MaxAbs, &[1_i64], &[i64::MIN]), [i64::MIN]);
        assert_eq!(reduce(ElementType::F64, Combine::MinAbs, &[-2.5_f64], &[1.5]), [1.5]);
        assert_eq!(Reduction::new(ElementType::F32, Combine::Xor), None);
    }

    #[test]
    fn complex_numbers_are_added_and_multiplied() {
        let reduce = |combine| reduce(ElementType::C64, combine, &[[1.0_f64, 2.0]], &[[3.0, -1.0]]);
        assert_eq!(reduce(Combine::Sum), [[4.0, 1.0]]);
        assert_eq!(reduce(Combine::Product), [[5.0, 5.0]]);
        assert_eq!(reduce(Combine::MaxAbs), [[3.0, -1.0]]);
        assert_eq!(Reduction::new(ElementType::C32, Combine::Min), None);
    }

    struct Minus;

    impl Operator for Minus {
        fn value_bytes(&self) -> usize {
            1
        }

        fn combine(&self, left: &mut [u8], right: &[u8]) {
            left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_sub(*right));
        }
    }

    #[test]
    fn the_incoming_value_is_the_right_or_the_left_operand() {
        for (incoming_first, result) in [(false, [7, 1]), (true, [249, 255])] {
            let mut into = [10, 3];
            Reduction::user_defined(0, 1).with_incoming_first(incoming_first).apply(
                &mut into,
                &mut [3, 2],
                Some(&Minus),
            );
            assert_eq!(into, result);
        }
        let mut into = [-5_i8, 4];
        let first = Reduction::new(ElementType::I8, Combine::MaxAbs)
            .expect("the type has this operation")
            .with_incoming_first(true);
        first.apply(bytemuck::cast_slice_mut(&mut into), bytemuck::cast_slice_mut(&mut [5_i8, -3]), None);
        assert_eq!(into, [5, 4], "of two that are equally far from zero the left operand");
    }

    #[test]
    fn an_array_is_reduced_like_its_single_values() {
        let row = |seed: usize| -> Vec<u8> { (0..4096).map(|at| ((at * 37 + seed) % 61) as u8).collect() }; // no NaN
        for reduction in Reduction::all() {
            let (mut long, mut each, from) = (row(5), row(5), row(40));
            reduction.combine(&mut long, &from);
            let bytes = reduction.bytes() as usize;
            let pairs = each.chunks_exact_mut(bytes).zip(from.chunks_exact(bytes));
            pairs.for_each(|(into, from)| reduction.combine(into, from));
            assert!(long == each, "{reduction}");
            let (mut incoming_first, mut behind) = (row(5), row(40));
            reduction.with_incoming_first(true).combine(&mut incoming_first, &from);
            reduction.combine(&mut behind, &row(5));
            assert!(incoming_first == behind, "{reduction}, incoming value first");
        }
    }

    #[test]
    fn each_reduction_decodes_to_what_was_encoded() {
        let all: Vec<Reduction> = Reduction::all().collect();
        assert_eq!(all.len(), 8 * 9 + 2 * 6 + 2 * 4);
        let user_defined = [Reduction::user_defined(0, 1), Reduction::user_defined(u32::MAX, u32::MAX)];
        for one in all.into_iter().chain(user_defined).flat_map(|one| [one, one.with_incoming_first(true)]) {
            let (first, second) = one.encode();
            assert_eq!(Reduction::decode(first, second), Some(one));
        }
        assert_eq!(Reduction::decode(126, 0), None);
    }
}
