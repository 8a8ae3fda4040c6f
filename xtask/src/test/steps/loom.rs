//! Model checking: each file core/tests/loom_*.rs runs a structure that processors share through the
//! interleavings that loom can tell apart.

use crate::test::libtest::Tally;
use crate::test::planted::{self, Checker};
use crate::test::shell::{Run, Shell};
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use std::process::Command;

/// How often a thread may be interrupted where it could have gone on. Loom's authors find that two or three
/// show nearly all errors, and the time grows exponentially with it; a model may set its own.
const PREEMPTIONS_MAX: &str = "3";

/// The models hold.
pub(super) fn models(shell: &Shell) -> Result<Outcome> {
    let tally = Tally::of(&shell.expect(&mut command(shell, "*")?)?);
    if tally.passed == 0 || tally.idle > 0 {
        bail!("{} models ran, {} files core/tests/loom_*.rs had none", tally.passed, tally.idle);
    }
    Ok(Outcome::Passed(format!("{} models", tally.passed)))
}

/// The models fail when what they check is broken.
pub(super) fn planted_faults(shell: &Shell) -> Result<Outcome> {
    planted::hunt(shell, Checker::Loom, beside, sees_fault)
}

/// The models of the structure that a fault is in: its name begins as theirs does.
fn beside(shell: &Shell, fault: &str) -> Result<Command> {
    let (structure, _) = fault.split_once('_').unwrap_or((fault, ""));
    command(shell, &format!("{structure}*"))
}

/// Optimised, for there are many interleavings, but without the release profile's slow linking, and with
/// assertions.
fn command(shell: &Shell, models: &str) -> Result<Command> {
    let mut command = shell.cargo(&format!("test --release --package tasuki-core --test loom_{models}"));
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

/// Whether a model failed: cargo says this of tests that ran, and of those only, be it that one reported
/// failure, be it that its process aborted.
fn sees_fault(run: &Run) -> bool {
    run.output.contains("error: test failed, to rerun pass")
}
