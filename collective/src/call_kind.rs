//! The kind of a collective call: what must be equal on all members, and what calls must have in common to use the same
//! compiled steps.

use tasuki_core::base::{Rank, ValueKind};
use tasuki_core::engine::executor::{COMBINED_MAX, PieceLengths};
use tasuki_core::queue::reduction::Reduction;
use tasuki_schedule::Schedule;
use tasuki_schedule::selection::{BLOCKS_BYTES_MAX, MEMBERS_MAX, PIECE_BYTES_MAX, Pieces};
use tasuki_schedule::shape::{CollectiveKind, Shape};

// The executor has room for the longest value that schedules let members combine on their own.
const _: () = assert!(COMBINED_MAX as u64 == tasuki_schedule::selection::VALUE_BYTES_MAX);
// A key has eleven bits for the root.
const _: () = assert!(MEMBERS_MAX <= 1 << 11);

/// Bits of the bytes of a call of types that are no numbers, and the largest number of bytes.
const OTHER_BYTES_BITS: u32 = 29;
const OTHER_BYTES_MAX: usize = (1 << OTHER_BYTES_BITS) - 1;

/// The reduction code of an operation of the program.
pub(crate) const USER_DEFINED: u8 = 15;

/// What calls must have in common to use the same compiled steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKind {
    pub(crate) collective: CollectiveKind,
    pub(crate) root: usize,
    /// Bytes of a member's values, or of a block.
    pub(crate) bytes: usize,
    pub(crate) value_bytes: usize,
    /// The type of the values.
    pub(crate) of: ValueKind,
    /// The code of the reduction, as in the [signature](crate::failure::signature).
    pub(crate) reduction: u8,
}

impl CallKind {
    /// The kind of a call with `values` values on each member, or in a block.
    #[inline]
    pub(crate) fn of<T: 'static>(collective: CollectiveKind, root: Rank, values: usize) -> CallKind {
        let (value_bytes, of) = (size_of::<T>(), ValueKind::of::<T>());
        let bytes = values * value_bytes;
        CallKind { collective, root: root.index(), bytes, value_bytes, of, reduction: 0 }
    }

    /// Returns the kind of a call that combines values by that reduction, or by an operation of the program.
    #[inline]
    pub(crate) fn combined(self, known: Option<Reduction>) -> CallKind {
        CallKind { reduction: reduction_code(known), ..self }
    }

    /// Returns the kind of a call whose values consist of so many elements each.
    #[inline]
    pub(crate) fn with_elements(self, elements: usize) -> CallKind {
        CallKind { value_bytes: self.value_bytes * elements, ..self }
    }

    /// Returns this kind as a word, without the root. None: the cache does not serve such calls. Calls with different
    /// number types, or different reductions, have separate entries, even if their steps are equal. So members that
    /// disagree about these wait for each other, and a wait finds the mismatch. Of other types the word has three bits;
    /// where these are equal, the tags of the steps differ.
    pub(crate) fn word(&self) -> Option<u64> {
        // A number type determines the bytes of a value. The bits of other types share the word with the bytes.
        let (value, other, bytes_max) = match self.of.class().of_numbers() {
            Some(number) => (COMBINED_MAX as u64 + 1 + number, 0, u32::MAX as usize),
            None => (self.value_bytes as u64, u64::from(self.of.bits()) % 8, OTHER_BYTES_MAX),
        };
        let fits = (1..=COMBINED_MAX).contains(&self.value_bytes) && self.bytes <= bytes_max;
        let how = (self.collective as u64) << 60 | value << 47 | u64::from(self.reduction) << 43;
        fits.then_some(how | other << OTHER_BYTES_BITS | self.bytes as u64)
    }

    /// Returns the word, with the root unless the execution has a variant for each root.
    pub(crate) fn key(&self, ranks: usize) -> Option<u64> {
        Some(self.word()? | if ranks == 2 { 0 } else { (self.root as u64) << 32 })
    }

    /// Returns the variant of the execution for this root.
    pub(crate) fn variant(&self, ranks: usize) -> usize {
        if ranks == 2 { self.root } else { 0 }
    }

    /// Returns the schedules of the execution: for each variant those of its pieces. None: calls of this kind cannot
    /// have compiled steps, or `of` returns none for a variant.
    pub(crate) fn schedules(
        &self,
        ranks: usize,
        of: impl Fn(&Pieces) -> Option<Vec<Schedule>>,
    ) -> Option<CallSchedules> {
        let roots = match self.collective.is_rooted() && ranks == 2 {
            true => 0..2,
            false => self.root..self.root + 1,
        };
        let cut = |root| Pieces::of(&CallKind { root, ..*self }.shape(ranks));
        let all = roots.map(|root| of(&cut(root)?)).collect::<Option<Vec<_>>>()?;
        Some(CallSchedules { all: all.concat(), pieces: piece_lengths(&cut(self.root)?) })
    }

    fn shape(&self, ranks: usize) -> Shape {
        let shape = Shape::new(self.collective, ranks, self.root, self.bytes as u64);
        Shape { value_bytes: self.value_bytes as u64, in_order: true, ..shape }
    }

    /// Returns true if members that reach each other's memory may compile steps for such calls.
    #[inline]
    pub(crate) fn can_be_compiled(&self, ranks: usize) -> bool {
        let is_little = self.collective.is_divisible()
            || (self.bytes as u64).saturating_mul(ranks as u64) <= BLOCKS_BYTES_MAX;
        let is_something = self.bytes > 0 || self.collective == CollectiveKind::Barrier;
        is_little && is_something && (2..=MEMBERS_MAX).contains(&ranks)
    }

    /// Returns the bytes that an execution for this kind uses on a member, approximately.
    pub(crate) fn memory(&self, ranks: usize) -> u64 {
        let shape = self.shape(ranks);
        let places = if ranks == 2 { 1 } else { 4 };
        places
            * match self.collective.is_divisible() {
                true => shape.bytes_of(0).min(PIECE_BYTES_MAX),
                false => shape.bytes_of_all(),
            }
    }
}

/// The schedules of an execution: for each variant one, or two if its values are cut into pieces of two lengths.
#[derive(Clone, Debug)]
pub(crate) struct CallSchedules {
    pub(crate) all: Vec<Schedule>,
    pub(crate) pieces: PieceLengths,
}

impl CallSchedules {
    /// Returns the schedules of a plan that is cut so.
    pub(crate) fn of_plan(pieces: &Pieces) -> CallSchedules {
        CallSchedules { all: pieces.schedules(), pieces: piece_lengths(pieces) }
    }
}

fn piece_lengths(pieces: &Pieces) -> PieceLengths {
    let Pieces { count, longer, shape } = pieces;
    let (bytes, value_bytes) = (shape.bytes_of(0) as usize, shape.value_bytes as usize);
    PieceLengths { count: *count as usize, longer: *longer as usize, bytes, value_bytes }
}

/// Returns a code for a reduction, and 0 for none.
#[inline]
pub(crate) fn reduction_code(known: Option<Reduction>) -> u8 {
    known.and_then(|known| known.builtin()).map_or(USER_DEFINED, |(_, how)| how as u8 + 1)
}
