//! EventKind calls cost in virtual time. Figures of the order that real processors show; each is drawn anew from half of
//! it to one and a half, so that no two ranks march in step.

/// Handing an operation to the fabric.
pub(crate) const POST_NS: u64 = 100;
/// Taking completions.
pub(crate) const POLL_NS: u64 = 40;
/// Looking at a signal, a line, or whether there is work.
pub(crate) const LOOK_NS: u64 = 20;
/// Asking for a place: a line, a signal, a mapping, the way to a peer.
pub(crate) const ASK_NS: u64 = 20;
/// Reading the clock. Not zero: a loop that waits for a moment must get there.
pub(crate) const CLOCK_NS: u64 = 10;
/// Going to sleep.
pub(crate) const PAUSE_NS: u64 = 50;
/// From the event that wakes a thread to its first instruction.
pub(crate) const WAKE_NS: u64 = 300;
/// Starting or joining a thread.
pub(crate) const THREAD_NS: u64 = 5_000;
/// From the last byte of an operation to its signal, at most.
pub(crate) const SIGNAL_NS: u64 = 20;
/// How long a card that is not coherent with the processor keeps a word to itself, at most.
pub(crate) const CARD_NS: u64 = 400;
/// The first of the breaks that a thread takes which retries in a loop; each break doubles the next ...
pub(crate) const RELAX_NS: u64 = 200;
/// ... up to this, so that a loop that never ends costs the simulator little.
pub(crate) const RELAX_MAX_NS: u64 = 100_000;
/// How long a fabric that has no room says so, at most.
pub(crate) const STORM_NS: u64 = 20_000;
/// How far the clock is put forward when nothing can happen, before everyone looks around once more: far enough that
/// the engine publishes what its threads wait for.
pub(crate) const LOOK_AROUND_NS: u64 = 2_000_000;
/// How many calls a rank may make, on average, after the run has failed; then its calls unwind. Enough to end what it
/// was doing, and too few for a loop that does not look at errors.
pub(crate) const CALLS_AFTER_FAILURE: u64 = 10_000;
