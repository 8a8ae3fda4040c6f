//! How members make a plan together: they exchange the addresses of their parts, and agree on counts.

mod block_counts;
pub(crate) mod layout;
mod local_view;
pub(crate) mod negotiate;
pub(crate) mod select;
