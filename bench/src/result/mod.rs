//! What was measured, compared and shown.
//!
//! ```text
//! figure, figure_groups    what a figure is of; figures that may be compared with each other
//! row                      a figure as a row of the output and as JSON
//! library                  who was measured
//! target, comparison       what a figure should be, and what it is held against
//! table, library_table     the tables for people
//! ```

pub(crate) mod comparison;
pub(crate) mod figure;
pub(crate) mod figure_groups;
pub(crate) mod library;
pub(crate) mod library_table;
pub(crate) mod row;
pub(crate) mod table;
pub(crate) mod target;
