//! The signature of a collective call: a number of 48 bits that is equal on all members if they are in equal calls.

use crate::call_kind::{CallKind, USER_DEFINED};
use crate::call_name::CallName;
use std::fmt;
use tasuki_core::base::{Cause, KindClass, ValueKind};
use tasuki_core::queue::reduction::Reduction;
use tasuki_schedule::shape::CollectiveKind;

/// The operation of a call, its root, the type of its values, its reduction and bytes, and whether it is nonblocking.
///
/// Number types are told apart exactly. Of the 20 bits of another type, four are in the place of the type, and ten are
/// mixed with the root. The bits above the signature have the rest: they enter the
/// [hash of all calls](crate::failure::call_history), but travel nowhere by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallSignature(u64);

/// Bits of a signature.
pub(crate) const SIGNATURE_BITS: u32 = 48;

/// The [code](CallName::code) of the call. A call that has only a name has its number in place of the root.
const CODE_AT: u32 = 43;
const NONBLOCKING: u64 = 1 << 42;
const ROOT_AT: u32 = 32;
const ROOT_MASK: u64 = (1 << 10) - 1;
const ELEMENT_AT: u32 = 27;
/// The places of types that are no number types, behind those of the number types.
const OTHER_TYPES: u64 = 16;
const _: () = assert!(1 + KindClass::NUMBERS + OTHER_TYPES <= 1 << (ROOT_AT - ELEMENT_AT));
const REDUCTION_AT: u32 = 23;
const AMOUNT_MASK: u64 = (1 << REDUCTION_AT) - 1;
/// Numbers of bytes below this are part of the signature. For larger ones it holds this bit and a hash of the number.
const MANY_BYTES: u64 = 1 << (REDUCTION_AT - 1);

impl CallSignature {
    #[inline]
    fn new(name: CallName, root: usize, of: ValueKind, reduction: u8, bytes: u64) -> CallSignature {
        let hash = u64::from(of.bits());
        let (element, hash, rest) = match of.class().of_numbers() {
            Some(number) => (number, 0, 0),
            None => (KindClass::NUMBERS + hash % OTHER_TYPES, hash / OTHER_TYPES, hash / OTHER_TYPES),
        };
        let root = (root as u64 ^ root as u64 >> 10 ^ hash) & ROOT_MASK;
        let amount = if bytes < MANY_BYTES { bytes } else { hash_of(bytes) | MANY_BYTES };
        let how = (1 + element) << ELEMENT_AT | u64::from(reduction) << REDUCTION_AT;
        CallSignature(rest << SIGNATURE_BITS | name.code() << CODE_AT | root << ROOT_AT | how | amount)
    }

    #[inline]
    pub(crate) fn of(kind: &CallKind) -> CallSignature {
        let CallKind { collective, root, bytes, of, reduction, .. } = *kind;
        CallSignature::new(CallName::Collective(collective), root, of, reduction, bytes as u64)
    }

    /// A call whose blocks differ in length. The lengths are compared by messages of their own.
    pub(crate) fn of_uneven<T: 'static>(kind: CollectiveKind, root: usize) -> CallSignature {
        CallSignature::new(CallName::Uneven(kind), root, ValueKind::of::<T>(), 0, 0)
    }

    /// A call that has only a name.
    pub(crate) fn of_name(name: CallName) -> CallSignature {
        let number = if let CallName::Named(number) = name { number } else { 0 };
        CallSignature(name.code() << CODE_AT | number << ROOT_AT)
    }

    /// Returns which call it is; none if the signature is of no call.
    pub(crate) fn name(self) -> Option<CallName> {
        CallName::of_code(self.bits() >> CODE_AT, self.root())
    }

    fn root(self) -> u64 {
        self.0 >> ROOT_AT & ROOT_MASK
    }

    pub(crate) fn nonblocking(self) -> CallSignature {
        CallSignature(self.0 | NONBLOCKING)
    }

    /// Takes the signature from the low bits of a word.
    pub(crate) fn in_word(word: u64) -> CallSignature {
        CallSignature(word & ((1 << SIGNATURE_BITS) - 1))
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0 & ((1 << SIGNATURE_BITS) - 1)
    }

    /// Returns the signature with the rest of the hash of the type, for the hash of all calls.
    #[inline]
    pub(crate) fn with_rest(self) -> u64 {
        self.0
    }

    /// Returns the class of the values' type; none for a call without values.
    fn class(self) -> Option<KindClass> {
        (self.0 >> ELEMENT_AT & 31).checked_sub(1).map(KindClass::from_bits)
    }

    /// Returns what differs between this call and another one that is written alike.
    pub(crate) fn hidden_difference(self) -> &'static str {
        if self.name().is_some_and(CallName::is_rooted) {
            "with another root, or with values of another type"
        } else {
            "with values of another type"
        }
    }

    /// Returns the bytes of both calls if their signatures differ only in the bytes, and both hold them.
    fn bytes_that_differ(self, other: CallSignature) -> Option<(u64, u64)> {
        let (ours, theirs) = (self.0 & AMOUNT_MASK, other.0 & AMOUNT_MASK);
        let is_all = self.0 & !AMOUNT_MASK == other.0 & !AMOUNT_MASK && ours != theirs;
        (is_all && (ours | theirs) & MANY_BYTES == 0).then_some((ours, theirs))
    }
}

#[inline]
fn hash_of(bytes: u64) -> u64 {
    bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REDUCTION_AT + 1)
}

impl fmt::Display for CallSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = if self.0 & NONBLOCKING != 0 { "i" } else { "" };
        let class = self.class();
        let of = class.map_or(String::new(), |class| format!(" of {class}"));
        let call = self.name().unwrap_or(CallName::Named(0));
        let name = call.text().unwrap_or("a call without a name");
        let collective = match call {
            CallName::Uneven(_) => return write!(f, "{i}{name}(uneven blocks{of})"),
            CallName::Collective(collective) if collective != CollectiveKind::Barrier => collective,
            _ => return write!(f, "{i}{name}()"),
        };
        let amount = self.0 & AMOUNT_MASK;
        let bytes =
            if amount & MANY_BYTES != 0 { "4 MiB or more".into() } else { crate::current_call::size(amount) };
        let is_number = class.is_some_and(|class| class.of_numbers().is_some());
        let root = if collective.is_rooted() && is_number {
            format!(", root {}", self.root())
        } else {
            String::new()
        };
        let by = match (self.0 >> REDUCTION_AT) as u8 & USER_DEFINED {
            0 => String::new(),
            USER_DEFINED => ", an operation of the program".into(),
            code => format!(", {}", Reduction::name_of(code - 1)),
        };
        write!(f, "{i}{name}({bytes}{of}{by}{root})")
    }
}

/// Returns the error that a member is in a different call than this one.
pub(crate) fn mismatch(member: usize, theirs: CallSignature, ours: CallSignature) -> Cause {
    if let Some((one, other)) = ours.bytes_that_differ(theirs) {
        return Cause::bytes_differ(member, one, other);
    }
    if theirs == ours {
        let is_hashed = ours.class().is_some_and(|class| class.of_numbers().is_none());
        let or = if is_hashed { ", or pass values of different types" } else { "" };
        let text = format!(
            "member {member} and this one are in {ours}, but have made different calls before{or}: members make the same \
             calls in the same order"
        );
        return Cause::mismatch(Some(member), text);
    }
    if theirs.to_string() == ours.to_string() {
        let text = format!("member {member} is in {theirs} {}", ours.hidden_difference());
        return Cause::mismatch(Some(member), format!("{text}: members make the same calls"));
    }
    let text = format!(
        "member {member} is in another call, {theirs}, while this one is in {ours}: members make the same calls in \
         the same order"
    );
    Cause::mismatch(Some(member), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_core::base::Rank;
    use tasuki_core::queue::reduction::{Combine, ElementType};

    fn of<T: 'static>(collective: CollectiveKind, root: usize, values: usize) -> CallSignature {
        CallSignature::of(&CallKind::of::<T>(collective, Rank(root), values))
    }

    #[test]
    fn calls_with_different_arguments_have_different_signatures() {
        use CollectiveKind::{Allgather, Allreduce, Bcast, Scan};
        let by = |how| Reduction::new(ElementType::F64, how);
        let reduced = |how| CallSignature::of(&CallKind::of::<f64>(Allreduce, Rank(0), 5).combined(by(how)));
        let all = [
            of::<u8>(Allreduce, 0, 8),
            of::<u64>(Allreduce, 0, 1),
            of::<f64>(Allreduce, 0, 1),
            of::<u8>(Allgather, 0, 8),
            of::<u8>(Scan, 0, 8),
            of::<u8>(Bcast, 0, 8),
            of::<u8>(Bcast, 33, 8),
            of::<u8>(Bcast, 1, 8),
            of::<u8>(Bcast, 1, 9),
            of::<u8>(Bcast, 1, 5 << 20),
            of::<u8>(Bcast, 1, 6 << 20),
            of::<u8>(Bcast, 1, 9).nonblocking(),
            reduced(Combine::Sum),
            reduced(Combine::Max),
            CallSignature::of_name(CallName::named("split")),
            CallSignature::of_name(CallName::named("dup")),
            CallSignature::of_uneven::<u8>(CollectiveKind::Gather, 0),
            CallSignature::of_uneven::<u8>(CollectiveKind::Gather, 1),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(one.bits() < 1 << SIGNATURE_BITS);
            assert_eq!(all.iter().position(|other| other == one), Some(at), "{one}");
            assert_eq!(CallSignature::in_word(7 << SIGNATURE_BITS | one.bits()), *one);
        }
    }

    /// Types of which no two are equal.
    struct Type<const N: usize>;

    #[test]
    fn types_of_the_program_have_hashes_of_twenty_bits() {
        let bcast = CallName::Collective(CollectiveKind::Bcast);
        let of = |kind: ValueKind| CallSignature::new(bcast, 5, kind, 0, 8);
        let others = ValueKind::of::<u128>().bits() + 100;
        for bit in 0..ValueKind::BITS {
            let [one, other] = [others, others ^ 1 << bit].map(|bits| of(ValueKind::from_bits(bits)));
            assert_ne!(one.with_rest(), other.with_rest(), "bit {bit}");
            assert_eq!(one.bits() == other.bits(), bit >= 14, "bit {bit}: the signature has 14");
        }
        let kinds = [ValueKind::of::<Type<0>>(), ValueKind::of::<Type<1>>(), ValueKind::of::<Type<2>>()];
        for (at, kind) in kinds.iter().enumerate() {
            assert_eq!(kinds.iter().position(|other| of(*other) == of(*kind)), Some(at));
            assert!(of(*kind).to_string().contains("a type of the program"));
        }
    }

    #[test]
    fn a_mismatch_names_both_calls() {
        let short = of::<u8>(CollectiveKind::Bcast, 3, 8);
        let long = of::<u8>(CollectiveKind::Bcast, 3, 9);
        assert_eq!(mismatch(1, short, long), Cause::bytes_differ(1, 8, 9));
        let sum = Reduction::new(ElementType::F64, Combine::Sum);
        let summed = CallKind::of::<f64>(CollectiveKind::Allreduce, Rank(0), 1).combined(sum);
        let text = mismatch(1, short, CallSignature::of(&summed)).to_string();
        assert!(text.contains("bcast(8 bytes of u8, root 3)"), "{text}");
        assert!(text.contains("allreduce(8 bytes of f64, Sum)"), "{text}");
    }
}
