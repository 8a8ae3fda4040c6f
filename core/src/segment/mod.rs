//! Memory that other ranks may reach: addresses, the range of a rank, what is registered in it.

mod address;
mod directory;
pub mod extent;
pub mod layout;
mod places;
mod registry;
mod window;
mod zone;

pub use address::GlobalAddress;
pub use directory::{Directory, Kind, Place, Section};
pub use registry::{Registry, Usage, check_available};
pub use window::{View, Window};
