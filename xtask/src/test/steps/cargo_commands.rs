//! Steps that consist of one cargo command, which reports its own errors.

use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::Result;

pub(super) fn rustfmt(shell: &Shell) -> Result<Outcome> {
    passes(shell, "fmt --all --check", &[])
}

pub(super) fn clippy(shell: &Shell) -> Result<Outcome> {
    passes(shell, "clippy --workspace --all-targets --all-features -- -D warnings", &[])
}

/// Offline: the documentation must build from the sources and their dependencies alone.
pub(super) fn documentation(shell: &Shell) -> Result<Outcome> {
    let strict_and_offline = [("RUSTDOCFLAGS", "-D warnings"), ("CARGO_NET_OFFLINE", "true")];
    passes(shell, "doc --no-deps --workspace", &strict_and_offline)
}

fn passes(shell: &Shell, arguments: &str, environment: &[(&str, &str)]) -> Result<Outcome> {
    shell.expect(shell.cargo(arguments).envs(environment.iter().copied()))?;
    Ok(Outcome::Passed(String::new()))
}
