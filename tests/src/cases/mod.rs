//! The functions of the cases, one file for each promise of the library. The table
//! (`src/table.rs`) names each by its file, so all files are visible here.

pub mod collective;
pub mod commands;
pub mod jobs;
pub mod memory;
pub mod messaging;
pub mod operations;

mod kinds_of_memory;

pub use collective::*;
pub use commands::*;
pub use jobs::*;
pub use memory::*;
pub use messaging::*;
pub use operations::*;
