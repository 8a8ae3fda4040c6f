//! How members make a plan together: they tell each other where their parts lie, and agree.

mod block_counts;
pub(crate) mod layout;
mod local_view;
pub(crate) mod negotiate;
