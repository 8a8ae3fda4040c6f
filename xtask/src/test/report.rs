//! The output: a heading for each step, its result, and the table at the end.

use super::failures;
use super::shell::Shell;
use super::step::Outcome;
use anyhow::Result;
use std::time::Duration;

/// A step that has ended.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) time: Duration,
    /// The failing tests and panics of a step that failed.
    failures: Vec<String>,
}

/// The line above a step.
pub(super) fn heading(number: usize, count: usize, name: &str) {
    println!("== {number}/{count} {name}");
}

impl Row {
    pub(super) fn new(name: &'static str, outcome: Outcome, time: Duration, shell: &Shell) -> Result<Row> {
        let failures = match outcome {
            Outcome::Failed(_) => failures::of(&shell.log()?),
            _ => Vec::new(),
        };
        Ok(Row { name, outcome, time, failures })
    }

    /// Prints the step's result, after its log if it failed.
    pub(super) fn print(&self, shell: &Shell) -> Result<()> {
        if matches!(self.outcome, Outcome::Failed(_)) {
            println!("{}", shell.log()?.trim_end());
        }
        println!("{}: {} {}", self.name, described(&self.outcome), seconds(self.time));
        Ok(())
    }
}

/// Prints the failing tests of all steps, the table and the counts. Returns true if no step failed.
pub(super) fn summary(rows: &[Row]) -> bool {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for row in rows.iter().filter(|row| !row.failures.is_empty()) {
        println!("\n== failures of {}", row.name);
        row.failures.iter().for_each(|line| println!("{line}"));
    }
    println!("\n== summary");
    for row in rows {
        let time = seconds(row.time);
        println!("{:width$}  {time:>8}  {}", row.name, described(&row.outcome));
    }
    let [passed, failed, skipped] = counts(rows);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    failed == 0
}

/// How many steps passed, failed and were skipped.
fn counts(rows: &[Row]) -> [usize; 3] {
    let mut counts = [0; 3];
    for row in rows {
        let index = match row.outcome {
            Outcome::Passed(_) => 0,
            Outcome::Failed(_) => 1,
            Outcome::Skipped(_) => 2,
        };
        counts[index] += 1;
    }
    counts
}

fn described(outcome: &Outcome) -> String {
    let (word, detail) = match outcome {
        Outcome::Passed(detail) => ("passed", detail),
        Outcome::Failed(detail) => ("FAILED", detail),
        Outcome::Skipped(detail) => ("skipped", detail),
    };
    if detail.is_empty() { word.to_owned() } else { format!("{word} ({detail})") }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(outcome: Outcome) -> Row {
        Row { name: "step", outcome, time: Duration::ZERO, failures: Vec::new() }
    }

    #[test]
    fn one_failure_fails_the_whole() {
        let passed = || row(Outcome::Passed(String::new()));
        let rows =
            [passed(), row(Outcome::Failed(String::new())), passed(), row(Outcome::Skipped(String::new()))];
        assert_eq!(counts(&rows), [2, 1, 1]);
        assert!(!summary(&rows));
        assert!(summary(&[passed(), row(Outcome::Skipped(String::new()))]));
    }
}
