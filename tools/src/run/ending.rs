//! How a job is ended: what its processes are sent, and when.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What other ranks are given, after one died, to end with errors of their own.
const OWN_WORDS: Duration = Duration::from_millis(500);
/// From asking (SIGTERM) to killing.
const AFTER_TERM: Duration = Duration::from_millis(500);
/// From handing on the user's signal to killing.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// From killing to not waiting any more for what the kernel cannot end.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// SIGTERM to those that never joined: nobody tells them otherwise.
    AskStrangers,
    /// SIGTERM to all.
    Ask,
    /// SIGKILL to all.
    Kill,
    /// Wait no more.
    GiveUp,
}

/// The steps that are left.
pub(crate) struct Ending {
    steps: VecDeque<(Instant, Step)>,
}

impl Ending {
    /// A rank died: the others first.
    pub(crate) fn after_death(now: Instant) -> Ending {
        let (ask, kill) = (now + OWN_WORDS, now + OWN_WORDS + AFTER_TERM);
        Ending::of([(now, Step::AskStrangers), (ask, Step::Ask), (kill, Step::Kill)], kill)
    }

    /// The job must not go on, and nothing is wrong with any rank.
    pub(crate) fn at_once(now: Instant) -> Ending {
        let kill = now + AFTER_TERM;
        Ending::of([(now, Step::Ask), (kill, Step::Kill)], kill)
    }

    /// The user's signal has been handed on.
    pub(crate) fn after_signal(now: Instant) -> Ending {
        let kill = now + AFTER_SIGNAL;
        Ending::of([(kill, Step::Kill)], kill)
    }

    /// No patience at all.
    pub(crate) fn kill(now: Instant) -> Ending {
        Ending::of([(now, Step::Kill)], now)
    }

    fn of(steps: impl IntoIterator<Item = (Instant, Step)>, kill: Instant) -> Ending {
        let steps = steps.into_iter().chain([(kill + AFTER_KILL, Step::GiveUp)]).collect();
        Ending { steps }
    }

    /// When there is something to do next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.steps.front().map(|(when, _)| *when)
    }

    /// What is to be done by now.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Step> {
        let (when, step) = *self.steps.front()?;
        (when <= now).then(|| {
            self.steps.pop_front();
            step
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_due_in_order() {
        let start = Instant::now();
        let mut ending = Ending::after_death(start);
        assert_eq!(ending.due(start), Some(Step::AskStrangers));
        assert_eq!(ending.due(start), None);
        assert_eq!(ending.deadline(), Some(start + OWN_WORDS));
        let late = start + Duration::from_secs(9);
        let rest: Vec<_> = std::iter::from_fn(|| ending.due(late)).collect();
        assert_eq!(rest, [Step::Ask, Step::Kill, Step::GiveUp]);
        assert_eq!(ending.deadline(), None);
    }

    #[test]
    fn everything_is_killed_within_two_seconds() {
        let start = Instant::now();
        for ending in [Ending::after_death(start), Ending::at_once(start), Ending::after_signal(start)] {
            let kill = ending.steps.iter().find(|(_, step)| *step == Step::Kill).unwrap().0;
            assert!(kill - start < Duration::from_millis(1500));
        }
    }
}
