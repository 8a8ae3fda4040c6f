//! What was measured, compared and shown.
//!
//! ```text
//! key          what a figure is of, and who was measured
//! row          a figure as a row of the output and as JSON
//! target       what a figure should be
//! comparison   what it is held against
//! table        the lines for people
//! ```

pub(crate) mod comparison;
pub(crate) mod key;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod target;
