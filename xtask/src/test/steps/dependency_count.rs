//! Checks that the crate that users add stays light: it depends on few crates, on both architectures. The features for
//! plan files, pictures of schedules and objects, which are off by default, add some.

use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use std::collections::BTreeSet;

/// The limits that users are promised, by features.
const LIMITS: [(&str, usize); 2] = [("", 16), ("--all-features ", 32)];
const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let mut counts = Vec::new();
    for (features, most) in LIMITS {
        for target in TARGETS {
            let below = below_tasuki(shell, features, target)?.len();
            if below > most {
                bail!("{below} crates below tasuki {features}on {target}, at most {most}");
            }
            counts.push(format!("{below} of {most}"));
        }
    }
    Ok(Outcome::Passed(format!("crates below tasuki: {}", counts.join(", "))))
}

/// The crates, each with its version, that a program compiles for `tasuki` with these features.
pub(super) fn below_tasuki(shell: &Shell, features: &str, target: &str) -> Result<BTreeSet<String>> {
    let arguments = format!("tree --package tasuki {features}--edges no-dev --prefix none --target");
    let output = shell.expect(shell.cargo(&arguments).arg(target))?;
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
