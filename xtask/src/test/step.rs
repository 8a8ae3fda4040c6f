//! A step of the test, and what it came to.

use super::shell::Shell;
use anyhow::Result;

/// One named part of the whole test.
pub(super) struct Step {
    /// As shown, and as chosen on the command line.
    pub(super) name: &'static str,
    /// Whether it also runs with `--quick`.
    pub(super) quick: bool,
    /// Whether the whole test may pass without it, where what it needs cannot be had.
    pub(super) optional: bool,
    /// Does the work; an error is a failure.
    pub(super) run: fn(&Shell) -> Result<Outcome>,
}

/// What a step came to, with what there is to say of it.
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

    /// Runs the step, unless it is too slow for what was asked.
    pub(super) fn outcome(&self, shell: &Shell, quick_only: bool) -> Outcome {
        if quick_only && !self.quick {
            return Outcome::Skipped("left out by --quick".to_owned());
        }
        (self.run)(shell).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
    }
}

impl Outcome {
    /// In strict mode nothing may be skipped but optional steps.
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
