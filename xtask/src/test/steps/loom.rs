//! Model checking: each test loom_* runs a structure that processors or threads share through all
//! interleavings that loom distinguishes.

use crate::test::libtest::Tally;
use crate::test::planted::{self, Checker};
use crate::test::shell::{Run, Shell};
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use std::process::Command;

/// How many times a thread may be preempted. Loom's authors find that two or three preemptions show
/// nearly all errors, and the time grows exponentially with the number. A model may set its own.
const PREEMPTIONS_MAX: &str = "3";

/// Checks that the models hold.
pub(super) fn models(shell: &Shell) -> Result<Outcome> {
    let tally = Tally::of(&shell.expect(&mut command(shell, "*")?)?);
    if tally.passed == 0 || tally.idle > 0 {
        bail!("{} models ran, {} tests loom_* had none", tally.passed, tally.idle);
    }
    Ok(Outcome::Passed(format!("{} models", tally.passed)))
}

/// Checks that the models fail with the planted faults.
pub(super) fn planted_faults(shell: &Shell) -> Result<Outcome> {
    planted::hunt(shell, Checker::Loom, beside, sees_fault)
}

/// The models of the structure that contains a fault: the names begin alike.
fn beside(shell: &Shell, fault: &str) -> Result<Command> {
    let (structure, _) = fault.split_once('_').unwrap_or((fault, ""));
    command(shell, &format!("{structure}*"))
}

/// Optimised, since there are many interleavings, with assertions, but without the release
/// profile's slow linking.
fn command(shell: &Shell, models: &str) -> Result<Command> {
    let packages = "--package tasuki-core --package tasuki-message --package tasuki-collective";
    let mut command = shell.cargo(&format!("test --release {packages} --test loom_{models}"));
    planted::make_plantable(shell, &mut command)?;
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", shell.folder("loom")?)
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS_MAX);
    Ok(command)
}

/// Returns true if a model failed. Cargo prints this line only for tests that ran, if one failed or
/// its process aborted.
fn sees_fault(run: &Run) -> bool {
    run.output.contains("error: test failed, to rerun pass")
}
