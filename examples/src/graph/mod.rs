//! Breadth-first search of a generated graph whose vertices lie on all ranks.
//!
//! A vertex belongs to the rank that its number names, modulo the ranks; who searches a vertex tells the owners of its
//! neighbours where they were found from. Two ways to tell them ([`Way`]): *handlers*, called with some hundred visits
//! at a time while the search goes on; or *messages*, exchanged by all ranks after each level. Both are level by level,
//! and find each vertex at the same distance from the root as a search by one processor does ([`distances`]).
//!
//! | file | holds |
//! |---|---|
//! | rmat | the edges, as a pure function of seed and number |
//! | part | a rank's vertices with their neighbours |
//! | found | where a rank's vertices were found from, and which are searched next |
//! | visits | both ways to tell owners |
//! | search | the search of one root, level by level |
//! | serial | the same by one processor |

mod found;
mod part;
mod rmat;
mod search;
mod serial;
mod visits;

pub use found::{Found, Visit};
pub use part::Part;
pub use rmat::Rmat;
pub use search::{Search, Way};
pub use serial::distances;
pub use visits::handlers;
