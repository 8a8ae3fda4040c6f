//! What a schedule is to achieve: what each rank gives, and what it must have in the end. A contract says nothing of
//! the way, so an algorithm cannot agree with its own mistakes.

use super::step::BufferId;

/// Bytes of a buffer of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Which buffer.
    pub buffer: BufferId,
    /// Where they begin in it.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// From where bytes must have come: from the same distance within each of these, combined in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Whose contributions; one where nothing is combined.
    pub ranks: Vec<u32>,
    /// Out of which buffer.
    pub buffer: BufferId,
    /// Where the first byte lay there.
    pub offset: u64,
}

/// What one rank gives and gets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contract {
    /// What its program has written when it starts.
    pub gives: Vec<Span>,
    /// What its program finds when the start is over.
    pub gets: Vec<(Span, Origin)>,
    /// Whether the order of what is combined matters.
    pub in_order: bool,
    /// Whether all ranks must have started when a start is over.
    pub meets: bool,
}
