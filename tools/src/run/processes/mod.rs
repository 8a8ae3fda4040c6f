//! The processes of a job: what they are started with, what they are, and how they end.

pub(crate) mod binding;
pub(crate) mod environment;
pub(crate) mod keeper;
pub(crate) mod oom_kills;
pub(crate) mod proc_threads;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod rank_process;
pub(crate) mod spawn;
