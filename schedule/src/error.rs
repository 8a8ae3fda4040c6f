//! Why a schedule has no such text or picture.

use crate::Fault;
use std::fmt;

/// Why there is no such text or picture.
#[derive(Debug)]
pub enum Error {
    /// The text cannot be read: where, and why.
    Text(String),
    /// Operations of a GOAL text do not fit each other.
    InvalidSchedule(String),
    /// GOAL has no words for the schedule.
    NoWords(String),
    /// The text could not be written.
    Writing(std::io::Error),
    /// A picture would have `asked` ranks, and has room for `max`.
    Ranks {
        /// How many there are.
        asked: usize,
        /// The most that there may be.
        max: usize,
    },
    /// A picture would have `asked` steps, and has room for `max`.
    Steps {
        /// How many there are.
        asked: usize,
        /// The most that there may be.
        max: usize,
    },
    /// The schedule is wrong, so that nobody can tell what waits for what.
    Wrong(Box<Fault>),
    /// The picture could not be drawn.
    Drawing(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Text(why) | Error::InvalidSchedule(why) | Error::NoWords(why) => f.write_str(why),
            Error::Writing(error) => write!(f, "it cannot be written: {error}"),
            Error::Ranks { asked, max } => {
                write!(f, "{asked} ranks are too many for a picture, of {max} at most")
            }
            Error::Steps { asked, max } => {
                write!(f, "{asked} steps are too many for a picture, of {max} at most")
            }
            Error::Wrong(fault) => write!(f, "wrong: {fault}"),
            Error::Drawing(why) => write!(f, "the picture cannot be drawn: {why}"),
        }
    }
}

impl std::error::Error for Error {}
