//! Breadth-first search of a generated graph whose vertices are distributed over all ranks.
//!
//! The owner of a vertex is the rank equal to its number modulo the number of ranks. When a rank searches a vertex,
//! it tells the owners of the neighbours about the visit. There are two methods ([`SearchMethod`]): *handlers*, each
//! called with some hundred visits while the search goes on; or *messages*, which all ranks exchange after each level.
//! Both search level by level and find the same distances from the root as a serial search ([`distances`]).
//!
//! | file | content |
//! |---|---|
//! | rmat | the edges, as a pure function of seed and number |
//! | part | a rank's vertices with their neighbours |
//! | parents | the parents of a rank's vertices, and the vertices to search next |
//! | visits | both methods to send visits to owners |
//! | search | the search from one root, level by level |
//! | serial | the same search without ranks |

mod parents;
mod part;
mod rmat;
mod search;
mod serial;
mod visits;

pub use parents::{Parents, Visit};
pub use part::Part;
pub use rmat::Rmat;
pub use search::{Search, SearchMethod};
pub use serial::distances;
pub use visits::handlers;
