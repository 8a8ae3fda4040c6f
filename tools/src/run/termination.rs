//! How a job is ended: which signals its processes get, and when.
//!
//! A process that is asked to end (by SIGTERM, or by the user's signal) has the time of `--grace`,
//! since a checkpoint may take seconds. Then it is killed. A second signal from the user leaves one
//! second.

use rustix::process::Signal;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time that the other ranks have after a death to end with their own errors.
const OWN_WORDS: Duration = Duration::from_millis(500);
/// From the user's second signal to killing.
const AFTER_SECOND: Duration = Duration::from_secs(1);
/// A signal that comes sooner after the first one counts as a repetition: GNU `timeout` signals its
/// child and then the child's group.
const SAME_REQUEST: Duration = Duration::from_millis(500);
/// From the user's signal to the report of ranks that have not ended.
const SILENCE: Duration = Duration::from_secs(1);
/// From SIGKILL to giving up on processes that the kernel cannot end.
const AFTER_KILL: Duration = Duration::from_secs(1);
/// Stands for a grace time that the clock cannot represent.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A step of ending a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Sends SIGTERM to processes that never joined: they do not learn of the death otherwise.
    TerminateUnjoined,
    /// Sends SIGTERM to all.
    Terminate,
    /// Reports the ranks that have not ended, and that SIGKILL follows at this moment.
    Remind(Instant),
    /// Sends SIGKILL to all.
    Kill,
    /// Stops waiting.
    GiveUp,
}

/// The remaining steps.
pub(crate) struct Termination {
    steps: VecDeque<(Instant, Step)>,
    began: Instant,
    /// The signal that asks the ranks to end, and its time; `None` if they are killed at once.
    pub(crate) asked: Option<(Signal, Instant)>,
    /// A second signal has come.
    pub(crate) is_hastened: bool,
}

impl Termination {
    /// After the death of a rank.
    pub(crate) fn after_death(now: Instant, grace: Duration) -> Termination {
        let ask = now + OWN_WORDS;
        let steps = [(now, Step::TerminateUnjoined), (ask, Step::Terminate)];
        Termination::of(steps, now, Some((Signal::TERM, ask)), grace)
    }

    /// For a job that must end although no rank has failed.
    pub(crate) fn at_once(now: Instant, grace: Duration) -> Termination {
        Termination::of([(now, Step::Terminate)], now, Some((Signal::TERM, now)), grace)
    }

    /// After the user's signal was forwarded.
    pub(crate) fn after_signal(signal: Signal, now: Instant, grace: Duration) -> Termination {
        let kill = later(now, grace);
        let remind = (grace > SILENCE + AFTER_SECOND).then_some((now + SILENCE, Step::Remind(kill)));
        Termination::of(remind, now, Some((signal, now)), grace)
    }

    /// Kills at once.
    pub(crate) fn kill(now: Instant) -> Termination {
        Termination::of([], now, None, Duration::ZERO)
    }

    fn of(
        steps: impl IntoIterator<Item = (Instant, Step)>,
        began: Instant,
        asked: Option<(Signal, Instant)>,
        grace: Duration,
    ) -> Termination {
        let kill = later(asked.map_or(began, |(_, when)| when), grace);
        let last = [(kill, Step::Kill), (kill + AFTER_KILL, Step::GiveUp)];
        Termination { steps: steps.into_iter().chain(last).collect(), began, asked, is_hastened: false }
    }

    /// Handles another signal from the user. If it is not a repetition of the first one, the ranks
    /// are killed in a second, or earlier if that was planned.
    pub(crate) fn second_signal(&mut self, now: Instant) -> bool {
        if now < self.began + SAME_REQUEST {
            return false;
        }
        let kill = now + AFTER_SECOND;
        if self.steps.iter().any(|(when, step)| *step == Step::Kill && *when > kill) {
            self.steps.retain(|(when, step)| *when <= kill && !matches!(step, Step::Remind(_)));
            self.steps.extend([(kill, Step::Kill), (kill + AFTER_KILL, Step::GiveUp)]);
            self.is_hastened = true;
        }
        true
    }

    /// When there is something to do next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.steps.front().map(|(when, _)| *when)
    }

    /// The next step that is due now.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Step> {
        let (when, step) = *self.steps.front()?;
        (when <= now).then(|| {
            self.steps.pop_front();
            step
        })
    }
}

fn later(moment: Instant, by: Duration) -> Instant {
    moment.checked_add(by).unwrap_or_else(|| moment + FOR_EVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    /// The steps until the job is over, with the time of each after the start.
    fn steps(mut termination: Termination, start: Instant) -> Vec<(Duration, Step)> {
        let mut all = Vec::new();
        while let Some(when) = termination.deadline() {
            all.push((when - start, termination.due(when).unwrap()));
        }
        all
    }

    fn kill(termination: Termination, start: Instant) -> Duration {
        steps(termination, start).into_iter().find(|(_, step)| *step == Step::Kill).unwrap().0
    }

    #[test]
    fn steps_come_due_in_order() {
        let start = Instant::now();
        let mut termination = Termination::after_death(start, GRACE);
        assert_eq!(termination.due(start), Some(Step::TerminateUnjoined));
        assert_eq!(termination.due(start), None);
        assert_eq!(termination.deadline(), Some(start + OWN_WORDS));
        let rest: Vec<Step> = steps(termination, start).into_iter().map(|(_, step)| step).collect();
        assert_eq!(rest, [Step::Terminate, Step::Kill, Step::GiveUp]);
    }

    #[test]
    fn processes_have_the_whole_grace_time() {
        let start = Instant::now();
        assert_eq!(kill(Termination::after_death(start, GRACE), start), OWN_WORDS + GRACE);
        assert_eq!(kill(Termination::at_once(start, GRACE), start), GRACE);
        assert_eq!(kill(Termination::after_signal(Signal::INT, start, GRACE), start), GRACE);
        assert_eq!(kill(Termination::kill(start), start), Duration::ZERO);
        assert!(kill(Termination::at_once(start, Duration::MAX), start) > 365 * 24 * 3600 * AFTER_SECOND);
    }

    #[test]
    fn a_second_signal_leaves_a_second_and_never_adds_time() {
        let start = Instant::now();
        let second = |ms, grace| {
            let mut termination = Termination::after_signal(Signal::TERM, start, grace);
            let is_second = termination.second_signal(start + Duration::from_millis(ms));
            (is_second, termination.is_hastened, kill(termination, start))
        };
        assert_eq!(second(0, GRACE), (false, false, GRACE));
        assert_eq!(second(499, GRACE), (false, false, GRACE));
        assert_eq!(second(500, GRACE), (true, true, Duration::from_millis(1500)));
        assert_eq!(second(9500, GRACE), (true, false, GRACE));
        let short = Duration::from_millis(700);
        assert_eq!(second(600, short), (true, false, short));
    }

    #[test]
    fn a_reminder_comes_unless_the_grace_time_is_short() {
        let start = Instant::now();
        let reminds =
            |termination| steps(termination, start).iter().any(|(_, step)| matches!(step, Step::Remind(_)));
        assert!(reminds(Termination::after_signal(Signal::INT, start, GRACE)));
        assert!(!reminds(Termination::after_signal(Signal::INT, start, Duration::from_secs(2))));
        let mut hastened = Termination::after_signal(Signal::INT, start, GRACE);
        hastened.second_signal(start + SAME_REQUEST);
        assert!(!reminds(hastened));
    }
}
