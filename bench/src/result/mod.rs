//! What was measured, how it is compared, and how it is shown.
//!
//! ```text
//! library      Tasuki, the other libraries, the machine itself
//! metric       the quantity that a figure measures
//! key          what a figure measures, and of which library
//! row          a figure as a row of the output and as JSON
//! target       what a figure should be
//! comparison   what a figure is compared with
//! table        the lines for users
//! ```

pub(crate) mod comparison;
pub(crate) mod key;
pub(crate) mod library;
pub(crate) mod metric;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod target;
