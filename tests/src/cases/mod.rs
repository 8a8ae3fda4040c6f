//! The bodies, one file for each thing that is promised.

pub mod atomics;
pub mod calls;
pub mod carrying;
pub mod children;
pub mod closing;
pub mod collectives;
pub mod contention;
pub mod copies;
pub mod failures;
pub mod flood;
pub mod footprint;
pub mod fuzzy;
pub mod handles;
pub mod idle;
pub mod jobs;
pub mod large;
pub mod memory;
pub mod messages;
pub mod midway;
pub mod misuse;
pub mod order;
pub mod own_memory;
pub mod owner_atomics;
pub mod pending;
pub mod poisoned;
pub mod promises;
pub mod queues;
pub mod registrations;
pub mod requests;
pub mod signals;
pub mod sleep;
pub mod successors;
pub mod threads;
pub mod transfers;
pub mod travelling;

mod areas;
