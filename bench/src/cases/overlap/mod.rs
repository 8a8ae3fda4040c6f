//! Work of a rank beside communication that goes on without it.

pub(crate) mod collective_overlap;
pub(crate) mod copy_overlap;
pub(crate) mod stencil;
