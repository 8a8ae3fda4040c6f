//! The least and the greatest of two values, and the one nearest to zero and the one farthest from it. Calls, plans and
//! commands all take their results from here, so that a result does not depend on the call, its algorithm or its root.
//!
//! Algorithms combine values in different orders. So each operation is associative, and least and greatest also
//! commute, to the bit: a NaN among the values gives one NaN, whose bits do not depend on which values were NaN; -0.0
//! is less than 0.0. A comparison with NaN is false, so a plain `if b < a { b } else { a }` is neither.
//!
//! No function has a branch, so that the compiler can vectorize loops over it.

/// Numbers that have an order, so that one of two is the lesser.
pub trait Ordered: Copy {
    /// The lesser of two, or NaN if one is NaN.
    fn least(self, other: Self) -> Self;
    /// The greater of two, or NaN if one is NaN.
    fn greatest(self, other: Self) -> Self;
}

/// Values with a distance from zero. A complex number has the sum of the absolute values of its parts.
pub(super) trait Distant: Copy {
    /// The one nearer to zero, or NaN if one is NaN. `self` if both are equally near.
    fn nearest(self, other: Self) -> Self;
    /// The one farther from zero, or NaN if one is NaN. `self` if both are equally far.
    fn farthest(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($type:ident: $distance:expr;)*) => {$(
        impl Ordered for $type {
            #[inline(always)]
            fn least(self, other: $type) -> $type {
                if other < self { other } else { self }
            }

            #[inline(always)]
            fn greatest(self, other: $type) -> $type {
                if other > self { other } else { self }
            }
        }

        impl Distant for $type {
            #[inline(always)]
            fn nearest(self, other: $type) -> $type {
                if $distance(other) < $distance(self) { other } else { self }
            }

            #[inline(always)]
            fn farthest(self, other: $type) -> $type {
                if $distance(other) > $distance(self) { other } else { self }
            }
        }
    )*};
}

integers! {
    i8: i8::unsigned_abs; i16: i16::unsigned_abs; i32: i32::unsigned_abs; i64: i64::unsigned_abs;
    u8: std::convert::identity; u16: std::convert::identity; u32: std::convert::identity; u64: std::convert::identity;
}

macro_rules! floats {
    ($($type:ident: $nan:literal;)*) => {$(
        impl Ordered for $type {
            #[inline(always)]
            fn least(self, other: $type) -> $type {
                // Each of the two comparisons is one instruction. Their results differ only for zeros of different
                // sign, whose "or" is -0.0, and for NaN.
                let one = if self < other { self } else { other };
                let same = if other < self { other } else { self };
                let bits = one.to_bits() | same.to_bits();
                $type::from_bits(if self.is_nan() | other.is_nan() { $nan } else { bits })
            }

            #[inline(always)]
            fn greatest(self, other: $type) -> $type {
                let one = if self > other { self } else { other };
                let same = if other > self { other } else { self };
                let bits = one.to_bits() & same.to_bits();
                $type::from_bits(if self.is_nan() | other.is_nan() { $nan } else { bits })
            }
        }

        impl Distant for $type {
            #[inline(always)]
            fn nearest(self, other: $type) -> $type {
                let nearest = if other.abs() < self.abs() { other } else { self };
                if self.is_nan() | other.is_nan() { $type::from_bits($nan) } else { nearest }
            }

            #[inline(always)]
            fn farthest(self, other: $type) -> $type {
                let farthest = if other.abs() > self.abs() { other } else { self };
                if self.is_nan() | other.is_nan() { $type::from_bits($nan) } else { farthest }
            }
        }

        impl Distant for [$type; 2] {
            #[inline(always)]
            fn nearest(self, other: [$type; 2]) -> [$type; 2] {
                let (ours, theirs) = (self[0].abs() + self[1].abs(), other[0].abs() + other[1].abs());
                let nearest = if theirs < ours { other } else { self };
                if ours.is_nan() | theirs.is_nan() { [$type::from_bits($nan); 2] } else { nearest }
            }

            #[inline(always)]
            fn farthest(self, other: [$type; 2]) -> [$type; 2] {
                let (ours, theirs) = (self[0].abs() + self[1].abs(), other[0].abs() + other[1].abs());
                let farthest = if theirs > ours { other } else { self };
                if ours.is_nan() | theirs.is_nan() { [$type::from_bits($nan); 2] } else { farthest }
            }
        }
    )*};
}

floats! { f32: 0x7fc0_0000; f64: 0x7ff8_0000_0000_0000; }

#[cfg(test)]
mod tests {
    use crate::queue::reduction::{Combine, ElementType, Reduction};
    use bytemuck::Pod;
    use std::collections::BTreeSet;
    use std::fmt::Debug;

    const EXTREMES: [Combine; 4] = [Combine::Min, Combine::Max, Combine::MinAbs, Combine::MaxAbs];

    /// Combines arrays, with the incoming values as the right and as the left operands, and each pair of values alone.
    /// All results must have equal bits.
    fn combined<T: Pod>(element: ElementType, how: Combine, left: &[T], right: &[T]) -> Vec<T> {
        assert_eq!(size_of::<T>() as u64, element.bytes());
        let reduction = Reduction::new(element, how).expect("the type has this operation");
        let with = |reduction: Reduction, into: &[T], from: &[T]| {
            let mut into = into.to_vec();
            reduction.combine(bytemuck::cast_slice_mut(&mut into), bytemuck::cast_slice(from));
            into
        };
        let all = with(reduction, left, right);
        let singles: Vec<T> =
            left.iter().zip(right).map(|(&left, &right)| with(reduction, &[left], &[right])[0]).collect();
        for other in [singles, with(reduction.with_incoming_first(true), right, left)] {
            assert!(bytes(&all) == bytes(&other), "{reduction}");
        }
        all
    }

    fn bytes<T: Pod>(values: &[T]) -> &[u8] {
        bytemuck::cast_slice(values)
    }

    /// The results of all ways to put brackets around the values.
    fn bracketings<T: Pod>(element: ElementType, how: Combine, values: &[T]) -> Vec<T> {
        if let [only] = values {
            return vec![*only];
        }
        let halves = (1..values.len()).map(|at| values.split_at(at));
        let of = |values| bracketings(element, how, values);
        halves
            .flat_map(|(left, right)| {
                let (left, right) = (of(left), of(right));
                let pairs: Vec<(T, T)> =
                    left.iter().flat_map(|&left| right.iter().map(move |&right| (left, right))).collect();
                pairs.into_iter().map(|(left, right)| combined(element, how, &[left], &[right])[0])
            })
            .collect()
    }

    fn permutations<T: Copy>(values: &[T]) -> Vec<Vec<T>> {
        if values.is_empty() {
            return vec![vec![]];
        }
        let first = |at: usize| {
            let mut rest = values.to_vec();
            let value = rest.remove(at);
            permutations(&rest).into_iter().map(move |rest| [vec![value], rest].concat())
        };
        (0..values.len()).flat_map(first).collect()
    }

    /// All orders and bracketings of the values give the bits of `expected`.
    fn always<T: Pod + Debug>(element: ElementType, how: Combine, values: &[T], expected: T) {
        for order in permutations(values) {
            let results: BTreeSet<Vec<u8>> =
                bracketings(element, how, &order).iter().map(|result| bytes(&[*result]).to_vec()).collect();
            assert_eq!(
                results,
                BTreeSet::from([bytes(&[expected]).to_vec()]),
                "{how:?} of {order:?}, not {expected:?}"
            );
        }
    }

    /// All triples of the values combine associatively, to the bit: with `commutes` in any order. Pairs give what the
    /// plain function `expected` gives.
    fn all_triples<T: Pod + Debug>(
        (element, how): (ElementType, Combine),
        values: &[T],
        commutes: bool,
        expected: impl Fn(T, T) -> T,
    ) {
        let count = values.len();
        let column =
            |period: usize| -> Vec<T> { (0..count.pow(3)).map(|at| values[at / period % count]).collect() };
        let (a, b, c) = (column(1), column(count), column(count * count));
        let combine = |left: &[T], right: &[T]| combined(element, how, left, right);
        let ab = combine(&a, &b);
        for ((&a, &b), ab) in a.iter().zip(&b).zip(&ab) {
            assert_eq!(bytes(&[*ab]), bytes(&[expected(a, b)]), "{how:?} of {a:?}, {b:?}: {ab:?}");
        }
        assert!(bytes(&combine(&ab, &c)) == bytes(&combine(&a, &combine(&b, &c))), "{how:?} of {element:?}");
        assert!(!commutes || bytes(&ab) == bytes(&combine(&b, &a)), "{how:?} of {element:?}");
    }

    macro_rules! float_tests {
        ($name:ident: $type:ident, $element:ident, $complex:ident, $nan:literal, $others:expr) => {
            mod $name {
                use super::*;

                const ELEMENT: ElementType = ElementType::$element;
                const CANONICAL: $type = $type::from_bits($nan);
                const INF: $type = $type::INFINITY;

                fn nans() -> [$type; 4] {
                    $others.map($type::from_bits)
                }

                #[test]
                fn nan_propagates_in_every_order() {
                    for (how, nan) in EXTREMES.into_iter().flat_map(|how| nans().map(|nan| (how, nan))) {
                        always(ELEMENT, how, &[3.0, 4.0, nan, 1.0], CANONICAL);
                        always(ELEMENT, how, &[INF, -INF, nan], CANONICAL);
                        always(ELEMENT, how, &[nan, nan], CANONICAL);
                        always(ELEMENT, how, &[nan, -0.0, -CANONICAL], CANONICAL);
                    }
                }

                #[test]
                fn zeros_and_infinities() {
                    always::<$type>(ELEMENT, Combine::Min, &[0.0, -0.0], -0.0);
                    always::<$type>(ELEMENT, Combine::Max, &[0.0, -0.0], 0.0);
                    always::<$type>(ELEMENT, Combine::Min, &[0.0, -0.0, 0.0, 1.0], -0.0);
                    always::<$type>(ELEMENT, Combine::Max, &[-0.0, 0.0, -0.0, -1.0], 0.0);
                    always::<$type>(ELEMENT, Combine::Min, &[3.0, INF, -INF, $type::MIN], -INF);
                    always::<$type>(ELEMENT, Combine::Max, &[3.0, INF, -INF, $type::MAX], INF);
                    always::<$type>(ELEMENT, Combine::Min, &[INF, INF], INF);
                    always::<$type>(ELEMENT, Combine::MinAbs, &[3.0, INF, -1.0, -INF], -1.0);
                    always::<$type>(ELEMENT, Combine::MaxAbs, &[3.0, -INF, $type::MAX], -INF);
                }

                #[test]
                fn of_equal_distances_the_left_operand_stays() {
                    for how in [Combine::MinAbs, Combine::MaxAbs] {
                        for (left, right) in [(2.0, -2.0), (-2.0, 2.0), (0.0, -0.0), (-0.0, 0.0), (INF, -INF)]
                        {
                            assert_eq!(bytes(&combined(ELEMENT, how, &[left], &[right])), bytes(&[left]));
                        }
                    }
                }

                #[test]
                fn all_triples_agree() {
                    let numbers = [-INF, $type::MIN, -1.0, -0.0, 0.0, $type::from_bits(1), 1.0, INF];
                    let values = [numbers.as_slice(), &nans()].concat();
                    let or_nan = |combine: fn($type, $type) -> bool| {
                        move |a: $type, b: $type| match a.is_nan() || b.is_nan() {
                            true => CANONICAL,
                            false if combine(a, b) => b,
                            false => a,
                        }
                    };
                    let min = or_nan(|a, b| b.total_cmp(&a).is_lt());
                    let max = or_nan(|a, b| b.total_cmp(&a).is_gt());
                    all_triples((ELEMENT, Combine::Min), &values, true, min);
                    all_triples((ELEMENT, Combine::Max), &values, true, max);
                    let (near, far) = (or_nan(|a, b| b.abs() < a.abs()), or_nan(|a, b| b.abs() > a.abs()));
                    all_triples((ELEMENT, Combine::MinAbs), &values, false, near);
                    all_triples((ELEMENT, Combine::MaxAbs), &values, false, far);
                }

                #[test]
                fn a_complex_number_with_a_nan_part_is_nan() {
                    const COMPLEX: ElementType = ElementType::$complex;
                    let [nan, other, ..] = nans();
                    for how in [Combine::MinAbs, Combine::MaxAbs] {
                        always(COMPLEX, how, &[[3.0, 1.0], [nan, 0.0], [1.0, 1.0]], [CANONICAL; 2]);
                        always(COMPLEX, how, &[[3.0, 1.0], [INF, other], [0.0, 0.0]], [CANONICAL; 2]);
                        let ties: [[$type; 2]; 4] = [[1.0, 2.0], [-2.0, 1.0], [3.0, 0.0], [-0.0, -3.0]];
                        for result in bracketings(COMPLEX, how, &ties) {
                            assert_eq!(result, ties[0], "{how:?}");
                        }
                    }
                    let values = [
                        [0.0, -0.0],
                        [1.0, -2.0],
                        [2.0, 1.0],
                        [INF, 0.0],
                        [$type::MAX; 2],
                        [nan, INF],
                        [0.0, other],
                    ];
                    let size = |[re, im]: [$type; 2]| re.abs() + im.abs();
                    let or_nan = |is_better: fn($type, $type) -> bool| {
                        move |a, b| match size(a).is_nan() || size(b).is_nan() {
                            true => [CANONICAL; 2],
                            false if is_better(size(a), size(b)) => b,
                            false => a,
                        }
                    };
                    all_triples((COMPLEX, Combine::MinAbs), &values, false, or_nan(|a, b| b < a));
                    all_triples((COMPLEX, Combine::MaxAbs), &values, false, or_nan(|a, b| b > a));
                }
            }
        };
    }

    float_tests! { f64s: f64, F64, C64, 0x7ff8_0000_0000_0000,
    [0x7ff8_0000_0000_0000, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0xffff_ffff_ffff_ffff] }
    float_tests! { f32s: f32, F32, C32, 0x7fc0_0000, [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xffff_ffff] }

    macro_rules! integer_tests {
        ($($name:ident: $type:ident, $element:ident, $size:expr;)*) => {$(
            #[test]
            fn $name() {
                const ELEMENT: ElementType = ElementType::$element;
                let values = [$type::MIN, $type::MIN + 1, 0, 1, 3, 3_i8.wrapping_neg() as $type, $type::MAX];
                let better = |is_better: fn($type, $type) -> bool| move |a, b| if is_better(a, b) { b } else { a };
                all_triples((ELEMENT, Combine::Min), &values, true, better(|a, b| b < a));
                all_triples((ELEMENT, Combine::Max), &values, true, better(|a, b| b > a));
                all_triples((ELEMENT, Combine::MinAbs), &values, false, better(|a, b| $size(b) < $size(a)));
                all_triples((ELEMENT, Combine::MaxAbs), &values, false, better(|a, b| $size(b) > $size(a)));
                always(ELEMENT, Combine::Min, &[3, $type::MIN, 4, 1], $type::MIN);
                always(ELEMENT, Combine::Max, &[3, $type::MAX, 4, 1], $type::MAX);
            }
        )*};
    }

    integer_tests! {
        extremes_of_i8: i8, I8, i8::unsigned_abs;
        extremes_of_i16: i16, I16, i16::unsigned_abs;
        extremes_of_i32: i32, I32, i32::unsigned_abs;
        extremes_of_i64: i64, I64, i64::unsigned_abs;
        extremes_of_u8: u8, U8, std::convert::identity;
        extremes_of_u16: u16, U16, std::convert::identity;
        extremes_of_u32: u32, U32, std::convert::identity;
        extremes_of_u64: u64, U64, std::convert::identity;
    }
}
