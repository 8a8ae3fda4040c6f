//! docs/design/communication/synchronisation.md has a row for each name of a `SYNC name` comment, and none for
//! others. Each column holds: the files that explain the ordering exist and name it; the models exist, or the row says
//! why there is none; the faults are planted where the ordering is named, and the step "loom planted faults" runs a
//! model of the row for them. Each fault that is planted has a row.

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
    let mut in_no_row: BTreeSet<&str> = faults.keys().copied().filter(|fault| is_of_loom(fault)).collect();
    for (name, (line, cells)) in rows {
        let mut find = |message: String| findings.push(table.finding(line, message));
        if !marks.contains_key(name) {
            find(format!("no comment says SYNC {name}"));
        }
        let [_, pages, models, planted] = cells[..] else {
            find(format!("the row of {name} has not five cells"));
            continue;
        };
        if quoted(pages).next().is_none() {
            find(format!("no file explains {name}"));
        }
        for page in quoted(pages) {
            match tree.files.iter().find(|file| file.path == page) {
                None => find(format!("{page}, which explains {name}, is missing")),
                Some(file) if !names(file, name) => find(format!("{page} does not say SYNC {name}")),
                Some(_) => {}
            }
        }
        let has_none = models.starts_with("none: ");
        let models: Vec<&str> = quoted(models).filter(|word| word.contains('/')).collect();
        for model in models.iter().filter(|model| tree.files.iter().all(|file| file.path != **model)) {
            find(format!("{model}, which the row of {name} names, is missing"));
        }
        match (has_none, models.is_empty(), planted.is_empty()) {
            (false, false, true) => find(format!("the model of {name} has no planted fault")),
            (false, true, true) => {
                find(format!("the row of {name} neither names a model nor says why there is none"));
            }
            _ => {}
        }
        for fault in quoted(planted) {
            in_no_row.remove(fault);
            let Some(places) = faults.get(fault) else {
                find(format!("no code plants {fault}"));
                continue;
            };
            if !places.iter().any(|file| names(file, name)) {
                find(format!("no file that plants {fault} says SYNC {name}"));
            }
            if !models.iter().any(|model| runs(model, fault)) {
                find(format!("no model of {name} runs with {fault} planted: their names begin differently"));
            }
        }
    }
    findings.extend(
        in_no_row
            .into_iter()
            .map(|fault| faults[fault][0].finding(1, format!("{fault} has no row in {TABLE}"))),
    );
    findings
}

/// Returns true if a file says `SYNC name`.
fn names(file: &File, name: &str) -> bool {
    file.lines().any(|(_, line)| sync_pairs::names(line).contains(&name))
}

/// Returns true if the step "loom planted faults" runs the model with the fault: their names begin alike.
fn runs(model: &str, fault: &str) -> bool {
    let structure = fault.split('_').next().unwrap_or_default();
    model
        .rsplit('/')
        .next()
        .and_then(|file| file.strip_prefix("loom_"))
        .is_some_and(|rest| rest.starts_with(structure))
}

/// The others are for AddressSanitizer.
fn is_of_loom(fault: &str) -> bool {
    !fault.starts_with("asan_")
}

/// The name of a row of the table, with its line and its other cells.
fn row(line: usize, text: &str) -> Option<(&str, (usize, Vec<&str>))> {
    let cells = text.strip_prefix("| `")?.strip_suffix('|')?;
    let (name, rest) = cells.split_once("` | ")?;
    Some((name, (line, rest.split(" | ").map(str::trim).collect())))
}

/// The words in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The faults that code plants, each with its files.
fn faults(tree: &Tree) -> BTreeMap<&str, Vec<&File>> {
    let mut faults: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for (file, _) in tree.rust().filter(|(file, _)| !file.below(sync_pairs::OWN_TALK)) {
        faults_of(file).for_each(|fault| faults.entry(fault).or_default().push(file));
    }
    faults
}

fn faults_of(file: &File) -> impl Iterator<Item = &str> {
    file.text.split(PLANTS).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: (&str, &str) =
        ("core/src/a.rs", "// SYNC wake\nfn f() { planted(\"wake_relaxed\"); }\n// SYNC wake\n");
    const MODEL: (&str, &str) = ("core/tests/loom_wake.rs", "fn f() {}");
    const OTHER: (&str, &str) = ("core/tests/loom_other.rs", "fn f() { planted(\"other_late\"); }");

    fn messages_of(files: &[(&str, &str)], row: &str) -> Vec<String> {
        let files: Vec<_> = files.iter().copied().chain([(TABLE, row)]).collect();
        check(&Tree::of(&files)).into_iter().map(|finding| finding.message).collect()
    }

    fn messages(row: &str) -> Vec<String> {
        messages_of(&[CODE, MODEL], row)
    }

    #[test]
    fn a_row_with_its_model_and_fault_passes() {
        assert!(
            messages("| `wake` | a | `core/src/a.rs` | `core/tests/loom_wake.rs` | `wake_relaxed` |\n")
                .is_empty()
        );
    }

    #[test]
    fn a_row_that_says_why_it_has_no_model_passes() {
        let code = ("core/src/a.rs", "// SYNC wake\n// SYNC wake");
        assert!(
            messages_of(&[code], "| `wake` | a | `core/src/a.rs` | none: one word (`b`) | |\n").is_empty()
        );
        let neither = messages_of(&[code], "| `wake` | a | `core/src/a.rs` | later | |\n");
        assert_eq!(neither, ["the row of wake neither names a model nor says why there is none"]);
    }

    #[test]
    fn rows_and_names_that_are_missing_are_found() {
        let missing =
            [format!("SYNC wake has no row in {TABLE}"), format!("wake_relaxed has no row in {TABLE}")];
        assert_eq!(messages(""), missing);
        let wake = "| `wake` | a | `core/src/a.rs` | `core/tests/loom_wake.rs` | `wake_relaxed` |\n";
        let gone = messages(&format!("{wake}| `sleep` | a | `core/src/a.rs` | none: c | |\n"));
        assert_eq!(gone, ["no comment says SYNC sleep", "core/src/a.rs does not say SYNC sleep"]);
        assert_eq!(check(&Tree::of(&[CODE])).len(), 1, "the table is missing");
    }

    #[test]
    fn each_column_is_checked() {
        let with = |page: &str, model: &str, fault: &str| {
            let row = format!("| `wake` | a | {page} | {model} | `wake_relaxed`{fault} |\n");
            messages_of(&[CODE, MODEL, OTHER, ("core/src/b.rs", "fn f() {}")], &row)
        };
        let (page, model) = ("`core/src/a.rs`", "`core/tests/loom_wake.rs`");
        let other = format!("other_late has no row in {TABLE}");
        assert_eq!(with(page, model, ""), std::slice::from_ref(&other));
        assert_eq!(with("a", model, ""), ["no file explains wake", &other]);
        assert_eq!(with("`a.rs`", model, ""), ["a.rs, which explains wake, is missing", &other]);
        assert_eq!(with("`core/src/b.rs`", model, ""), ["core/src/b.rs does not say SYNC wake", &other]);
        let gone = [
            "core/tests/loom_wait.rs, which the row of wake names, is missing".into(),
            "no model of wake runs with wake_relaxed planted: their names begin differently".into(),
            other.clone(),
        ];
        assert_eq!(with(page, "`core/tests/loom_wait.rs`", ""), gone);
        assert_eq!(with(page, model, ", `wake_early`"), ["no code plants wake_early", &other]);
        let elsewhere = [
            "no file that plants other_late says SYNC wake",
            "no model of wake runs with other_late planted: their names begin differently",
        ];
        assert_eq!(with(page, model, ", `other_late`"), elsewhere);
        let no_fault = messages("| `wake` | a | `core/src/a.rs` | `core/tests/loom_wake.rs` | |\n");
        assert_eq!(no_fault[0], "the model of wake has no planted fault");
    }
}
