//! Checks that the workspace compiles with the oldest toolchain that it claims to support.

use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Context, Result, bail};
use cargo_metadata::semver::Version;
use std::process::Command;

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let packages = &shell.workspace.packages;
    let stated =
        packages.iter().find_map(|package| package.rust_version.clone()).context("no rust-version")?;
    let used = used_in(&shell.expect(Command::new("rustc").arg("--version"))?)?;
    if used < stated {
        bail!("rustc is {used}, the workspace says {stated}");
    }
    if (used.major, used.minor) == (stated.major, stated.minor) {
        return Ok(Outcome::Passed(format!("{stated} is the toolchain of all steps")));
    }
    check_with(shell, &stated)
}

/// Compiles with the stated toolchain, if another one is in use.
fn check_with(shell: &Shell, stated: &Version) -> Result<Outcome> {
    let mut probe = Command::new("rustc");
    // Without this variable, asking for the version of a missing toolchain would install it.
    probe.arg(format!("+{stated}")).arg("--version").env("RUSTUP_AUTO_INSTALL", "0");
    if !shell.run(&mut probe)?.success {
        return Ok(Outcome::Skipped(format!("rustup toolchain install {stated} --profile minimal")));
    }
    let mut check = shell.cargo(&format!("+{stated} check --workspace --all-targets"));
    shell.expect(check.env("CARGO_TARGET_DIR", shell.folder("oldest")?))?;
    Ok(Outcome::Passed(format!("compiles with {stated}")))
}

/// The version in `rustc 1.95.0 (59807616e 2026-04-14)`.
fn used_in(line: &str) -> Result<Version> {
    let version = line.split_whitespace().nth(1).context("rustc does not name its version")?;
    let release = version.split('-').next().unwrap_or(version);
    Ok(release.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_stable_and_nightly_are_understood() {
        assert_eq!(used_in("rustc 1.95.0 (59807616e 2026-04-14)\n").unwrap(), Version::new(1, 95, 0));
        assert_eq!(used_in("rustc 1.97.0-nightly (0 2026-06-01)\n").unwrap(), Version::new(1, 97, 0));
    }
}
