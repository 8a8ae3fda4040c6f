//! Tasuki moves data between the *ranks* of a parallel program: processes or threads with a number each. A rank can
//! put values into the memory of another rank, send messages, and make collective calls with all ranks.
//!
//! # A first program
//!
//! The program is a function of a [`Job`]. Each rank runs it:
//!
//! ```
//! use tasuki::prelude::*;
//!
//! fn app(job: &Job) -> tasuki::Result<()> {
//!     let (me, next) = (job.rank().0 as u64, job.rank_after(1));
//!     let inbox = job.alloc::<u64>(1)?;                         // one value on every rank
//!     let arrived = job.signal()?;                              // a counter on every rank
//!     job.put_signal(inbox.on(next), &[me], arrived.on(next), 1)?;
//!     arrived.wait_at_least(1)?;                                // the value of the previous rank is in place
//!     let previous = inbox.get(0)?;
//!     assert_eq!(previous, job.rank_after(-1).0 as u64);
//!
//!     let sum = job.world().allreduce(&[previous], Sum)?;       // the same result on all ranks
//!     assert_eq!(sum, [(0..job.size() as u64).sum::<u64>()]);
//!     Ok(())
//! }
//!
//! tasuki::local(4, app)?;                                       // in a test: four ranks, as threads
//! # Ok::<(), tasuki::Error>(())
//! ```
//!
//! The main function of the program passes `app` to [`main`](main()):
//!
//! ```no_run
//! # fn app(job: &tasuki::Job) -> tasuki::Result<()> { job.barrier() }
//! fn main() -> std::process::ExitCode {
//!     tasuki::main(app)
//! }
//! ```
//!
//! # How to start it
//!
//! The same executable runs in each of these ways:
//!
//! | command or call | the ranks are |
//! |---|---|
//! | `cargo run` | one process, a job of one rank |
//! | `tasuki run -n 4 target/release/prog` | four processes |
//! | `tasuki run -n 4 --threads target/release/prog`, [`local`] | four threads of one process |
//! | `tasuki run -n 4 --fabric sim --seed 7 target/release/prog`, [`sim`](sim()) | four simulated ranks in virtual time |
//! | `mpiexec -n 4 target/release/prog`, of MPICH or Intel MPI | four processes on one host |
//!
//! # From task to type
//!
//! | I want to | use |
//! |---|---|
//! | know my rank and the number of ranks | [`Job::rank`], [`Job::size`] |
//! | send and receive messages | [`Communicator::send`], [`Communicator::recv`] of [`Job::world`] |
//! | send and receive while I compute | [`Communicator::scope`] for borrowed buffers, [`Communicator::isend`] and [`Communicator::irecv`] for owned ones |
//! | wait for all ranks | [`Communicator::barrier`] |
//! | broadcast, reduce, gather or exchange values | [`Communicator::bcast`], [`Communicator::allreduce`], [`Communicator::gather`], [`Communicator::alltoall`] |
//! | do that while I compute | [`Communicator::iallreduce`] and the other calls with `i`, [`Communicator::fuzzy_barrier`] |
//! | make the same collective call many times | [`Plan`], made by [`Communicator::allreduce_init`] and the other calls with `_init` |
//! | exchange values with neighbours on a grid or graph | [`Communicator::grid`], [`Communicator::graph`] |
//! | make collective calls with a part of the ranks | [`Communicator::split`] |
//! | allocate memory that other ranks can access | [`Job::alloc`], or [`Job::register`] for a vector of the program |
//! | read or write the memory of another rank | [`Job::put`], [`Job::get`], [`Job::copy`] |
//! | change a word of another rank atomically | [`Job::fetch_add`], [`Job::compare_swap`], [`Job::atomic`] |
//! | tell another rank that its data have arrived | [`Job::put_signal`] and [`Signal`], or [`PayloadSignal`] for at most 48 bytes |
//! | start operations when a signal is raised, without a rank | [`Command`] and [`Queue`] |
//! | run a function on the rank that has the data | [`Handlers`], [`Job::call_with_reply`] |
//! | use several threads in a rank | [`Job::threads`] |
//! | write my own collective algorithm | [`schedule`], [`Communicator::plan`] |
//! | test a program under delays, reordering and failures | [`sim`](sim()), [`Sim`] |
//! | find out why a call failed | [`Error`], [`Cause`] |
//!
//! # Values of your own types
//!
//! A call takes values of any type that is plain bytes:
//!
//! ```
//! use tasuki::{Pod, Zeroable};
//!
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[bytemuck(crate = "tasuki::bytemuck")] // not needed in a crate that depends on bytemuck
//! #[repr(C)]
//! struct Particle {
//!     position: [f64; 3],
//!     mass: f64,
//! }
//! assert_eq!(tasuki::bytemuck::bytes_of(&Particle { position: [1.0; 3], mass: 2.0 }).len(), 32);
//! ```
//!
//! # Errors
//!
//! A blocking call returns: with success, or with an [`Error`] that names the rank, the call and the cause. When a rank
//! dies, the calls of the other ranks that depend on it end with an error.
#![warn(clippy::print_stdout)]

// The documentation lists the methods of a type in the order of these modules, so they are in the order of importance.
mod job;

mod communicator;

mod memory;

mod signal;

mod remote_signal;

mod collective;

mod message;

mod payload_signal;

mod queue;

mod command;

mod handler;

mod threads;
mod tracing;

mod job_info;
pub mod nicam;

mod reduction;
mod start;

pub use bytemuck::{self, Pod, Zeroable};
pub use collective::chunked_plan::ChunkedPlan;
pub use collective::neighbourhood::Neighbourhood;
pub use collective::nonblocking::CollectiveRequest;
pub use collective::plan::{Plan, PlanReduceOp};
pub use command::{Combine, Command, Effect, Reducible, Trigger};
pub use communicator::Communicator;
pub use handler::call::Reply;
pub use handler::handler_number::{Handler, HandlerName};
pub use handler::registry::{HandlerCx, Handlers};
pub use job::Job;
pub use job_info::MemoryUsage;
pub use memory::array::Array;
pub use memory::atomic_op::AtomicOp;
pub use memory::pointer::GlobalPtr;
pub use memory::registered::{RawRegistration, Registered};
pub use memory::transfer_request::Request;
pub use memory::word::Word;
pub use message::request::{RecvRequest, SendRequest};
pub use message::scope::Scope;
pub use message::slot::{Received, Slot};
pub use payload_signal::{PayloadReader, PayloadSignal, PayloadWriter};
pub use queue::{Posted, Queue, QueueStats, RemoteQueue};
pub use reduction::any_order::AnyOrder;
pub use reduction::bitwise::{And, Bool, Or, Xor};
pub use reduction::min_max_loc::{MaxLoc, MinLoc, ValueLoc};
pub use reduction::reduce_op::{Complex, Max, MaxAbs, Min, MinAbs, Product, ReduceOp, Sum};
pub use remote_signal::RemoteSignal;
pub use signal::Signal;
pub use start::{Simulated, any_error, local, local_with, main, main_with, sim, sim_with};
pub use tasuki_collective::FuzzyBarrier;
pub use tasuki_core::base::log::Level as LogLevel;
pub use tasuki_core::base::{Cause, Error, ErrorKind, ProgramError, Rank, Result};
pub use tasuki_core::engine::{After, Handle};
pub use tasuki_core::fabric::Capabilities;
pub use tasuki_core::segment::GlobalAddress;
pub use tasuki_fabric_sim::Sim;
pub use tracing::Span;

/// Collectives as data: schedules, the contracts that they must fulfil, the algorithms that make them, and models of
/// networks on which they can be simulated.
///
/// ```
/// use tasuki::schedule::{Builder, CollectiveKind, Grid, Network, Shape, SimulationError, Topology};
///
/// fn chain(b: &mut Builder) {
///     let data = b.buffer("data", b.bytes());
///     for pair in b.ranks().windows(2) {
///         let arrived = b.last_write(data.on(pair[0]));
///         b.copy(data.on(pair[0]), data.on(pair[1])).after(arrived);
///     }
/// }
/// let schedule = Shape::new(CollectiveKind::Bcast, 8, 0, 8192).build("my chain", chain);
/// let network = Network::new(Topology::Grid(Grid::torus(&[2, 2, 2])), 1);
/// assert!(schedule.simulate(&network)?.time.as_seconds() < 1e-5);
/// # Ok::<(), SimulationError>(())
/// ```
pub mod schedule {
    pub use tasuki_schedule::algorithm::{ALGORITHMS, Algorithm};
    pub use tasuki_schedule::network::{
        Dragonfly, FatTree, Grid, Network, Parameters, Time, Topology, WrongTopology,
    };
    pub use tasuki_schedule::{
        AddedStep, BYTES_MAX, BlockedStep, BufferDecl, BufferId, BufferKind, BufferSpan, Builder, COUNT_MAX,
        CheckReport, CollectiveKind, Contract, CostParameters, Counts, DATA, Dependency, EFFECTS_MAX, Edge,
        Event, EventNode, ExplicitPart, ExplicitStep, Fault, FaultSite, Forced, Graph, HostModel,
        InvalidSchedule, LAG_MAX, Location, Measurement, Name, NamedBuffer, NeighbourGraph, Origin,
        Placement, QueueId, RESULT, RankPart, ReceivedBlock, Region, START, Schedule, Selection, Shape,
        SignalDecl, SignalId, Simulation, SimulationError, SimulationProgress, SimulationReport, Step,
        StepEffect, StepId, StepKind, StepTrigger, started,
    };
}

/// The items that most programs use.
pub mod prelude {
    pub use crate::{
        After, Array, AtomicOp, Combine, Command, Communicator, FuzzyBarrier, GlobalPtr, Handle, HandlerCx,
        Handlers, Job, Max, Min, Pod, Queue, Rank, Signal, Slot, Sum,
    };
}
