//! The type of the values that a message or a collective call moves, as a number that ranks compare.

use crate::base::TypeHasher;
use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A type of values: the number types are told apart exactly, and all others by a hash of 20 bits.
///
/// All ranks run one program, in which a type has one `TypeId`. `isize` and `usize` are the same as `i64` and `u64`.
/// `u8` stands for bytes, which match values of any type. The kind of an encoded object is that of its type, apart from
/// the kinds of plain values; bytes do not match it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueKind(u32);

/// The number of types that are told apart exactly.
const NUMBERS: u32 = 12;
const NAMES: [&str; NUMBERS as usize] =
    ["u8", "i8", "i16", "i32", "i64", "i128", "u16", "u32", "u64", "u128", "f32", "f64"];

/// The number of classes of the types that are no number types. A posted receive has room for this many.
const OTHERS: u32 = 30;
/// The last classes of those are of objects.
const OBJECTS: u32 = 4;
const PLAIN: u32 = OTHERS - OBJECTS;

/// The class of a type, for words that have no room for its kind: one class for each number type, 26 for all other
/// types of plain values, and 4 for objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindClass(u8);

impl ValueKind {
    /// Bytes, which match values of any type.
    pub const BYTES: ValueKind = ValueKind(0);

    /// Bits of [`ValueKind::bits`].
    pub const BITS: u32 = 20;

    /// Returns the kind of a type. The compiler makes it a constant.
    #[inline(always)]
    pub fn of<T: 'static>() -> ValueKind {
        let of = TypeId::of::<T>();
        let numbers = [
            TypeId::of::<u8>(),
            TypeId::of::<i8>(),
            TypeId::of::<i16>(),
            TypeId::of::<i32>(),
            TypeId::of::<i64>(),
            TypeId::of::<i128>(),
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<u128>(),
            TypeId::of::<f32>(),
            TypeId::of::<f64>(),
            TypeId::of::<isize>(),
            TypeId::of::<usize>(),
        ];
        match numbers.iter().position(|&number| number == of) {
            Some(12) => ValueKind(4),
            Some(13) => ValueKind(8),
            Some(number) => ValueKind(number as u32),
            None => ValueKind::hashed(of, size_of::<T>(), 0, PLAIN),
        }
    }

    /// Returns the kind of an encoded object of a type.
    #[inline(always)]
    pub fn of_object<T: 'static>() -> ValueKind {
        ValueKind::hashed(TypeId::of::<T>(), size_of::<T>(), PLAIN, OBJECTS)
    }

    /// Returns the kind of a type that is no number type, in one of `classes` classes from `first` on.
    #[inline(always)]
    fn hashed(of: TypeId, size: usize, first: u32, classes: u32) -> ValueKind {
        let mut hasher = TypeHasher::new(size as u64);
        of.hash(&mut hasher);
        let rows = (1 << ValueKind::BITS) / OTHERS - 1; // each has one kind of each class; row 0 has the numbers
        let hash = ((hasher.finish() >> 32) as u32) % (rows * classes);
        ValueKind((1 + hash / classes) * OTHERS + first + hash % classes)
    }

    /// Returns the kind as a number of [`ValueKind::BITS`] bits.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the kind with that number.
    #[inline]
    pub const fn from_bits(bits: u32) -> ValueKind {
        ValueKind(bits & ((1 << ValueKind::BITS) - 1))
    }

    /// Returns true if values of one kind may be taken as values of the other.
    #[inline]
    pub fn matches(self, other: ValueKind) -> bool {
        self == other || self.class().is_bytes_and(other.class()) || other.class().is_bytes_and(self.class())
    }

    /// Returns the class of the type.
    #[inline(always)]
    pub const fn class(self) -> KindClass {
        KindClass(if self.0 < NUMBERS { self.0 } else { NUMBERS + self.0 % OTHERS } as u8)
    }
}

impl KindClass {
    /// The number of number types. Their classes come first.
    pub const NUMBERS: u64 = NUMBERS as u64;

    /// The number of classes.
    pub const COUNT: u64 = (NUMBERS + OTHERS) as u64;

    /// Returns the class as a number below [`KindClass::COUNT`].
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.0 as u64
    }

    /// Returns the class with that number.
    #[inline]
    pub const fn from_bits(bits: u64) -> KindClass {
        KindClass(bits as u8)
    }

    /// Returns the number of a number type; `None` for other types.
    #[inline(always)]
    pub const fn of_numbers(self) -> Option<u64> {
        if (self.0 as u32) < NUMBERS { Some(self.0 as u64) } else { None }
    }

    /// Returns true for a class of objects.
    #[inline(always)]
    pub const fn is_object(self) -> bool {
        self.0 as u32 >= NUMBERS && (self.0 as u32 - NUMBERS) >= PLAIN
    }

    /// Returns what the type is called, as far as its class tells.
    pub fn name(self) -> &'static str {
        let other = if self.is_object() { OBJECT } else { OF_PROGRAM };
        NAMES.get(usize::from(self.0)).copied().unwrap_or(other)
    }

    /// Returns true if values of a type of one class may be values of a type of the other.
    #[inline]
    pub fn may_match(self, other: KindClass) -> bool {
        self == other || self.is_bytes_and(other) || other.is_bytes_and(self)
    }

    /// Returns true if this is the class of bytes, and the other one of plain values.
    #[inline(always)]
    const fn is_bytes_and(self, other: KindClass) -> bool {
        self.0 == 0 && !other.is_object()
    }
}

/// What a type is called that is no number type.
pub(crate) const OF_PROGRAM: &str = "a type of the program";
/// What an encoded object is called.
pub(crate) const OBJECT: &str = "an object";

impl fmt::Display for KindClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Point;

    #[test]
    fn number_types_differ_and_bytes_match_all() {
        let numbers = [
            ValueKind::of::<i8>(),
            ValueKind::of::<i16>(),
            ValueKind::of::<u16>(),
            ValueKind::of::<i32>(),
            ValueKind::of::<u32>(),
            ValueKind::of::<f32>(),
            ValueKind::of::<i64>(),
            ValueKind::of::<u64>(),
            ValueKind::of::<f64>(),
            ValueKind::of::<i128>(),
            ValueKind::of::<u128>(),
            ValueKind::of::<Point>(),
            ValueKind::of::<[f64; 3]>(),
        ];
        let objects = [ValueKind::of_object::<Point>(), ValueKind::of_object::<u8>()];
        for (object, other) in [(objects[0], objects[1]), (objects[1], objects[0])] {
            assert!(object.class().is_object() && object.matches(object) && !object.matches(other));
            assert_eq!(ValueKind::from_bits(object.bits()), object);
            for plain in numbers.iter().chain(&[ValueKind::BYTES]) {
                assert!(!object.matches(*plain) && !plain.matches(object));
                assert!(!object.class().may_match(plain.class()) && !plain.class().may_match(object.class()));
            }
        }
        assert_eq!(objects[0].class().to_string(), "an object");
        for (at, one) in numbers.iter().enumerate() {
            assert!(one.matches(ValueKind::BYTES) && ValueKind::of::<u8>().matches(*one));
            assert!(one.class().may_match(ValueKind::BYTES.class()));
            assert_eq!(ValueKind::from_bits(one.bits()), *one);
            assert_eq!(KindClass::from_bits(one.class().bits()), one.class());
            assert!(one.class().bits() < KindClass::COUNT);
            for (other_at, other) in numbers.iter().enumerate() {
                assert_eq!(one.matches(*other), at == other_at);
            }
        }
        let classes = (NUMBERS..1000).map(|bits| ValueKind::from_bits(bits).class().bits());
        let classes: std::collections::BTreeSet<u64> = classes.collect();
        assert!(classes.into_iter().eq(u64::from(NUMBERS)..KindClass::COUNT), "30 of other types");
        assert_eq!(ValueKind::of::<usize>(), ValueKind::of::<u64>());
        assert_eq!(ValueKind::of::<isize>(), ValueKind::of::<i64>());
        assert_eq!(ValueKind::of::<f64>().class().to_string(), "f64");
        assert_eq!(ValueKind::of::<Point>().class().to_string(), "a type of the program");
        assert!(!ValueKind::of::<f64>().class().may_match(ValueKind::of::<u64>().class()));
    }
}
