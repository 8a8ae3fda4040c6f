//! Memory that other ranks can access: global addresses, the address range of a rank, its registrations.

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
