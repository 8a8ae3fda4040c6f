//! AddressSanitizer over the tests that run ranks as threads on shared memory.

use crate::test::libtest::Tally;
use crate::test::planted::{self, Checker};
use crate::test::shell::{Run, Shell};
use crate::test::step::Outcome;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Checks that nothing is read or written outside of allocated memory, and that no allocation
/// leaks.
pub(super) fn tests(shell: &Shell) -> Result<Outcome> {
    let tally = Tally::of(&shell.expect(&mut command(shell)?)?);
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(Outcome::Passed(format!("{} passed", tally.passed)))
}

/// Checks that the sanitizer reports its planted faults.
pub(super) fn planted_faults(shell: &Shell) -> Result<Outcome> {
    planted::hunt(shell, Checker::Asan, |shell, _| command(shell), sees_fault)
}

/// The stable compiler has the sanitizer but refuses it unless told to behave like its nightly. A
/// target must be named, so that build scripts and procedural macros are built without it.
fn command(shell: &Shell) -> Result<Command> {
    let mut command =
        shell.cargo("test --package tasuki-tests --test shm_threads --test shm_threads_failing");
    planted::make_plantable(shell, &mut command)?;
    command
        .args(["--target", &host(shell)?])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("ASAN_OPTIONS", "detect_stack_use_after_return=1")
        .env("CARGO_TARGET_DIR", shell.folder("asan")?);
    Ok(command)
}

/// The target triple of this machine.
fn host(shell: &Shell) -> Result<String> {
    let output = shell.expect(Command::new("rustc").arg("-vV"))?;
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

fn sees_fault(run: &Run) -> bool {
    run.output.contains("ERROR: AddressSanitizer")
}
