//! The ordinary tests. Uses nextest if it is installed, because it names tests that hang or leave
//! processes behind; otherwise cargo.

use crate::test::libtest::Tally;
use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};

/// The programs that tests start. A test builds them unless the variable says that they are built.
const PROGRAMS: &str = "build --workspace --bins --examples";
const BUILT: &str = "TEST_PROGRAMS_BUILT";
const NEXTEST: &str = "nextest run --workspace --no-fail-fast --config-file xtask/nextest.toml";
const PLAIN: &str = "test --workspace --lib --bins --tests --examples --no-fail-fast";

/// Unit tests, conformance, scenarios.
pub(super) fn all(shell: &Shell) -> Result<Outcome> {
    if !shell.run(&mut shell.cargo("nextest --version"))?.success {
        return counted(shell, PLAIN);
    }
    shell.expect(&mut shell.cargo(PROGRAMS))?;
    let output = shell.expect(shell.cargo(NEXTEST).env(BUILT, "1"))?;
    let summary = output.lines().rev().find(|line| line.contains("tests run:")).unwrap_or_default();
    Ok(Outcome::Passed(summary.rsplit("] ").next().unwrap_or_default().trim().to_owned()))
}

/// The examples of the documentation.
pub(super) fn in_documentation(shell: &Shell) -> Result<Outcome> {
    counted(shell, "test --doc --workspace")
}

fn counted(shell: &Shell, arguments: &str) -> Result<Outcome> {
    let tally = Tally::of(&shell.expect(&mut shell.cargo(arguments))?);
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(Outcome::Passed(format!("{} passed", tally.passed)))
}
