//! Runs core's unit tests under Miri, if a nightly toolchain has it. Tests that need the system say
//! `cfg_attr(miri, ignore = "...")`.

use crate::test::libtest::Tally;
use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    if !shell.run(&mut shell.cargo("+nightly miri --version"))?.success {
        return Ok(Outcome::Skipped("cargo +nightly miri is not installed".to_owned()));
    }
    let mut command = shell.cargo("+nightly miri test --package tasuki-core --lib");
    let tally = Tally::of(&shell.expect(command.env("CARGO_TARGET_DIR", shell.folder("miri")?))?);
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(Outcome::Passed(format!("{} passed", tally.passed)))
}
