//! Tasuki programs under the real launchers of others that speak PMI-1: cases of the conformance suite, and what a
//! launcher hands on. `tests/tests/shm_pmi.rs` has the like with a manager of ours, which can also misbehave.

use crate::peers::{self, Launcher};
use crate::test::shell::{Run, Shell};
use crate::test::step::Outcome;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Memory, atomics, signals with their bytes, messages and collective calls: what a launcher's way of starting ranks
/// and of placing them on processors could disturb.
const FAMILIES: &[&str] = &["A", "C", "D1", "G"];
/// Two, and more than some machines have processors.
const RANKS: &[usize] = &[2, 4];
/// Most cases take a hundredth of a second, one that moves gigabytes a minute.
const LIMIT: Duration = Duration::from_secs(150);

/// How the names of cases begin that move gigabytes. The first runs, under one launcher: how ranks were started makes
/// no difference to their bytes, and a virtual machine takes a minute to give them memory.
const LARGE: &str = "a8_";

/// A case as its program lists it.
#[derive(PartialEq, Eq, Debug)]
struct Listed {
    name: String,
    least: usize,
    most: usize,
}

/// Where the programs are, and what they are to do.
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
        hands_on(shell, launcher, &suite.programs.join("handed")).with_context(|| launcher.name())?;
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

    /// Each case of a launcher, the first of them or another, with each number of ranks that the case can have.
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
    // One that ran on no number of ranks would be left out in silence.
    let out = |case: &&Listed| !RANKS.iter().any(|ranks| (case.least..=case.most).contains(ranks));
    ensure!(cases.iter().find(out).is_none(), "cases for none of {RANKS:?} ranks: {cases:?}");
    Ok(cases)
}

/// What was said first; all of it is in the step's log.
fn first_line(run: &Run) -> &str {
    run.output.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}

/// L1: arguments, environment and standard input come through, no line is mixed with another, and the code of the one
/// rank that fails is the launcher's.
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
    let told = (0..RANKS)
        .flat_map(|rank| (0..LINES).map(move |line| format!("rank {rank} of {RANKS}, line {line}: {words}")));
    let heard = fed.lines().map(|line| format!("rank 0 heard {line:?}"));
    let said: BTreeSet<&str> = run.output.lines().collect();
    for line in told.chain(heard) {
        ensure!(said.contains(line.as_str()), "no line {line:?}");
    }
    ensure!(run.code == Some(7), "the code is {:?}, not 7 as the last rank's", run.code);
    Ok(())
}

/// L1: a job that fails tells why, and its launcher does not end well.
fn ends_with(shell: &Shell, launcher: &Launcher, program: &Path) -> Result<()> {
    let mut command = launcher.command(4);
    let run = shell.run_within(LIMIT, Stdio::null(), command.arg(program).arg("an_error_ends_all_of_4"))?;
    ensure!(!run.success && run.output.contains("not today"), "a job failed, and this ended well");
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
