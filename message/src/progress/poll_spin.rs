//! The short spin of a task's poll before it registers its waker. A message that comes within some microseconds is then
//! received without a thread switch, which costs some 10 us.

use tasuki_core::base::sync::{AtomicBool, AtomicU32, Ordering};
use tasuki_core::engine::Worker;

/// How long a poll spins. A message on the way needs 1 to 2 us; a wake of the task by a thread that is awake costs more
/// than this.
const SPIN_NS: u64 = 5_000;
/// While spins are in vain, one in this number of polls spins nevertheless, so that the rank notices when that changes.
const TRIED_EVERY: u32 = 16;
/// How often to look before the clock is read, which takes as long as a few looks.
const LOOKS: u32 = 20;

/// Pauses between two looks of a spin. Returns false, as a look does that has found nothing.
#[inline(always)]
pub(crate) fn pause_in_spin() -> bool {
    std::hint::spin_loop();
    false
}

/// Returns true if a thread of the rank may spin: it takes no processor from others, and time is real.
pub(crate) fn lets_spin(worker: &Worker) -> bool {
    worker.has_processor() && worker.platform().lets_threads_sleep()
}

/// The spins of all polls of a rank. One poll at a time spins, so hundreds of tasks do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct PollSpin {
    is_spinning: AtomicBool,
    /// The last spin was in vain.
    was_in_vain: AtomicBool,
    polls: AtomicU32,
}

impl PollSpin {
    /// Looks again and again, for a short time, if it is likely to help. Returns true once `look` has.
    pub(crate) fn run(&self, worker: &Worker, look: impl Fn() -> bool) -> bool {
        if !lets_spin(worker) || !self.is_likely() || self.is_spinning.swap(true, Ordering::Relaxed) {
            return false;
        }
        let until_ns = worker.now_ns() + SPIN_NS;
        let found = loop {
            if (0..LOOKS).any(|_| look() || pause_in_spin()) {
                break true;
            }
            if worker.now_ns() >= until_ns {
                break false;
            }
        };
        self.note(found);
        self.is_spinning.store(false, Ordering::Relaxed);
        found
    }

    /// Returns true if a spin is likely to help: the last one has, or it is time to try again.
    pub(crate) fn is_likely(&self) -> bool {
        let is_tried = || self.polls.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIED_EVERY);
        !self.was_in_vain.load(Ordering::Relaxed) || is_tried()
    }

    /// Notes whether a spin has helped.
    pub(crate) fn note(&self, has_helped: bool) {
        self.was_in_vain.store(!has_helped, Ordering::Relaxed);
    }
}
