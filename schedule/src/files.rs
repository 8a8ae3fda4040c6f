//! Schedules outside of a program: as files, as messages for a simulator, as pictures.
//!
//! ```text
//! json      all there is to a schedule, and back     goal      one start as GOAL text, and back
//! picture   who sends to whom when, what waits for what, as SVG
//! ```
//!
//! ```
//! use crate::{Operation, Shape};
//! use crate::{View, json, picture};
//!
//! let chain = Shape::new(Operation::Bcast, 3, 0, 64).build("my chain", |b| {
//!     let data = b.buffer("data", b.bytes());
//!     for pair in b.ranks().windows(2) {
//!         let heard = b.last_write(data.on(pair[0]));
//!         b.copy(data.on(pair[0]), data.on(pair[1])).after(heard);
//!     }
//! });
//! let mut text = Vec::new();
//! json::write(&chain, &mut text)?;
//! assert_eq!(json::parse(&String::from_utf8(text)?)?.ranks(), 3);
//! assert!(picture::draw(&chain, "my chain", View::Time)?.starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::print_stdout)]
#![forbid(unsafe_code)]

pub mod goal;
pub mod json;
pub mod picture;

pub use picture::View;

use std::fmt;
use crate::Fault;

/// Why there is no such text or picture.
#[derive(Debug)]
pub enum Error {
    /// The text cannot be read: where, and why.
    Text(String),
    /// Operations of a GOAL text do not fit each other.
    Unfit(String),
    /// GOAL has no words for the schedule.
    NoWords(String),
    /// A picture would have so many ranks, which are more than [`picture::RANKS_MAX`].
    Ranks(usize),
    /// A picture would have so many steps, which are more than [`picture::STEPS_MAX`].
    Steps(usize),
    /// The schedule is wrong, so that nobody can tell what waits for what.
    Wrong(Box<Fault>),
    /// The picture could not be drawn.
    Drawing(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Text(why) | Error::Unfit(why) | Error::NoWords(why) => f.write_str(why),
            Error::Ranks(ranks) => {
                write!(f, "{ranks} ranks are too many for a picture, of {} at most", picture::RANKS_MAX)
            }
            Error::Steps(steps) => {
                write!(f, "{steps} steps are too many for a picture, of {} at most", picture::STEPS_MAX)
            }
            Error::Wrong(fault) => write!(f, "wrong: {fault}"),
            Error::Drawing(why) => write!(f, "the picture cannot be drawn: {why}"),
        }
    }
}

impl std::error::Error for Error {}
