//! Planted faults: places in the sources that are wrong on purpose where `planted("NAME")` says so.
//! The checker for which a fault is meant must detect it; otherwise nothing shows that the checker
//! works.
//!
//! All faults are in one build of the checker, with `--cfg planted_faults`. A variable names the
//! active one, if any.

use super::shell::{Run, Shell};
use super::step::Outcome;
use crate::tree::Tree;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The checker that must detect a fault. The beginning of the fault's name selects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Checker {
    /// Any name but `asan_...`.
    Loom,
    /// `asan_...`
    Asan,
}

/// Folders that may contain faults.
const HOMES: &[&str] =
    &["core/src/", "fabrics/", "message/src/", "collective/src/", "schedule/src/", "tasuki/src/"];
const MARK: &str = "planted(\"";
/// The variable that names the active fault.
const VARIABLE: &str = "TASUKI_PLANTED_FAULT";

impl Checker {
    fn of(fault: &str) -> Checker {
        if fault.starts_with("asan_") { Checker::Asan } else { Checker::Loom }
    }
}

/// Activates each of the checker's faults in turn and runs the checker. `command` makes the command
/// that also runs without a fault, or the part of it that concerns this fault. `sees` tells from
/// the output that the checker detected the fault and did not just fail to compile.
pub(super) fn hunt(
    shell: &Shell,
    checker: Checker,
    command: fn(&Shell, &str) -> Result<Command>,
    sees: fn(&Run) -> bool,
) -> Result<Outcome> {
    let faults = faults(&Tree::read(shell.root())?, checker);
    if faults.is_empty() {
        bail!("no planted fault for {checker:?} in {HOMES:?}: nothing shows that it sees anything");
    }
    let mut unseen = Vec::new();
    for fault in &faults {
        let mut command = command(shell, fault)?;
        let run = shell.run(command.env(VARIABLE, fault))?;
        let seen = !run.success && sees(&run);
        shell.note(&format!("planted fault {fault}: {}", if seen { "seen" } else { "NOT SEEN" }))?;
        if !seen {
            unseen.push(fault.as_str());
        }
    }
    if !unseen.is_empty() {
        bail!("unseen: {}", unseen.join(", "));
    }
    Ok(Outcome::Passed(format!("{} of {} seen", faults.len(), faults.len())))
}

/// The names of the faults for a checker.
fn faults(tree: &Tree, checker: Checker) -> BTreeSet<String> {
    let sources = tree.rust().filter(|(file, _)| HOMES.iter().any(|home| file.below(home)));
    let names = sources.flat_map(|(file, _)| file.lines().flat_map(|(_, line)| names_in(line)));
    names.filter(|name| Checker::of(name) == checker).map(str::to_owned).collect()
}

fn names_in(line: &str) -> Vec<&str> {
    let is_comment = line.trim_start().starts_with("//");
    let behind_marks = line.split(MARK).skip(if is_comment { usize::MAX } else { 1 });
    behind_marks.filter_map(|rest| Some(rest.split_once('"')?.0)).collect()
}

/// Lets a cargo command build this repository's crates so that faults can be activated, with a
/// wrapper around the compiler. The checker uses this build also without a fault: two builds would
/// take twice as long.
pub(super) fn make_plantable(shell: &Shell, command: &mut Command) -> Result<()> {
    let path = shell.folder("xtask")?.join("planted.sh");
    fs::write(&path, "#!/bin/sh\nexec \"$@\" --cfg planted_faults\n")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    command.env("RUSTC_WORKSPACE_WRAPPER", path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_where_code_plants_them() {
        let code = "fn f() {\n    if !planted(\"no_fence\") {}\n    \
            if planted(\"asan_past_end\") || planted(\"late\") {}\n}\n\
            // planted(\"in_a_comment\")\n";
        let tree =
            Tree::of(&[("core/src/a.rs", code), ("xtask/src/a.rs", "const A: bool = planted(\"no\");")]);
        assert_eq!(faults(&tree, Checker::Loom).into_iter().collect::<Vec<_>>(), ["late", "no_fence"]);
        assert_eq!(faults(&tree, Checker::Asan).into_iter().collect::<Vec<_>>(), ["asan_past_end"]);
    }
}
