//! Communication for programs of many processes: put, get, atomics and signals between the memories of ranks.
//!
//! A program is a function of a [`Job`]; how many ranks run it, and as what, is decided when it is started:
//!
//! ```
//! use tasuki::prelude::*;
//!
//! fn app(job: &Job) -> tasuki::Result<()> {
//!     let inbox = job.alloc::<u64>(1)?;                       // one word on every rank
//!     let arrived = job.signal()?;                            // a counter on every rank
//!     let next = job.rank_after(1);
//!     job.put_signal(inbox.on(next), &[u64::from(job.rank().0)], arrived.on(next), 1)?;
//!     arrived.wait_at_least(1)?;                              // the word is there now
//!     let previous = inbox.get(0)?;
//!     assert_eq!((previous + 1) % job.size() as u64, u64::from(job.rank().0));
//!     job.barrier()
//! }
//!
//! tasuki::local(4, app)?;                                     // four threads; fn main calls tasuki::main(app)
//! # Ok::<(), tasuki::Error>(())
//! ```
//!
//! | started by | is |
//! |---|---|
//! | `cargo run` | a job of one |
//! | `tasuki run -n 4 prog` | four processes |
//! | `mpiexec -n 4 prog`, of MPICH or Intel MPI | four processes of one host |
//! | `tasuki run -n 4 --threads prog`, [`local`] | four threads of one process |
//! | `tasuki run -n 4 --fabric sim --seed 7 prog`, [`sim`](sim()) | four simulated ranks in virtual time |
//!
//! Values of a program's own type travel like any others if they are plain bytes:
//!
//! ```
//! use tasuki::{Pod, Zeroable};
//!
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[bytemuck(crate = "tasuki::bytemuck")] // or depend on bytemuck, too
//! #[repr(C)]
//! struct Particle {
//!     place: [f64; 3],
//!     mass: f64,
//! }
//! assert_eq!(tasuki::bytemuck::bytes_of(&Particle { place: [1.0; 3], mass: 2.0 }).len(), 32);
//! ```
//!
//! Blocking calls end: with success, or with an [`Error`] that names the rank, the call, and what happened.
#![warn(clippy::print_stdout)]

mod collective;
mod command;
mod communicator;
mod handler;
mod job;
mod memory;
mod message;
pub mod nicam;
mod payload_signal;
mod queue;
mod reduction;
mod signal;
mod start;
mod threads;
mod tracing;

pub use bytemuck::{self, Pod, Zeroable};
pub use collective::chunked_plan::ChunkedPlan;
pub use collective::neighbourhood::Neighbourhood;
pub use collective::nonblocking::CollectiveRequest;
pub use collective::plan::{Plan, PlanReduceOp};
pub use command::{Combine, Command, Effect, Reducible, Trigger};
pub use communicator::{Communicator, Received, Slot};
pub use handler::call::Reply;
pub use handler::registry::{Handler, HandlerCx, HandlerName, Handlers};
pub use job::{Job, MemoryUsage};
pub use memory::array::Array;
pub use memory::one_sided::AtomicOp;
pub use memory::pointer::GlobalPtr;
pub use memory::registered::{RawRegistration, Registered};
pub use memory::transfer_request::Request;
pub use memory::word::Word;
pub use message::request::{RecvRequest, SendRequest};
pub use message::scope::Scope;
pub use payload_signal::{PayloadReader, PayloadSignal, PayloadWriter};
pub use queue::{Posted, Queue, QueueStats, RemoteQueue};
pub use reduction::bitwise::{And, Bool, Or, Xor};
pub use reduction::min_max_loc::{Located, MaxLoc, MinLoc};
pub use reduction::reduce_op::{Complex, Max, MaxAbs, Min, MinAbs, Product, ReduceOp, Sum};
pub use signal::{RemoteSignal, Signal};
pub use start::{Simulated, local, local_with, main, main_with, sim, sim_with};
pub use tasuki_collective::FuzzyBarrier;
pub use tasuki_core::base::log::Level as LogLevel;
pub use tasuki_core::base::{Blame, Cause, Error, Rank, Result};
pub use tasuki_core::engine::{After, Handle};
pub use tasuki_core::fabric::Capabilities;
pub use tasuki_core::segment::GlobalAddress;
pub use tasuki_fabric_sim::Sim;
pub use tracing::Span;

/// Collectives as data: schedules, what they are to achieve, the algorithms that make them, and the networks on which
/// they can be simulated.
///
/// ```
/// use tasuki::schedule::{Grid, Network, Operation, Shape, Topology, Builder};
///
/// fn chain(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     for pair in b.ranks().windows(2) {
///         let heard = b.last_write(data.on(pair[0]));
///         b.copy(data.on(pair[0]), data.on(pair[1])).after(heard);
///     }
/// }
/// let schedule = Shape::new(Operation::Bcast, 8, 0, 8192).build("my chain", chain);
/// let network = Network::new(Topology::Grid(Grid::torus(&[2, 2, 2])), 1);
/// assert!(schedule.simulate(&network)?.time.as_seconds() < 1e-5);
/// # Ok::<(), tasuki::schedule::Stuck>(())
/// ```
pub mod schedule {
    pub use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
    pub use tasuki_schedule::network::{
        Dragonfly, FatTree, Grid, Network, Parameters, Time, Topology, WrongTopology,
    };
    pub use tasuki_schedule::*;
    pub use tasuki_schedule::{CollectiveKind, Counts, NeighbourGraph, Placement, Shape};
}

/// What most programs use.
pub mod prelude {
    pub use crate::{
        After, Array, AtomicOp, Combine, Command, Communicator, FuzzyBarrier, GlobalPtr, Handle, HandlerCx,
        Handlers, Job, Max, Min, Pod, Queue, Rank, Signal, Slot, Sum,
    };
}
