//! Each public function, method and constant of the crate `tasuki` occurs in an example that runs: of a doc comment, of
//! the guide, of README.md, or in `examples/`. Names are compared, not types: one example serves all methods of a name.

use crate::tree::{File, Finding, Tree};
use std::collections::HashSet;
use syn::{ImplItem, Item, Visibility};

const CRATE: &str = "tasuki/src/";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::from_iter(tree.vacant(CRATE));
    let shown: HashSet<&str> = tree.files.iter().flat_map(example_lines).flat_map(used_names).collect();
    for (file, rust) in tree.rust().filter(|(file, _)| file.below(CRATE)) {
        for (line, name) in rust.syntax.items.iter().flat_map(public_names) {
            if !shown.contains(name.as_str()) {
                findings
                    .push(file.finding(line, format!("`{name}` occurs in no example: add one that runs")));
            }
        }
    }
    findings
}

/// The public functions and constants of an item, each with its line.
fn public_names(item: &Item) -> Vec<(usize, String)> {
    let public = |visibility: &Visibility, name: &syn::Ident| {
        matches!(visibility, Visibility::Public(_)).then(|| (name.span().start().line, name.to_string()))
    };
    match item {
        Item::Fn(item) => Vec::from_iter(public(&item.vis, &item.sig.ident)),
        Item::Const(item) => Vec::from_iter(public(&item.vis, &item.ident)),
        Item::Impl(item) => Vec::from_iter(item.items.iter().filter_map(|item| match item {
            ImplItem::Fn(item) => public(&item.vis, &item.sig.ident),
            ImplItem::Const(item) => public(&item.vis, &item.ident),
            _ => None,
        })),
        _ => Vec::new(),
    }
}

/// The lines of a file that are code of an example. What is only compiled, or must not compile, is none.
fn example_lines(file: &File) -> Vec<&str> {
    if file.below("examples/") && file.rust.is_some() {
        return file.text.lines().collect();
    }
    let is_guide = file.below("docs/guide/") || file.path == "README.md";
    let is_doc = |line: &str| is_guide || file.below(CRATE) && line.trim_start().starts_with("//");
    let (mut found, mut runs) = (Vec::new(), None);
    for line in file.text.lines().filter(|line| is_doc(line)) {
        match (line.split_once("```"), runs) {
            (Some((_, language)), None) => runs = Some(language == if is_guide { "rust" } else { "" }),
            (Some(_), Some(_)) => runs = None,
            (None, _) => found.extend((runs == Some(true)).then_some(line)),
        }
    }
    found
}

/// The names that a line uses as methods, functions or paths, and its constants.
fn used_names(line: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), line);
    while let Some(start) = rest.find(is_word) {
        let (before, tail) = rest.split_at(start);
        let (word, after) = tail.split_at(tail.find(|c| !is_word(c)).unwrap_or(tail.len()));
        if before.ends_with(['.', ':']) || after.starts_with(['(', ':']) || word.to_uppercase() == word {
            found.push(word);
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    fn lines(files: &[(&str, &str)]) -> Vec<usize> {
        check(&Tree::of(files)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn what_occurs_in_no_example_is_found() {
        let source =
            "impl A {\n/// Runs `go`: a.go().\npub fn go() {}\nfn own() {}\n}\npub const MOST: u8 = 1;";
        let at = "tasuki/src/a.rs";
        assert_eq!(lines(&[(at, source)]), [3, 6]);
        let guide = ("docs/guide/a.md", "a.go(MOST)\n```rust\na.go(MOST)\n```\n");
        assert_eq!(lines(&[(at, source), guide]), NO_LINES);
        assert_eq!(lines(&[(at, source), ("examples/src/a.rs", "fn f() { a.gone(MOST) }")]), [3]);
        assert_eq!(lines(&[(at, &format!("//! ```\n//! A::go(MOST);\n//! ```\n{source}"))]), NO_LINES);
        let compiled = format!("//! ```no_run\n//! A::go(MOST);\n//! ```\n{source}");
        assert_eq!(lines(&[(at, &compiled)]), [6, 9], "it does not run");
        assert_eq!(lines(&[("core/src/a.rs", source)]).len(), 1, "the rule guards nothing");
    }
}
