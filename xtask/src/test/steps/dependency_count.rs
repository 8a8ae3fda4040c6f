//! Checks that the crate that users add stays light: it depends on few crates, with all features,
//! on both architectures.

use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use std::collections::BTreeSet;

/// The limit that users are promised.
const CRATES_MAX: usize = 25;
const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let mut most = 0;
    for target in TARGETS {
        let below = below_tasuki(shell, target)?;
        if below.len() > CRATES_MAX {
            bail!("{} crates below tasuki on {target}, at most {CRATES_MAX}", below.len());
        }
        most = most.max(below.len());
    }
    Ok(Outcome::Passed(format!("{most} crates below tasuki, at most {CRATES_MAX}")))
}

/// The crates, each with its version, that a program compiles for `tasuki` with all features.
pub(super) fn below_tasuki(shell: &Shell, target: &str) -> Result<BTreeSet<String>> {
    let arguments = "tree --package tasuki --all-features --edges no-dev --prefix none --target";
    let output = shell.expect(shell.cargo(arguments).arg(target))?;
    Ok(crates_in(&output))
}

/// Reads lines such as `libc v0.2.191` or `serde v1.0.229 (*)`; the first line is `tasuki` itself.
fn crates_in(tree: &str) -> BTreeSet<String> {
    let lines = tree.lines().filter(|line| line.split(' ').nth(1).is_some_and(|word| word.starts_with('v')));
    let crates = lines.skip(1).map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    crates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crate_counts_once_and_the_root_not_at_all() {
        let tree = "    Updating index\ntasuki v0.1.0 (/a)\na v1.0.0\nb v2.0.0 (proc-macro)\na v1.0.0 (*)\n";
        assert_eq!(crates_in(tree).into_iter().collect::<Vec<_>>(), ["a v1.0.0", "b v2.0.0"]);
    }
}
