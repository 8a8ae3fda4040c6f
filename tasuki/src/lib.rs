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
//!     let sum = job.world().allreduce(&previous, Sum)?;         // the same result on all ranks
//!     assert_eq!(sum, (0..job.size() as u64).sum::<u64>());
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
//! | receive messages of unknown length | [`Communicator::recv_vec`], [`Communicator::irecv_vec`] |
//! | send and receive values of any serde type (cargo feature `serde`) | `Communicator::send_object`, `Communicator::recv_object`, `message::Object` |
//! | receive from ranks that I do not know, in bounded memory | [`Communicator::send_any`], [`Communicator::recv_any`]; [`Job::receive_queue`] for queues of any size |
//! | stream values of one type to one rank, without a message for each | [`message::channel_to`], [`message::channel_from`] |
//! | wait for all ranks | [`Communicator::barrier`] |
//! | broadcast, reduce, gather or exchange values | [`Communicator::bcast`], [`Communicator::allreduce`], [`Communicator::gather`], [`Communicator::alltoall`] |
//! | do that with numbers, arrays or vectors, in place, or with blocks of different lengths | [`Data`](collective::Data), [`ReduceBuffers`](collective::ReduceBuffers), [`GatherBuffers`](collective::GatherBuffers), [`Blocks`], [`Uneven`] |
//! | do that while I compute | [`Communicator::iallreduce`] and the other calls with `i`, [`Communicator::fuzzy_barrier`] |
//! | make the same collective call many times | [`Plan`], made by [`Communicator::allreduce_init`] and the other calls with `_init` |
//! | exchange values with neighbours on a grid or graph | [`Cartesian`], [`collective::Neighbourhood`] |
//! | make collective calls with a part of the ranks, or apart from the program | [`Communicator::split`], [`Communicator::dup`] |
//! | allocate memory that other ranks can access | [`Job::alloc`], or [`Job::register`] for a vector of the program |
//! | read or write the memory of another rank | [`Job::put`], [`Job::get`], [`Job::copy`] |
//! | change a word of another rank atomically | [`Job::fetch_add`], [`Job::compare_swap`], [`Job::atomic`] |
//! | combine values with those of another rank atomically | [`Job::accumulate`], [`Job::fetch_and_op`] |
//! | tell another rank that its data have arrived | [`Job::put_signal`] and [`Signal`], or [`onesided::PayloadSignal`] for at most 48 bytes |
//! | start operations when a signal is raised, without a rank | [`Command`] and [`Queue`] |
//! | run a function on the rank that has the data | [`Handler`], [`Handlers`] |
//! | use several threads in a rank | [`Job::threads`] |
//! | write my own collective algorithm | [`schedule`], [`Communicator::plan`] |
//! | test a program under delays, reordering and failures | [`sim`](sim()), [`Sim`] |
//! | find out why a call failed | [`Error`], [`Cause`](engine::Cause) |
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

mod data;
mod values;

mod member;
mod members;

mod memory;

mod signal;
mod split;

mod trigger;

mod remote_signal;

pub mod collective;

pub mod message;

mod payload_signal;

mod queue;

mod command;

mod handler;

mod threads;
mod tracing;

mod job_info;
pub mod nicam;

mod guide;
mod own_rank;
mod reduction;
mod request;
mod start;

#[doc(hidden)]
pub mod bindings;

pub mod engine;
pub mod onesided;
pub mod prelude;
pub mod schedule;

pub use bytemuck;
#[doc(no_inline)]
pub use bytemuck::{Pod, Zeroable};
pub use collective::blocks::{Blocks, Uneven};
pub use collective::cartesian::Cartesian;
pub use collective::dims_create::dims_create;
pub use collective::plan::Plan;
pub use command::Command;
pub use communicator::Communicator;
pub use handler::declaration::Handler;
pub use handler::registry::{HandlerCx, Handlers};
pub use job::Job;
pub use member::Member;
pub use memory::array::Array;
pub use memory::pointer::GlobalPtr;
pub use message::scope::Scope;
pub use message::slot::{Received, Slot};
pub use queue::Queue;
pub use reduction::reduce_op::Sum;
pub use request::{Request, block_on, wait_all, wait_any, wait_any_timeout};
pub use signal::Signal;
pub use start::{any_error, local, local_with, main, main_with, processes, sim, sim_with};
/// Why a call has failed, on which rank, in which call, and the way out.
///
/// ```
/// use tasuki::{ErrorKind, Rank};
/// tasuki::local(2, |job| {
///     let table = job.alloc::<u64>(4)?;
///     let error = job.put(table.on(Rank(7)), &[1]).expect_err("there are two ranks");
///     assert_eq!((error.kind(), error.rank()), (ErrorKind::Misuse, Some(job.rank())));
///     println!("{error}"); // with a hint, if there is a way out
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::base::Error;
/// What a program decides by when a call has failed.
///
/// ```
/// use std::time::Duration;
/// use tasuki::{ErrorKind, Slot};
/// tasuki::local(2, |job| {
///     let impatient = job.world().within(Duration::from_millis(1));
///     match impatient.recv(&mut [0_u64], job.rank_after(1), Slot(0)) {
///         Err(error) if error.kind() == ErrorKind::TimedOut => job.barrier(), // nobody has sent
///         outcome => outcome.map(drop),
///     }
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::base::ErrorKind;
/// The number of a participant of a job.
///
/// ```
/// use tasuki::Rank;
/// tasuki::local(3, |job| {
///     let squares = job.world().allgather(&job.rank().index().pow(2))?;
///     assert_eq!(squares[Rank(2).index()], 4);
///     assert_eq!(job.rank() == 0, job.rank() == Rank(0));
///     Ok(())
/// })?;
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::base::Rank;
/// What a program and its functions return.
///
/// ```
/// use tasuki::{Job, Sum};
/// fn sum_of_ranks(job: &Job) -> tasuki::Result<usize> {
///     job.world().allreduce(&job.rank().index(), Sum)
/// }
/// assert_eq!(tasuki::local(3, sum_of_ranks)?, [3, 3, 3]);
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_core::base::Result;
/// Which ranks [`sim()`] simulates, with which seed, on which machine.
///
/// ```
/// use tasuki::{Sim, Slot};
/// let run = Sim::seed(7).ranks(16); // the seed decides delays and order
/// let values = tasuki::sim(run, |job| {
///     let mut got = 0_usize;
///     job.world().sendrecv(&job.rank().0, job.rank_after(1), &mut got, job.rank_after(-1), Slot(0))?;
///     Ok(got)
/// })?;
/// assert_eq!(values.into_values()[1], 0);
/// # Ok::<(), tasuki::Error>(())
/// ```
#[doc(inline)]
pub use tasuki_fabric_sim::Sim;
