//! BLACS, the communication layer of ScaLAPACK, over Tasuki's messages. Built as `libtasuki_blacs.so`; no MPI anywhere.
//!
//! A context is a grid of processes with a message context of its own. All data go by messages whose sends do not wait
//! for their receives: a send that finds none is buffered ([`library`]). The messages of a pair in one direction have
//! three kinds, each with a slot: point to point, and those of broadcasts and of combines in each scope. The messages of
//! a slot arrive in their order, and the calls of a scope are made in one order by all its processes, so no message needs
//! a number.
//!
//! | file | what |
//! |---|---|
//! | [`library`] | the rank of this process, its grids, errors and warnings |
//! | [`grid`] | a grid: its processes, scopes, settings |
//! | [`creation`] | how the processes of a new grid agree on its message context, without the others |
//! | [`environment`] | `blacs_pinfo` to `blacs_abort` |
//! | [`grids`] | `blacs_gridinit` to `blacs_barrier` |
//! | [`matrix`] | general and trapezoidal matrices, and how they are sent and received |
//! | [`element`] | the five types of elements |
//! | [`topology`] | who sends to whom in a broadcast |
//! | [`point_to_point`], [`broadcast`], [`combine`] | the calls for matrices |
//! | [`symbols`] | their names in C and Fortran |

pub mod broadcast;
pub mod combine;
pub mod creation;
pub mod element;
pub mod environment;
pub mod grid;
pub mod grids;
pub mod library;
pub mod matrix;
pub mod point_to_point;
pub mod symbols;
pub mod topology;
