//! The comparison of two variants of the compiled steps for one kind of calls, as `autotune.rs` makes it. It has a file
//! of its own because the communicator holds it, in its cache, and `autotune.rs` uses the communicator.

use crate::cached::entry::CachedSchedule;
use crate::call_kind::CallKind;
use tasuki_schedule::selection::Pieces;

/// Number of calls of a kind after which both variants are timed for the first time. The number doubles each time.
const FIRST_AFTER: u32 = 32;
/// Number of timed calls of each variant. Each time is from one call to the next, so there is one time less.
pub(super) const TIMED: u32 = 25;
/// Number of consecutive times that are added up. If the root alternates, long and short calls alternate, too.
const TOGETHER: usize = 4;
/// Number of sums that are compared; the longest ones are left out.
const COUNTED: usize = (TIMED as usize - 1) / TOGETHER * 2 / 3;

/// The comparison of the two variants for one kind of calls.
#[derive(Debug)]
pub(crate) struct VariantTrial {
    /// Number of calls until the next step of the comparison.
    pub(super) left: u32,
    /// Number of calls from the last comparison to the next one.
    interval: u32,
    /// True if calls use the variant with exposed buffers now.
    pub(super) is_exposed: bool,
    /// Nanoseconds from each timed call to the next: of the usual variant, and of the one that is tried.
    took: [Vec<u64>; 2],
    /// The time at which the last timed call began.
    pub(super) last_began: Option<u64>,
    /// The steps of the usual variant, while the other one is tried.
    pub(super) usual: Option<CachedSchedule>,
}

impl VariantTrial {
    /// Starts with the copying variant. Returns None if these calls cannot expose their buffers.
    pub(crate) fn of(kind: &CallKind, members: usize) -> Option<VariantTrial> {
        kind.schedules(members, Pieces::exposed_schedules).map(|_| VariantTrial {
            left: FIRST_AFTER,
            interval: FIRST_AFTER,
            is_exposed: false,
            took: Default::default(),
            last_began: None,
            usual: None,
        })
    }

    /// Counts a call that begins. Returns true if a step of the comparison is due before it.
    #[inline]
    pub(crate) fn count(&mut self, now: impl FnOnce() -> u64) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.usual.is_some() || self.left <= TIMED {
            self.note(now());
        }
        self.left == 0
    }

    /// Records the time from the begin of the previous call until now, which includes what the program did after it.
    fn note(&mut self, now: u64) {
        let began = self.last_began.replace(now);
        let variant = usize::from(self.usual.is_some());
        began.into_iter().for_each(|began| self.took[variant].push(now.saturating_sub(began)));
    }

    /// Returns the time of each variant, without the longest calls.
    pub(super) fn times(&self) -> [u64; 2] {
        self.took.each_ref().map(|took| {
            let mut sums: Vec<u64> = took.chunks_exact(TOGETHER).map(|some| some.iter().sum()).collect();
            sums.sort_unstable();
            sums.iter().take(COUNTED).sum()
        })
    }

    /// Returns the usual variant while the other one is tried; its plan is freed together with the present one.
    pub(crate) fn usual(&self) -> Option<&CachedSchedule> {
        self.usual.as_ref()
    }

    pub(super) fn rest(&mut self) {
        self.interval = self.interval.saturating_mul(2);
        (self.left, self.took, self.last_began) = (self.interval, Default::default(), None);
    }
}
