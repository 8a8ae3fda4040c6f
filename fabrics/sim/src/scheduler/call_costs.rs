//! Costs of calls in virtual time, of the order that real processors show. Each cost is drawn from half of the figure
//! to one and a half of it, so that no two ranks run in step.

/// Posting an operation to the fabric.
pub(crate) const POST_NS: u64 = 100;
/// Polling for completions.
pub(crate) const POLL_NS: u64 = 40;
/// Reading a signal or a line, or checking for work.
pub(crate) const READ_NS: u64 = 20;
/// Looking up a line, a signal, a mapping or a connection.
pub(crate) const LOOKUP_NS: u64 = 20;
/// Reading the clock. Not zero, so that a loop that waits for a time ends.
pub(crate) const CLOCK_NS: u64 = 10;
/// Beginning to sleep.
pub(crate) const PAUSE_NS: u64 = 50;
/// From the event that wakes a thread to its first instruction.
pub(crate) const WAKE_NS: u64 = 300;
/// Starting or joining a thread.
pub(crate) const THREAD_NS: u64 = 5_000;
/// From the last byte of an operation to its signal, at most.
pub(crate) const SIGNAL_NS: u64 = 20;
/// How long a network card that is not coherent with the processor keeps a word, at most.
pub(crate) const NIC_HOLD_NS: u64 = 400;
/// The first pause of a thread that retries in a loop; each further pause may be twice as long ...
pub(crate) const RELAX_NS: u64 = 200;
/// ... up to this, so that a loop that never ends costs the simulator little.
pub(crate) const RELAX_MAX_NS: u64 = 100_000;
/// How long a fabric without room refuses operations, at most.
pub(crate) const STORM_NS: u64 = 20_000;
/// How far the clock is advanced when no event is left, before all threads check their conditions once more: far
/// enough that the engine publishes what its threads wait for.
pub(crate) const DEADLOCK_CHECK_NS: u64 = 2_000_000;
/// Number of calls that a rank may make, on average, after the run has failed; then its calls unwind. A rank can finish
/// what it was doing, but a loop that ignores errors ends soon.
pub(crate) const CALLS_AFTER_FAILURE: u64 = 10_000;
