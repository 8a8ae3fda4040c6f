//! What can be wrong with a schedule.

use crate::{Location, Name};
use std::fmt;

/// An event of a schedule's starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultSite {
    /// Whose.
    pub rank: usize,
    /// In which start, from 0.
    pub start: usize,
    /// Which of its steps, from 0; `None`: its program.
    pub step: Option<usize>,
    /// Of the program: where its start ends, not where it begins.
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

/// Why a schedule is not to be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A step or an end waits for a signal, or raises one, that is not there, or raises it by nothing.
    NoSignal {
        /// Which.
        at: FaultSite,
    },
    /// A step names bytes that are not there.
    OutOfBuffer {
        /// Which.
        at: FaultSite,
        /// The place.
        place: Location,
        /// Bytes from there.
        bytes: u64,
    },
    /// A rank expects a signal to count something else than what is added to it in a start.
    WrongSum {
        /// Whose.
        rank: usize,
        /// Which.
        signal: Name,
        /// What the rank says.
        said: u64,
        /// What is added.
        added: u64,
    },
    /// What a step or an end waits for never comes: nobody adds so much.
    NeverMet {
        /// Which.
        at: FaultSite,
        /// The signal.
        signal: Name,
        /// How far it comes.
        reached: u64,
        /// How far it would have to.
        wanted: u64,
    },
    /// Steps wait for each other.
    Cycle {
        /// Each waits for the next, the last for the first.
        through: Vec<FaultSite>,
    },
    /// A step may be let go on by additions of a later start, where in the start before it waits for something that is
    /// then missing.
    Overtaken {
        /// What is let go on too early.
        at: FaultSite,
        /// The signal.
        signal: Name,
        /// What may be missing.
        missing: FaultSite,
        /// By whose addition.
        by: FaultSite,
    },
    /// Two accesses of the same bytes, of which one at least writes, in no order.
    Race {
        /// One.
        one: FaultSite,
        /// The other.
        other: FaultSite,
        /// The first of the bytes.
        place: Location,
    },
    /// A start may be over for one rank though another has not started.
    NotMet {
        /// Where it is over.
        end: FaultSite,
        /// What may not have happened.
        begin: FaultSite,
    },
    /// Bytes that a rank gets are not those that it should.
    WrongBytes {
        /// The first.
        place: Location,
        /// In which start.
        start: usize,
        /// What is there.
        is: String,
        /// What should be.
        should_be: String,
    },
}

/// The name of a buffer is known to the part only: its number does for a place.
fn show(place: &Location) -> String {
    format!("byte {} of buffer {} of rank {}", place.offset, place.buffer.index(), place.rank)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoSignal { at } => write!(f, "{at} names a signal that is not there, or adds nothing"),
            Fault::OutOfBuffer { at, place, bytes } => {
                write!(f, "{at} names {bytes} bytes from {} on, which are not all there", show(place))
            }
            Fault::WrongSum { rank, signal, said, added } => write!(
                f,
                "rank {rank} expects signal {signal:?} to count {said} in a start, but {added} are added"
            ),
            Fault::NeverMet { at, signal, reached, wanted } => {
                write!(f, "{at} waits for {wanted} of signal {signal:?}, which counts no more than {reached}")
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
                "{at} may go on without {missing}: {by} adds to signal {signal:?} as well, and may do so before"
            ),
            Fault::Race { one, other, place } => {
                write!(f, "{one} and {other} use {} in no order, and one of them writes", show(place))
            }
            Fault::NotMet { end, begin } => write!(f, "{end} may come before {begin}"),
            Fault::WrongBytes { place, start, is, should_be } => {
                write!(f, "after start {start}, {} is {is}, and should be {should_be}", show(place))
            }
        }
    }
}

impl std::error::Error for Fault {}
