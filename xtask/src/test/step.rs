//! A step of the test, and its outcome.

use super::shell::Shell;
use anyhow::Result;

/// One named part of the whole test.
pub(super) struct Step {
    /// The name, in the output and on the command line.
    pub(super) name: &'static str,
    /// True if it also runs with `--quick`.
    pub(super) quick: bool,
    /// True if the whole test may pass without this step, where its tools are not available.
    pub(super) optional: bool,
    /// Runs the step; an error is a failure.
    pub(super) run: fn(&Shell) -> Result<Outcome>,
}

/// The outcome of a step, with a detail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl Step {
    /// A step that always runs.
    pub(super) const fn quick(name: &'static str, run: fn(&Shell) -> Result<Outcome>) -> Step {
        Step { name, quick: true, optional: false, run }
    }

    /// A step that `--quick` leaves out.
    pub(super) const fn slow(name: &'static str, run: fn(&Shell) -> Result<Outcome>) -> Step {
        Step { name, quick: false, optional: false, run }
    }

    /// A slow step whose tool may be absent.
    pub(super) const fn optional(name: &'static str, run: fn(&Shell) -> Result<Outcome>) -> Step {
        Step { name, quick: false, optional: true, run }
    }

    /// Runs the step, unless it is too slow for the chosen mode.
    pub(super) fn outcome(&self, shell: &Shell, quick_only: bool) -> Outcome {
        if quick_only && !self.quick {
            return Outcome::Skipped("left out by --quick".to_owned());
        }
        (self.run)(shell).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
    }
}

impl Outcome {
    /// In strict mode, only optional steps may be skipped.
    pub(super) fn judged(self, step: &Step, strict: bool) -> Outcome {
        match self {
            Outcome::Skipped(why) if strict && !step.optional => {
                Outcome::Failed(format!("skipped ({why}), which CI=true does not permit"))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step::slow("step", |_| Ok(Outcome::Passed(String::new())));
    const OPTIONAL: Step = Step::optional("step", |_| Ok(Outcome::Passed(String::new())));

    #[test]
    fn a_skip_fails_in_strict_mode_unless_the_step_is_optional() {
        let skipped = || Outcome::Skipped("no tool".to_owned());
        assert!(matches!(skipped().judged(&STEP, true), Outcome::Failed(_)));
        assert_eq!(skipped().judged(&STEP, false), skipped());
        assert_eq!(skipped().judged(&OPTIONAL, true), skipped());
    }
}
