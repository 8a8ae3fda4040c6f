//! Memory that other ranks may reach: addresses, the range of a rank, what is registered in it.

mod address;
pub mod extent;
mod extent_table;
mod free_list;
pub mod layout;
mod mapped_range;
mod region;
mod registry;

pub use address::GlobalAddress;
pub use extent_table::{ExtentLocation, ExtentTable, Kind, Section};
pub use mapped_range::{MappedRange, PieceView};
pub use registry::{Registry, Usage, check_available};
