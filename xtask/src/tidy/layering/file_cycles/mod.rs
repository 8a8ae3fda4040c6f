//! No dependency cycle of source files is longer than [`FILES_MAX`]: whoever reads one file of a
//! cycle has to read all. A file uses another if it names something that is defined there, in a
//! `use` or in a path that begins with `crate` or `super`. What a module takes from the modules that
//! it declares itself does not count: they are its parts. A file that only declares and re-exports
//! modules is not part of a cycle.

use crate::tree::{File, Finding, Rust, Tree};
use components::{closing_edge, components};
use file_graph::file_graph;
use std::collections::BTreeSet;

mod components;
mod file_graph;
mod named_paths;

/// Two or three files that use each other can be read as one.
const FILES_MAX: usize = 3;

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in source_folders(tree) {
        let files: Vec<(&File, &Rust)> = tree.rust().filter(|(file, _)| is_below(file, &source)).collect();
        let graph = file_graph(&source, &files);
        for component in components(&graph).iter().filter(|component| component.len() > FILES_MAX) {
            findings.extend(closing_edge(&graph, component).map(|(file, used, line)| {
                let (count, members) = (component.len(), Vec::from_iter(component.clone()).join(", "));
                let message = format!("the use of {used} closes a cycle of {count} files: {members}");
                Finding { file, line, message }
            }));
        }
    }
    findings
}

/// The folders of the crates' sources, each with a `/` at its end.
fn source_folders(tree: &Tree) -> BTreeSet<String> {
    let root = |file: &File| {
        let path = file.path.strip_suffix("lib.rs").or_else(|| file.path.strip_suffix("main.rs"))?;
        path.ends_with("src/").then(|| path.to_owned())
    };
    tree.rust().filter_map(|(file, _)| root(file)).collect()
}

/// Each file in `src/bin` is a crate of its own.
fn is_below(file: &File, source: &str) -> bool {
    file.path.strip_prefix(source).is_some_and(|path| !path.starts_with("bin/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings in a crate whose file `a` uses `b`, which uses `c`, which uses `d::E`; `d/e.rs`
    /// defines `E` and has the text `last`.
    fn found(last: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("core/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
            ("core/src/a.rs", "use crate::b::B;\npub struct A;"),
            ("core/src/b.rs", "pub struct B;\nfn f() -> crate::c::C { C }"),
            ("core/src/c.rs", "use super::d;\npub struct C;\nfn f(e: d::E) {}"),
            ("core/src/d/mod.rs", "mod e;\npub(crate) use e::E;"),
            ("core/src/d/e.rs", last),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cycle_of_four_files_is_found_through_re_exports() {
        let cycle = "core/src/a.rs, core/src/b.rs, core/src/c.rs, core/src/d/e.rs";
        let message = format!("core/src/a.rs:1: the use of core/src/b.rs closes a cycle of 4 files: {cycle}");
        let uses = [
            "use crate::a::A;\npub struct E;",
            "pub struct E(crate::A);",
            "pub struct E;\nmod inner { fn f() { super::super::super::a::g() } }",
        ];
        for last in uses {
            assert_eq!(found(last), *std::slice::from_ref(&message), "{last}");
        }
    }

    #[test]
    fn shorter_cycles_and_uses_of_tests_pass() {
        assert_eq!(found("use crate::b::B;\npub struct E;"), [""; 0]);
        assert_eq!(found("pub struct E;\n#[cfg(test)]\nmod tests { use crate::a::A; }"), [""; 0]);
        assert_eq!(found("pub struct E;\n// As crate::a::A."), [""; 0]);
    }

    #[test]
    fn parts_of_a_module_are_no_use_of_others() {
        let files = [
            ("core/src/lib.rs", "mod a;"),
            ("core/src/a/mod.rs", "mod b;\nmod c;\nmod d;\nuse b::B;\npub struct A;"),
            ("core/src/a/b.rs", "use super::c::C;\npub struct B;"),
            ("core/src/a/c.rs", "use super::d::D;\npub struct C;"),
        ];
        let found = |d| check(&Tree::of(&[files[0], files[1], files[2], files[3], ("core/src/a/d.rs", d)]));
        assert_eq!(found("use super::A;\npub struct D;"), []);
        assert_eq!(found("use super::{A, b};\npub struct D(b::B);"), []);
        let through_crate =
            ("core/src/a/mod.rs", "mod b;\nmod c;\nmod d;\nuse crate::a::b::B;\npub struct A;");
        let last = ("core/src/a/d.rs", "use super::A;\npub struct D;");
        assert_eq!(check(&Tree::of(&[files[0], through_crate, files[2], files[3], last])).len(), 1);
    }

    #[test]
    fn a_file_of_tests_is_no_part_of_a_cycle() {
        let files = [
            ("core/src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("core/src/a.rs", "use crate::b::B;\npub struct A;"),
            ("core/src/b.rs", "use crate::c::C;\npub struct B;"),
        ];
        let tests = ("core/src/c/tests.rs", "use crate::a::A;\npub struct T;");
        let found = |c| {
            let tree = Tree::of(&[files[0], files[1], files[2], ("core/src/c/mod.rs", c), tests]);
            check(&tree).len()
        };
        assert_eq!(found("pub struct C(crate::c::tests::T);\nmod tests;"), 1);
        assert_eq!(found("pub struct C(crate::c::tests::T);\n#[cfg(test)]\nmod tests;"), 0);
    }
}
