//! The step that checks the project's own rules.

use crate::test::shell::Shell;
use crate::test::step::Outcome;
use crate::tidy;
use anyhow::Result;

pub(super) fn tidy(shell: &Shell) -> Result<Outcome> {
    let report = tidy::check(shell.root())?;
    for line in &report.lines {
        shell.note(line)?;
    }
    Ok(match report.lines.len() {
        0 => Outcome::Passed(format!("{} files", report.files)),
        count => Outcome::Failed(format!("{count} findings")),
    })
}
