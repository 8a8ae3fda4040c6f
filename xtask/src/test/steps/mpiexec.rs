//! Tasuki programs under other projects' launchers that speak PMI-1: cases of the conformance
//! suite, and what a launcher passes on. `tests/tests/shm/shm_pmi.rs` has similar tests with a process
//! manager of this repository, which can also misbehave.

use crate::peers::{self, Launcher};
use crate::test::shell::{Run, Shell};
use crate::test::step::Outcome;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Memory, atomics, signals with their bytes, messages and collective calls: what a launcher's way
/// of starting ranks and placing them on processors could disturb.
const FAMILIES: &[&str] = &["A", "C", "D1", "G"];
/// Two ranks, and more than some machines have processors.
const RANKS: &[usize] = &[2, 4];
/// Most cases take a hundredth of a second; one that moves gigabytes takes a minute.
const LIMIT: Duration = Duration::from_secs(150);

/// Names of cases that move gigabytes begin like this. Only the first one runs, under one launcher:
/// the way of starting ranks does not affect the bytes, and a virtual machine takes a minute to
/// supply the memory.
const LARGE: &str = "a8_";

/// A case as its program lists it.
#[derive(PartialEq, Eq, Debug)]
struct Listed {
    name: String,
    least: usize,
    most: usize,
}

/// Where the programs are, and which cases they run.
struct Suite {
    programs: PathBuf,
    cases: Vec<Listed>,
}

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let launchers = match peers::launchers(&shell.workspace) {
        Ok(launchers) => launchers,
        Err(error) => return Ok(Outcome::Skipped(format!("cargo xtask peers mpich intel: {error:#}"))),
    };
    let suite = Suite::build(shell)?;
    let (mut seen, mut runs, mut failed) = (BTreeSet::new(), 0, Vec::new());
    for (place, launcher) in launchers.iter().enumerate() {
        for (case, ranks) in suite.runs(place == 0) {
            runs += 1;
            seen.insert(&case.name);
            if let Err(error) = suite.case(shell, launcher, &case.name, ranks) {
                failed.push(format!("{} on {ranks} ranks of {}: {error:#}", case.name, launcher.name()));
            }
        }
        hands_on(shell, launcher, &suite.programs.join("ranks_that_echo"))
            .with_context(|| launcher.name())?;
        ends_with(shell, launcher, &suite.programs.join("conformance")).with_context(|| launcher.name())?;
    }
    if !failed.is_empty() {
        bail!("{} of {runs} runs: {}", failed.len(), failed.join("; "));
    }
    let names: Vec<&str> = launchers.iter().map(Launcher::name).collect();
    Ok(Outcome::Passed(format!("{} cases, {runs} runs under {}", seen.len(), names.join(" and "))))
}

impl Suite {
    fn build(shell: &Shell) -> Result<Suite> {
        shell.expect(&mut shell.cargo("build --package tasuki-tests --bins"))?;
        let programs = shell.workspace.target_directory.as_std_path().join("debug");
        let mut list = Command::new(programs.join("conformance"));
        let cases = listed(&shell.expect(list.arg("--list").args(FAMILIES))?)?;
        Ok(Suite { programs, cases })
    }

    /// Pairs each case with a launcher (the first or another one) and with each number of ranks
    /// that the case allows.
    fn runs(&self, is_first: bool) -> impl Iterator<Item = (&Listed, usize)> {
        let large = self.cases.iter().filter(|case| case.name.starts_with(LARGE)).take(usize::from(is_first));
        let others = self.cases.iter().filter(|case| !case.name.starts_with(LARGE));
        large.chain(others).flat_map(|case| {
            let counts = RANKS.iter().filter(|ranks| (case.least..=case.most).contains(ranks));
            counts.map(move |&ranks| (case, ranks))
        })
    }

    fn case(&self, shell: &Shell, launcher: &Launcher, name: &str, ranks: usize) -> Result<()> {
        let mut command = launcher.command(ranks);
        command.arg(self.programs.join("conformance")).arg(name);
        let run = shell.run_within(LIMIT, Stdio::null(), &mut command)?;
        ensure!(run.success, "{}", first_line(&run));
        Ok(())
    }
}

/// The cases in lines `NAME LEAST MOST`.
fn listed(lines: &str) -> Result<Vec<Listed>> {
    let case = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, least, most) = (words.next()?, words.next()?, words.next()?);
        Some(Listed { name: name.to_owned(), least: least.parse().ok()?, most: most.parse().ok()? })
    };
    let cases = lines.lines().map(|line| case(line).with_context(|| format!("{line:?} is no case")));
    let cases = cases.collect::<Result<Vec<_>>>()?;
    ensure!(!cases.is_empty(), "no case of {FAMILIES:?}");
    // A case that runs on no number of ranks would be left out silently.
    let out = |case: &&Listed| !RANKS.iter().any(|ranks| (case.least..=case.most).contains(ranks));
    ensure!(cases.iter().find(out).is_none(), "cases for none of {RANKS:?} ranks: {cases:?}");
    Ok(cases)
}

/// The first line of the output; the step's log has the rest.
fn first_line(run: &Run) -> &str {
    run.output.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}

/// L1: arguments, environment and standard input arrive, lines do not mix, and the launcher exits
/// with the code of the one rank that fails.
fn hands_on(shell: &Shell, launcher: &Launcher, program: &Path) -> Result<()> {
    const RANKS: usize = 4;
    const LINES: usize = 100;
    let input = shell.folder("xtask/mpiexec")?.join("input");
    let fed: String = (0..100).map(|line| format!("fed line {line}\n")).collect();
    fs::write(&input, &fed)?;
    let mut command = launcher.command(RANKS);
    command.arg(program).args(["two words", "'quoted'"]).env("HANDED", "a variable");
    let run = shell.run_within(LIMIT, File::open(&input)?.into(), &mut command)?;
    let words = r#"["two words", "'quoted'"] "a variable""#;
    let lines_written = (0..RANKS)
        .flat_map(|rank| (0..LINES).map(move |line| format!("rank {rank} of {RANKS}, line {line}: {words}")));
    let lines_read = fed.lines().map(|line| format!("rank 0 read {line:?}"));
    let said: BTreeSet<&str> = run.output.lines().collect();
    for line in lines_written.chain(lines_read) {
        ensure!(said.contains(line.as_str()), "no line {line:?}");
    }
    ensure!(run.code == Some(7), "the code is {:?}, not 7 as the last rank's", run.code);
    Ok(())
}

/// L1: a job that fails says why, and its launcher reports failure.
fn ends_with(shell: &Shell, launcher: &Launcher, program: &Path) -> Result<()> {
    let mut command = launcher.command(4);
    let run = shell.run_within(LIMIT, Stdio::null(), command.arg(program).arg("an_error_ends_all_of_4"))?;
    ensure!(!run.success && run.output.contains("not today"), "a job failed, but not its launcher");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_and_none_is_left_out() {
        let case = Listed { name: "a1".to_owned(), least: 1, most: 8 };
        assert_eq!(listed("a1 1 8\n").unwrap(), [case]);
        for wrong in ["", "a1 1\n", "error: no such thing\n", "a1 3 3\n"] {
            assert!(listed(wrong).is_err(), "{wrong:?}");
        }
    }
}
