//! Errors of importing, exporting and drawing schedules.

use crate::Fault;
use std::fmt;

/// An error of importing, exporting or drawing a schedule.
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// # #[cfg(feature = "files")] {
/// use tasuki::schedule::{ScheduleError, json};
/// let error = json::parse("{}").expect_err("it is no plan file");
/// assert!(matches!(error, ScheduleError::Text(_)));
/// # }
/// ```
#[derive(Debug)]
pub enum ScheduleError {
    /// The text cannot be parsed: the place and the reason.
    Text(String),
    /// The operations of a GOAL text do not match each other.
    GoalMismatch(String),
    /// GOAL cannot express the schedule.
    NotExpressible(String),
    /// The text could not be written.
    Writing(std::io::Error),
    /// The schedule has too many ranks for a picture.
    Ranks {
        /// Ranks of the schedule.
        asked: usize,
        /// The most ranks of a picture.
        max: usize,
    },
    /// The schedule has too many steps for a picture.
    Steps {
        /// Steps of the schedule.
        asked: usize,
        /// The most steps of a picture.
        max: usize,
    },
    /// The schedule is faulty, so its dependencies are undefined.
    Wrong(Box<Fault>),
    /// The picture could not be drawn.
    Drawing(String),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Text(why)
            | ScheduleError::GoalMismatch(why)
            | ScheduleError::NotExpressible(why) => f.write_str(why),
            ScheduleError::Writing(error) => write!(f, "the text cannot be written: {error}"),
            ScheduleError::Ranks { asked, max } => {
                write!(f, "the schedule has {asked} ranks, but a picture shows at most {max}")
            }
            ScheduleError::Steps { asked, max } => {
                write!(f, "the schedule has {asked} steps, but a picture shows at most {max}")
            }
            ScheduleError::Wrong(fault) => write!(f, "the schedule is wrong: {fault}"),
            ScheduleError::Drawing(why) => write!(f, "the picture cannot be drawn: {why}"),
        }
    }
}

impl std::error::Error for ScheduleError {}
