//! The state of a running job, for `tasuki ps`, SIGQUIT and time-outs.

pub(crate) mod deadlock;
pub(crate) mod rank_names;
pub(crate) mod rank_queues;
pub(crate) mod snapshot;
