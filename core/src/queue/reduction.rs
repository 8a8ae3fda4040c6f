//! ReductionKind values are combined on arrival: the usual types and operations, or an operator of the rank's own.
#![allow(unsafe_code)]
//! Unsafe: values are read where they lie, by a pointer, for others may have that memory, too.

use crate::os::simd::vectorized;
use bytemuck::Pod;
use std::fmt;

/// `b` instead of `a`, if it is.
macro_rules! choose {
    ($a:expr, $b:expr, $better:expr) => {
        if $better { $b } else { $a }
    };
}

/// Each operation has a loop of its own, in which nothing is asked: so it is made of wide instructions.
macro_rules! integer {
    ($type:ty, $how:expr, $values:expr, $size:ident) => {
        match $how {
            Combine::Sum => each::<$type>($values, |a, b| a.wrapping_add(b)),
            Combine::Product => each::<$type>($values, |a, b| a.wrapping_mul(b)),
            Combine::Min => each::<$type>($values, |a, b| choose!(a, b, b < a)),
            Combine::Max => each::<$type>($values, |a, b| choose!(a, b, b > a)),
            Combine::MinAbs => each::<$type>($values, |a, b| choose!(a, b, $size!(b) < $size!(a))),
            Combine::MaxAbs => each::<$type>($values, |a, b| choose!(a, b, $size!(b) > $size!(a))),
            Combine::And => each::<$type>($values, |a, b| a & b),
            Combine::Or => each::<$type>($values, |a, b| a | b),
            Combine::Xor => each::<$type>($values, |a, b| a ^ b),
        }
    };
}

macro_rules! magnitude {
    ($a:expr) => {
        $a.unsigned_abs()
    };
}

macro_rules! itself {
    ($a:expr) => {
        $a
    };
}

macro_rules! float {
    ($type:ty, $how:expr, $values:expr) => {
        match $how {
            Combine::Sum => each::<$type>($values, |a, b| a + b),
            Combine::Product => each::<$type>($values, |a, b| a * b),
            Combine::Min => each::<$type>($values, |a, b| choose!(a, b, b < a)),
            Combine::Max => each::<$type>($values, |a, b| choose!(a, b, b > a)),
            Combine::MinAbs => each::<$type>($values, |a, b| choose!(a, b, b.abs() < a.abs())),
            Combine::MaxAbs => each::<$type>($values, |a, b| choose!(a, b, b.abs() > a.abs())),
            Combine::And | Combine::Or | Combine::Xor => {} // no such reduction can be made
        }
    };
}

macro_rules! complex {
    ($type:ty, $how:expr, $values:expr) => {
        match $how {
            Combine::Sum => each::<[$type; 2]>($values, |[a, b], [c, d]| [a + c, b + d]),
            Combine::Product => each::<[$type; 2]>($values, |[a, b], [c, d]| [a * c - b * d, a * d + b * c]),
            Combine::MinAbs => each::<[$type; 2]>($values, |[a, b], [c, d]| {
                choose!([a, b], [c, d], c.abs() + d.abs() < a.abs() + b.abs())
            }),
            Combine::MaxAbs => each::<[$type; 2]>($values, |[a, b], [c, d]| {
                choose!([a, b], [c, d], c.abs() + d.abs() > a.abs() + b.abs())
            }),
            _ => {} // no such reduction can be made
        }
    };
}

/// Values that are combined with others, as many.
struct Values<'v> {
    /// They, and what they become.
    into: &'v mut [u8],
    /// Where the others begin: readable memory, which somebody else may write. Each is read once.
    from: *const u8,
    /// Whether the others stand on the left.
    in_front: bool,
}

#[inline(always)]
fn each<T: Pod>(values: Values<'_>, combine: impl Fn(T, T) -> T) {
    match values.in_front {
        true => values.each(|own, other| combine(other, own)),
        false => values.each(combine),
    }
}

impl Values<'_> {
    #[inline(always)]
    fn each<T: Pod>(self, combine: impl Fn(T, T) -> T) {
        let Values { into, from, .. } = self;
        let one = move |own: &mut [u8], at: usize| {
            // SAFETY: there are as many bytes as in `into`, of which a value ends here.
            let other = unsafe { from.add(at * size_of::<T>()).cast::<T>().read_unaligned() };
            own.copy_from_slice(bytemuck::bytes_of(&combine(bytemuck::pod_read_unaligned(own), other)));
        };
        if into.len() == size_of::<T>() {
            return one(into, 0); // a third of what setting up the loop takes
        }
        let bytes = into.len();
        let values = into.chunks_exact_mut(size_of::<T>()).enumerate();
        vectorized(bytes, move || values.for_each(move |(at, own)| one(own, at)));
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

/// ReductionKind two values become one. Sums and products of integers wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// The nearer to zero, with its sign; of equals, the one at the destination.
    MinAbs,
    /// The farther from zero, with its sign; of equals, the one at the destination.
    MaxAbs,
    /// Bits that both have; integers only.
    And,
    /// Bits that either has; integers only.
    Or,
    /// Bits that one of them has; integers only.
    Xor,
}

/// ReductionKind values are combined with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    how: ReductionKind,
    /// What comes stands before what is there, where that makes a difference.
    in_front: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReductionKind {
    /// As everybody knows.
    Known(ElementType, Combine),
    /// As an operator of the rank knows whose command it is: its number there, and bytes of a value.
    Own(u32, u32),
}

/// An operator that a rank has, and no other: it combines values of its own kind.
pub trait Operator: Send + Sync {
    /// Each value on the left becomes itself with its partner on the right, as many bytes, of whole values. Both begin
    /// anywhere, mostly at a multiple of 64.
    fn combine(&self, left: &mut [u8], right: &[u8]);
}

const NUMBERS: [ElementType; 12] = [
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

/// The number of no type and operation.
const OWN: u8 = 127;
const _: () = assert!(NUMBERS.len() * COMBINES.len() <= OWN as usize);

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

    /// Whether values of that type can be combined so.
    fn knows(self, combine: Combine) -> bool {
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
    /// Such a reduction; `None` where the type has no such operation: bits of floating-point numbers, an order of
    /// complex ones.
    pub fn new(number: ElementType, combine: Combine) -> Option<Reduction> {
        number
            .knows(combine)
            .then_some(Reduction { how: ReductionKind::Known(number, combine), in_front: false })
    }

    /// By an operator of the rank's own, of values of so many bytes. Only that rank can carry it out.
    pub fn own(operator: u32, bytes: u32) -> Reduction {
        Reduction { how: ReductionKind::Own(operator, bytes.max(1)), in_front: false }
    }

    /// The same, with what comes before what is there, or behind it.
    pub fn placed(self, in_front: bool) -> Reduction {
        Reduction { in_front, ..self }
    }

    /// All that everybody knows, with what comes behind what is there.
    pub fn all() -> impl Iterator<Item = Reduction> {
        NUMBERS.iter().flat_map(|&number| COMBINES.iter().filter_map(move |&c| Reduction::new(number, c)))
    }

    /// Bytes of a value.
    pub fn bytes(self) -> u64 {
        match self.how {
            ReductionKind::Known(number, _) => number.bytes(),
            ReductionKind::Own(_, bytes) => bytes.into(),
        }
    }

    /// The operator that it needs, if it is a rank's own.
    pub fn operator(self) -> Option<u32> {
        if let ReductionKind::Own(operator, _) = self.how { Some(operator) } else { None }
    }

    /// Whether what comes stands before what is there.
    pub fn is_in_front(self) -> bool {
        self.in_front
    }

    /// Bit 7: in front. Below: type and operation; all ones for an operator, which is in the second number.
    pub(super) fn numbers(self) -> (u8, u64) {
        let (low, second) = match self.how {
            ReductionKind::Known(number, combine) => (number as u8 * COMBINES.len() as u8 + combine as u8, 0),
            ReductionKind::Own(operator, bytes) => (OWN, u64::from(operator) | u64::from(bytes) << 32),
        };
        (low | u8::from(self.in_front) << 7, second)
    }

    pub(super) fn of_numbers(number: u8, second: u64) -> Option<Reduction> {
        let (low, in_front) = (number & OWN, number & !OWN != 0);
        if low == OWN {
            return Some(Reduction::own(second as u32, (second >> 32) as u32).placed(in_front));
        }
        let (value, combine) = (usize::from(low) / COMBINES.len(), usize::from(low) % COMBINES.len());
        Some(Reduction::new(*NUMBERS.get(value)?, COMBINES[combine])?.placed(in_front))
    }

    /// Combines each value of `from` into its partner of `into`: as many bytes, a multiple of a value's, with
    /// `operator` if it needs one. `from` may be changed.
    pub fn apply(self, into: &mut [u8], from: &mut [u8], operator: Option<&dyn Operator>) {
        match (self.how, operator) {
            (ReductionKind::Known(..), _) => self.combine(into, from),
            (ReductionKind::Own(..), Some(operator)) if self.in_front => {
                operator.combine(from, into);
                into.copy_from_slice(from);
            }
            (ReductionKind::Own(..), Some(operator)) => operator.combine(into, from),
            (ReductionKind::Own(..), None) => {}
        }
    }

    /// The same of an operation that everybody knows.
    pub fn combine(self, into: &mut [u8], from: &[u8]) {
        assert_eq!(into.len(), from.len(), "values and partners");
        // SAFETY: there are as many.
        unsafe { self.combine_from(into, from.as_ptr()) }
    }

    /// The same with values that others may write meanwhile. What comes of those is one of the values that were there
    /// at some time, or bytes of several.
    ///
    /// # Safety
    /// As many bytes as `into` has can be read there.
    pub unsafe fn combine_from(self, into: &mut [u8], from: *const u8) {
        if let ReductionKind::Known(number, combine) = self.how {
            combine_known(number, combine, Values { into, from, in_front: self.in_front });
        }
    }
}

/// Each value becomes itself with its partner.
fn combine_known(number: ElementType, how: Combine, values: Values<'_>) {
    match number {
        ElementType::I8 => integer!(i8, how, values, magnitude),
        ElementType::I16 => integer!(i16, how, values, magnitude),
        ElementType::I32 => integer!(i32, how, values, magnitude),
        ElementType::I64 => integer!(i64, how, values, magnitude),
        ElementType::U8 => integer!(u8, how, values, itself),
        ElementType::U16 => integer!(u16, how, values, itself),
        ElementType::U32 => integer!(u32, how, values, itself),
        ElementType::U64 => integer!(u64, how, values, itself),
        ElementType::F32 => float!(f32, how, values),
        ElementType::F64 => float!(f64, how, values),
        ElementType::C32 => complex!(f32, how, values),
        ElementType::C64 => complex!(f64, how, values),
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            ReductionKind::Known(number, combine) => write!(f, "{combine:?} of {number:?}"),
            ReductionKind::Own(operator, bytes) => {
                write!(f, "operator {operator} of values of {bytes} bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce<T: Pod>(number: ElementType, combine: Combine, into: &[T], from: &[T]) -> Vec<T> {
        let mut into = into.to_vec();
        let reduction = Reduction::new(number, combine).expect("they go together");
        let mut from = from.to_vec();
        reduction.apply(bytemuck::cast_slice_mut(&mut into), bytemuck::cast_slice_mut(&mut from), None);
        into
    }

    #[test]
    fn values_become_what_their_operation_says() {
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
    fn sums_of_integers_wrap_and_floats_know_no_bits() {
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
        fn combine(&self, left: &mut [u8], right: &[u8]) {
            left.iter_mut().zip(right).for_each(|(left, right)| *left = left.wrapping_sub(*right));
        }
    }

    #[test]
    fn what_comes_stands_behind_or_in_front() {
        for (in_front, result) in [(false, [7, 1]), (true, [249, 255])] {
            let mut into = [10, 3];
            Reduction::own(0, 1).placed(in_front).apply(&mut into, &mut [3, 2], Some(&Minus));
            assert_eq!(into, result);
        }
        let mut into = [-5_i8, 4];
        let first = Reduction::new(ElementType::I8, Combine::MaxAbs).expect("they go together").placed(true);
        first.apply(bytemuck::cast_slice_mut(&mut into), bytemuck::cast_slice_mut(&mut [5_i8, -3]), None);
        assert_eq!(into, [5, 4], "of equals the first");
    }

    #[test]
    fn a_long_row_comes_to_what_each_of_its_values_does() {
        let row = |seed: usize| -> Vec<u8> { (0..4096).map(|at| ((at * 37 + seed) % 61) as u8).collect() }; // no NaN
        for reduction in Reduction::all() {
            let (mut long, mut each, from) = (row(5), row(5), row(40));
            reduction.combine(&mut long, &from);
            let bytes = reduction.bytes() as usize;
            let pairs = each.chunks_exact_mut(bytes).zip(from.chunks_exact(bytes));
            pairs.for_each(|(into, from)| reduction.combine(into, from));
            assert!(long == each, "{reduction}");
            let (mut in_front, mut behind) = (row(5), row(40));
            reduction.placed(true).combine(&mut in_front, &from);
            reduction.combine(&mut behind, &row(5));
            assert!(in_front == behind, "{reduction}, in front");
        }
    }

    #[test]
    fn each_reduction_has_its_number() {
        let all: Vec<Reduction> = Reduction::all().collect();
        assert_eq!(all.len(), 8 * 9 + 2 * 6 + 2 * 4);
        let own = [Reduction::own(0, 1), Reduction::own(u32::MAX, u32::MAX)];
        for one in all.into_iter().chain(own).flat_map(|one| [one, one.placed(true)]) {
            let (first, second) = one.numbers();
            assert_eq!(Reduction::of_numbers(first, second), Some(one));
        }
        assert_eq!(Reduction::of_numbers(126, 0), None);
    }
}
