//! Failures of a communicator: finds them and reports them to all members.
//!
//! After a collective call has failed on one member, the members no longer agree which call comes next: messages and
//! signals of the failed call may still be under way, and a later call could receive them. So a communicator
//! fails as a whole and for good. Every call on it that is under way or comes later returns an error that names the
//! first failure, on all members. The program continues with a communicator made by
//! [`recreate`](crate::communicator::Communicator::recreate).
//!
//! A call fails on a member if one of its steps does:
//!
//! - Members are in different calls. Each message and each signal of a call carries a hash of the calls so far
//!   ([`call_history`]). So a member that receives anything from a member in another call fails before it uses the
//!   data. Members that are in different calls and wait for each other receive nothing. So each member records its last
//!   calls in words that the others can read ([`call_log`]), or, where they cannot, passes notices on around a ring
//!   ([`call_notices`]), and a member that has waited for a millisecond compares.
//! - Members wait for each other in things that are in no log of calls: starts of plans, fuzzy barriers, calls of the
//!   job ([`job_call`]), the recreation of the communicator. Each publishes what it waits for ([`published_wait`]).
//! - A member has left the job: the wait for it ends, since its stage is published on the node; for plans, whose
//!   queues wait for nobody in particular, see [`departed`](crate::plan::end::departed).
//! - A member has died. This ends the whole job.
//! - An operation of the program panics.
//! - An argument is wrong. The member has not begun the call ([`refuse_as`](crate::communicator::Communicator)), but
//!   the others may be in it, and would wait for that member or meet it in its next call. If all members find that
//!   together, as when they prepare a plan, each notes the failure itself, and gets its own error.
//!
//! The member that fails calls [`FailureMonitor::report`]. It writes a record of its failure, raises the *notice* of
//! each other member, a signal of the communicator, and then raises the [alarm](tasuki_core::engine::AlarmHandler) of
//! each member's rank. A thread that enters a call reads its own notice. A thread that waits in a call reads it when
//! the alarm was raised. Nonblocking calls that are under way are ended by the thread that handles the alarm. Records
//! hold the time of the failure; the earliest one is the first failure. Where members cannot read each other's records,
//! the error says only that another member has failed.

pub(crate) mod call_history;
pub(crate) mod call_log;
pub(crate) mod call_notices;
pub(crate) mod job_call;
pub(crate) mod member;
pub(crate) mod monitor;
pub(crate) mod notice_line;
pub(crate) mod published_wait;
pub(crate) mod signature;
