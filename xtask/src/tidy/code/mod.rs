//! Rules about Rust code.

pub(crate) mod examples;
pub(crate) mod lints;
pub(crate) mod root_types;
pub(crate) mod schedule_names;
pub(crate) mod silenced;
pub(crate) mod sync_pairs;
pub(crate) mod sync_table;
pub(crate) mod type_names;
pub(crate) mod unsafe_code;
