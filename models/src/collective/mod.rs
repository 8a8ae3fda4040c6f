//! Calls that all ranks of a job make together.

mod meeting;

pub use meeting::{Agreement, Meeting};
