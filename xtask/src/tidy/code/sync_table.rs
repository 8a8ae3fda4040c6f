//! docs/design/communication/synchronisation.md has a row for each name of a `SYNC name` comment, and none for
//! others. A row names a model, or says why there is none; the faults that it names are planted.

use crate::tidy::code::sync_pairs;
use crate::tree::{File, Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = "docs/design/communication/synchronisation.md";
/// How code plants a fault; `relaxed_if_planted` ends so, too.
const PLANTS: &str = "planted(\"";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let marks = sync_pairs::names_of(tree);
    let Some(table) = tree.files.iter().find(|file| file.path == TABLE) else {
        return marks
            .into_values()
            .map(|(file, line)| file.finding(line, format!("{TABLE} is missing")))
            .collect();
    };
    let rows: BTreeMap<&str, (usize, Vec<&str>)> =
        table.lines().filter_map(|(line, text)| row(line, text)).collect();
    let faults = faults(tree);
    let without_row = marks.iter().filter(|(name, _)| !rows.contains_key(*name));
    let mut findings: Vec<Finding> = without_row
        .map(|(name, (file, line))| file.finding(*line, format!("SYNC {name} has no row in {TABLE}")))
        .collect();
    for (name, (line, cells)) in rows {
        let mut find = |message: String| findings.push(table.finding(line, message));
        if !marks.contains_key(name) {
            find(format!("no comment says SYNC {name}"));
        }
        let [_, _, model, fault] = cells[..] else {
            find(format!("the row of {name} has not five cells"));
            continue;
        };
        if !model.starts_with("none: ") && fault.is_empty() {
            find(format!("the model of {name} has no planted fault"));
        }
        for fault in quoted(fault).filter(|fault| !faults.contains(fault)) {
            find(format!("no code plants {fault}"));
        }
    }
    findings
}

/// The name of a row of the table, with its line and its other cells.
fn row(line: usize, text: &str) -> Option<(&str, (usize, Vec<&str>))> {
    let cells = text.strip_prefix("| `")?.strip_suffix('|')?;
    let (name, rest) = cells.split_once("` | ")?;
    Some((name, (line, rest.split(" | ").map(str::trim).collect())))
}

/// The words in backticks that are names of faults, not paths.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|word| !word.contains('/'))
}

fn faults(tree: &Tree) -> BTreeSet<&str> {
    tree.files.iter().flat_map(faults_of).collect()
}

fn faults_of(file: &File) -> impl Iterator<Item = &str> {
    file.text.split(PLANTS).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: (&str, &str) =
        ("core/src/a.rs", "// SYNC wake\nfn f() { planted(\"wake_relaxed\"); }\n// SYNC wake\n");

    fn messages(table: &str) -> Vec<String> {
        check(&Tree::of(&[CODE, (TABLE, table)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_row_with_its_model_and_fault_passes() {
        assert!(messages("| `wake` | a | b | `core/tests/loom_a.rs` | `wake_relaxed` |\n").is_empty());
        assert!(messages("| `wake` | a | b | none: one word | |\n").is_empty());
    }

    #[test]
    fn what_is_missing_or_gone_is_found() {
        assert_eq!(messages(""), [format!("SYNC wake has no row in {TABLE}")]);
        let gone = messages("| `wake` | a | b | none: c | |\n| `sleep` | a | b | none: c | |\n");
        assert_eq!(gone, ["no comment says SYNC sleep"]);
        assert_eq!(messages("| `wake` | a | b | `m.rs` | |\n"), ["the model of wake has no planted fault"]);
        assert_eq!(messages("| `wake` | a | b | `m.rs` | `other` |\n"), ["no code plants other"]);
        assert_eq!(check(&Tree::of(&[CODE])).len(), 1, "the table is missing");
    }
}
