//! The rules of the house that neither the compiler nor clippy knows: one rule a file, each a function from
//! the tree of sources to what it finds wrong.

use anyhow::Result;
use std::path::Path;

mod bench_reach;
mod commented_out;
mod edges;
mod heads;
mod knows_no_collective;
mod layers;
mod length;
mod libc_home;
mod lints;
mod names;
mod remark;
mod silenced;
mod sync_names;
mod tokens;

mod unsafe_code;
mod words;

use crate::tree::{Finding, Tree};

/// A rule: what it is called, and how it looks at the tree.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "edges", check: edges::check },
    Rule { name: "layers", check: layers::check },
    Rule { name: "libc_home", check: libc_home::check },
    Rule { name: "knows_no_collective", check: knows_no_collective::check },
    Rule { name: "bench_reach", check: bench_reach::check },
    Rule { name: "length", check: length::check },
    Rule { name: "unsafe_code", check: unsafe_code::check },
    Rule { name: "lints", check: lints::check },
    Rule { name: "silenced", check: silenced::check },
    Rule { name: "heads", check: heads::check },
    Rule { name: "names", check: names::check },
    Rule { name: "words", check: words::check },
    Rule { name: "commented_out", check: commented_out::check },
    Rule { name: "sync_names", check: sync_names::check },
];

/// What the rules came to.
pub(crate) struct Report {
    /// Files looked at.
    pub(crate) files: usize,
    /// One line for each breach: `file:line: message`.
    pub(crate) lines: Vec<String>,
}

/// Applies every rule to the sources below `root`.
pub(crate) fn check(root: &Path) -> Result<Report> {
    let tree = Tree::read(root)?;
    let mut lines = Vec::new();
    for rule in RULES {
        for finding in (rule.check)(&tree) {
            lines.push(format!("{finding} [{}]", rule.name));
        }
    }
    Ok(Report { files: tree.files.len(), lines })
}

/// The chore: prints what was found and says whether all is well.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let report = check(root)?;
    for line in &report.lines {
        println!("{line}");
    }
    println!("tidy: {} files, {} rules, {} findings", report.files, RULES.len(), report.lines.len());
    Ok(report.lines.is_empty())
}
