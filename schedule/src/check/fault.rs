//! Faults of a schedule.

use crate::{Location, Name};
use std::fmt;

/// An event in a start of a schedule.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Fault, FaultSite, Shape};
/// // Rank 1 passes on what it may not have got yet: `.after(..)` is missing.
/// fn too_early(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     b.copy(data.on(0), data.on(1));
///     b.copy(data.on(1), data.on(2));
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 3, 0, 64).build("too early", too_early);
/// let Err(fault) = schedule.check() else { panic!("it is wrong") };
/// let Fault::Race { one, .. } = *fault else { panic!("{fault}") };
/// let step: FaultSite = one;
/// assert!(step.to_string().starts_with("step"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultSite {
    /// The rank.
    pub rank: usize,
    /// The number of the start, from 0.
    pub start: usize,
    /// The index of the step; `None` for an event of the program.
    pub step: Option<usize>,
    /// For the program: true for the end of its start, false for the beginning.
    pub is_end: bool,
}

impl fmt::Display for FaultSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultSite { rank, start, step, is_end } = *self;
        match step {
            Some(step) => write!(f, "step {step} of rank {rank} in start {start}"),
            None if is_end => write!(f, "the end of start {start} at rank {rank}"),
            None => write!(f, "the beginning of start {start} at rank {rank}"),
        }
    }
}

/// Why a schedule is refused.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::{Builder, CollectiveKind, Fault, Shape};
/// // Rank 1 passes on what it may not have got yet: `.after(..)` is missing.
/// fn too_early(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     b.copy(data.on(0), data.on(1));
///     b.copy(data.on(1), data.on(2));
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 3, 0, 64).build("too early", too_early);
/// let fault: Box<Fault> = schedule.check().expect_err("it is wrong");
/// assert!(fault.to_string().contains("without an order between them"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A step or an end waits for a signal or raises a signal that does not exist, or raises it by 0.
    NoSignal {
        /// The step or end.
        at: FaultSite,
    },
    /// A step accesses bytes that do not exist.
    OutOfBuffer {
        /// The step.
        at: FaultSite,
        /// The location.
        place: Location,
        /// Length in bytes.
        bytes: u64,
    },
    /// The total declared for a signal differs from what steps add to it in a start.
    WrongSum {
        /// The rank that owns the signal.
        rank: usize,
        /// The signal.
        signal: Name,
        /// The declared total.
        said: u64,
        /// The sum of all additions.
        added: u64,
    },
    /// A step or an end waits for a count that is never reached.
    NeverMet {
        /// The step or end.
        at: FaultSite,
        /// The signal.
        signal: Name,
        /// The count that is reached.
        reached: u64,
        /// The count that is needed.
        wanted: u64,
    },
    /// Steps wait for each other in a cycle.
    Cycle {
        /// Each waits for the next, the last for the first.
        through: Vec<FaultSite>,
    },
    /// Additions of a later start may meet the trigger of a step in place of an addition of the
    /// step's own start, which may then be missing.
    Overtaken {
        /// The step that may begin too early.
        at: FaultSite,
        /// The signal.
        signal: Name,
        /// The addition that may be missing.
        missing: FaultSite,
        /// The event of a later start that adds in its place.
        by: FaultSite,
    },
    /// A race: two accesses of the same bytes without an order, at least one of which writes.
    Race {
        /// One access.
        one: FaultSite,
        /// The other access.
        other: FaultSite,
        /// The first of the bytes.
        place: Location,
    },
    /// A start may be over for one rank before another rank has started.
    NotMet {
        /// The end of the start.
        end: FaultSite,
        /// The start that may not have happened.
        begin: FaultSite,
    },
    /// A rank gets wrong bytes.
    WrongBytes {
        /// The first wrong byte.
        place: Location,
        /// The start.
        start: usize,
        /// The value found.
        is: String,
        /// The value expected.
        should_be: String,
    },
}

/// Only the part knows the name of a buffer, so a location shows its index.
fn show(place: &Location) -> String {
    format!("byte {} of buffer {} of rank {}", place.offset, place.buffer.index(), place.rank)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoSignal { at } => write!(f, "{at} names a signal that does not exist, or adds 0 to one"),
            Fault::OutOfBuffer { at, place, bytes } => {
                write!(
                    f,
                    "{at} accesses {bytes} bytes from {} on, which are not all in a buffer that it may access",
                    show(place)
                )
            }
            Fault::WrongSum { rank, signal, said, added } => write!(
                f,
                "rank {rank} declares that signal {signal:?} counts {said} in a start, but the steps add {added}"
            ),
            Fault::NeverMet { at, signal, reached, wanted } => {
                write!(
                    f,
                    "{at} waits until signal {signal:?} has counted {wanted}, but it counts at most {reached}"
                )
            }
            Fault::Cycle { through } => {
                write!(f, "steps wait for each other: ")?;
                for at in through {
                    write!(f, "{at}, which waits for ")?;
                }
                write!(f, "the first of these")
            }
            Fault::Overtaken { at, signal, missing, by } => write!(
                f,
                "{at} may happen before {missing} has added to signal {signal:?}: {by} also adds to it, \
                 and may come first"
            ),
            Fault::Race { one, other, place } => {
                write!(
                    f,
                    "{one} and {other} use {} without an order between them, and at least one of them writes",
                    show(place)
                )
            }
            Fault::NotMet { end, begin } => {
                write!(
                    f,
                    "{end} may come before {begin}, but the contract demands that all ranks start first"
                )
            }
            Fault::WrongBytes { place, start, is, should_be } => {
                write!(f, "after start {start}, {} holds {is}, and should hold {should_be}", show(place))
            }
        }
    }
}

impl std::error::Error for Fault {}
