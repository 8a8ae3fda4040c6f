//! The project's own rules, which neither the compiler nor clippy checks. Each file has one rule: a
//! function from the tree of sources to its findings.

use anyhow::Result;
use std::path::Path;

mod code;
mod layering;
mod line_comment;
mod text;
mod tokens;

use crate::tree::{Finding, Tree};
use code::{
    examples, lints, root_types, schedule_names, silenced, sync_pairs, sync_table, type_names, unsafe_code,
};
use layering::{
    atomics_home, bench_reach, dependency_edges, file_cycles, knows_no_collective, layers, libc_home,
    test_targets,
};
use text::{commented_out, doc_paths, heads, length, names, retired_words, unfinished_marks};

/// A rule: its name, and its check.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
    /// True if findings are printed as advice and do not fail the check.
    is_advice: bool,
}

impl Rule {
    const fn new(name: &'static str, check: fn(&Tree) -> Vec<Finding>) -> Rule {
        Rule { name, check, is_advice: false }
    }

    const fn advice(name: &'static str, check: fn(&Tree) -> Vec<Finding>) -> Rule {
        Rule { name, check, is_advice: true }
    }
}

const RULES: &[Rule] = &[
    Rule::new("dependency_edges", dependency_edges::check),
    Rule::new("layers", layers::check),
    Rule::new("file_cycles", file_cycles::check),
    Rule::new("libc_home", libc_home::check),
    Rule::new("atomics_home", atomics_home::check),
    Rule::new("knows_no_collective", knows_no_collective::check),
    Rule::new("bench_reach", bench_reach::check),
    Rule::new("test_targets", test_targets::check),
    Rule::advice("length", length::check),
    Rule::new("unsafe_code", unsafe_code::check),
    Rule::new("lints", lints::check),
    Rule::new("silenced", silenced::check),
    Rule::new("heads", heads::check),
    Rule::new("names", names::check),
    Rule::new("unfinished_marks", unfinished_marks::check),
    Rule::new("retired_words", retired_words::check),
    Rule::new("doc_paths", doc_paths::check),
    Rule::new("type_names", type_names::check),
    Rule::new("root_types", root_types::check),
    Rule::new("schedule_names", schedule_names::check),
    Rule::new("examples", examples::check),
    Rule::new("commented_out", commented_out::check),
    Rule::new("sync_pairs", sync_pairs::check),
    Rule::new("sync_table", sync_table::check),
];

/// The results of all rules.
pub(crate) struct Report {
    /// Number of files that were checked.
    pub(crate) files: usize,
    /// One line for each violation: `file:line: message`.
    pub(crate) lines: Vec<String>,
    /// One line for each piece of advice.
    pub(crate) advice: Vec<String>,
}

/// Applies every rule to the sources below `root`.
pub(crate) fn check(root: &Path) -> Result<Report> {
    let tree = Tree::read(root)?;
    let (mut lines, mut advice) = (Vec::new(), Vec::new());
    for rule in RULES {
        let into = if rule.is_advice { &mut advice } else { &mut lines };
        into.extend((rule.check)(&tree).iter().map(|finding| format!("{finding} [{}]", rule.name)));
    }
    Ok(Report { files: tree.files.len(), lines, advice })
}

/// The command: prints the findings and returns true if there are none.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let report = check(root)?;
    for line in &report.advice {
        println!("advice: {line}");
    }
    for line in &report.lines {
        println!("{line}");
    }
    let (files, findings, advice) = (report.files, report.lines.len(), report.advice.len());
    println!("tidy: {files} files, {} rules, {findings} findings, {advice} pieces of advice", RULES.len());
    Ok(report.lines.is_empty())
}
