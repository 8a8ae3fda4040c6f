//! How values are combined on arrival: the usual types and operations.

use bytemuck::Pod;
use std::fmt;

/// `b` instead of `a`, if it is.
macro_rules! choose {
    ($a:expr, $b:expr, $better:expr) => {
        if $better { $b } else { $a }
    };
}

macro_rules! integer {
    ($how:expr, $a:expr, $b:expr, $size:ident) => {
        match $how {
            Combine::Sum => $a.wrapping_add($b),
            Combine::Product => $a.wrapping_mul($b),
            Combine::Min => choose!($a, $b, $b < $a),
            Combine::Max => choose!($a, $b, $b > $a),
            Combine::MinAbs => choose!($a, $b, $size!($b) < $size!($a)),
            Combine::MaxAbs => choose!($a, $b, $size!($b) > $size!($a)),
            Combine::And => $a & $b,
            Combine::Or => $a | $b,
            Combine::Xor => $a ^ $b,
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

macro_rules! signed {
    ($how:expr, $a:expr, $b:expr) => {
        integer!($how, $a, $b, magnitude)
    };
}

macro_rules! unsigned {
    ($how:expr, $a:expr, $b:expr) => {
        integer!($how, $a, $b, itself)
    };
}

macro_rules! float {
    ($how:expr, $a:expr, $b:expr) => {
        match $how {
            Combine::Sum => $a + $b,
            Combine::Product => $a * $b,
            Combine::Min => choose!($a, $b, $b < $a),
            Combine::Max => choose!($a, $b, $b > $a),
            Combine::MinAbs => choose!($a, $b, $b.abs() < $a.abs()),
            Combine::MaxAbs => choose!($a, $b, $b.abs() > $a.abs()),
            Combine::And | Combine::Or | Combine::Xor => $a, // no such reduction can be made
        }
    };
}

fn each<T: Pod>(into: &mut [u8], from: &[u8], combine: impl Fn(T, T) -> T) {
    for (into, from) in into.chunks_exact_mut(size_of::<T>()).zip(from.chunks_exact(size_of::<T>())) {
        let value = combine(bytemuck::pod_read_unaligned(into), bytemuck::pod_read_unaligned(from));
        into.copy_from_slice(bytemuck::bytes_of(&value));
    }
}

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
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
}

/// How two values become one. Sums and products of integers wrap.
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

/// A type and an operation that go together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    number: Number,
    combine: Combine,
}

const NUMBERS: [Number; 10] = [
    Number::I8,
    Number::I16,
    Number::I32,
    Number::I64,
    Number::U8,
    Number::U16,
    Number::U32,
    Number::U64,
    Number::F32,
    Number::F64,
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

impl Number {
    /// Bytes of a value.
    pub fn bytes(self) -> u64 {
        match self {
            Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 => 8,
        }
    }

    fn has_bits(self) -> bool {
        !matches!(self, Number::F32 | Number::F64)
    }
}

impl Reduction {
    /// Such a reduction; `None` for bitwise operations on floating-point numbers.
    pub fn new(number: Number, combine: Combine) -> Option<Reduction> {
        let bitwise = matches!(combine, Combine::And | Combine::Or | Combine::Xor);
        (!bitwise || number.has_bits()).then_some(Reduction { number, combine })
    }

    /// All there are.
    pub fn all() -> impl Iterator<Item = Reduction> {
        NUMBERS.iter().flat_map(|&number| COMBINES.iter().filter_map(move |&c| Reduction::new(number, c)))
    }

    /// Bytes of a value.
    pub fn bytes(self) -> u64 {
        self.number.bytes()
    }

    /// Type in bits 0-3, operation above.
    pub(super) fn number(self) -> u8 {
        self.number as u8 | (self.combine as u8) << 4
    }

    pub(super) fn of_number(number: u8) -> Option<Reduction> {
        let (value, combine) = (usize::from(number & 15), usize::from(number >> 4));
        Reduction::new(*NUMBERS.get(value)?, *COMBINES.get(combine)?)
    }

    /// Combines each value of `from` into its partner of `into`: as many bytes, a multiple of a value's.
    pub fn apply(self, into: &mut [u8], from: &[u8]) {
        let how = self.combine;
        match self.number {
            Number::I8 => each::<i8>(into, from, |a, b| signed!(how, a, b)),
            Number::I16 => each::<i16>(into, from, |a, b| signed!(how, a, b)),
            Number::I32 => each::<i32>(into, from, |a, b| signed!(how, a, b)),
            Number::I64 => each::<i64>(into, from, |a, b| signed!(how, a, b)),
            Number::U8 => each::<u8>(into, from, |a, b| unsigned!(how, a, b)),
            Number::U16 => each::<u16>(into, from, |a, b| unsigned!(how, a, b)),
            Number::U32 => each::<u32>(into, from, |a, b| unsigned!(how, a, b)),
            Number::U64 => each::<u64>(into, from, |a, b| unsigned!(how, a, b)),
            Number::F32 => each::<f32>(into, from, |a, b| float!(how, a, b)),
            Number::F64 => each::<f64>(into, from, |a, b| float!(how, a, b)),
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.combine, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce<T: Pod>(number: Number, combine: Combine, into: &[T], from: &[T]) -> Vec<T> {
        let mut into = into.to_vec();
        let reduction = Reduction::new(number, combine).expect("they go together");
        reduction.apply(bytemuck::cast_slice_mut(&mut into), bytemuck::cast_slice(from));
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
            assert_eq!(reduce(Number::I32, combine, &a, &b), values, "{combine:?}");
        }
    }

    #[test]
    fn sums_of_integers_wrap_and_floats_know_no_bits() {
        assert_eq!(reduce(Number::U8, Combine::Sum, &[255_u8], &[2]), [1]);
        assert_eq!(reduce(Number::I64, Combine::MaxAbs, &[1_i64], &[i64::MIN]), [i64::MIN]);
        assert_eq!(reduce(Number::F64, Combine::MinAbs, &[-2.5_f64], &[1.5]), [1.5]);
        assert_eq!(Reduction::new(Number::F32, Combine::Xor), None);
    }

    #[test]
    fn each_reduction_has_its_number() {
        let all: Vec<Reduction> = Reduction::all().collect();
        assert_eq!(all.len(), 8 * 9 + 2 * 6);
        assert!(all.iter().all(|&one| Reduction::of_number(one.number()) == Some(one)));
        assert_eq!(Reduction::of_number(255), None);
    }
}
