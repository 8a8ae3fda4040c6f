//! In a library crate, each type name has one meaning: no struct, enum, union, trait or alias is
//! defined twice there, not even privately. Tests may define any name, and programs may call the
//! arguments of each subcommand `Args`.

use crate::tree::{File, Finding, Rust, Tree};
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::{Attribute, Ident, Item};

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut defined: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let Some(package) = package(file) else { continue };
        for (name, line) in types_of(rust) {
            let place = format!("{}:{line}", file.path);
            match defined.get(&(package.clone(), name.clone())) {
                Some(first) => {
                    findings.push(file.finding(line, format!("`{name}` is defined at {first}, too")));
                }
                None => drop(defined.insert((package.clone(), name), place)),
            }
        }
    }
    findings
}

/// The library crates.
const LIBRARIES: &[&str] =
    &["core", "fabrics/shm", "fabrics/sim", "schedule", "message", "collective", "tasuki"];

/// The folder of the library crate to which a source file belongs.
fn package(file: &File) -> Option<String> {
    let (folder, rest) = file.path.split_once("/src/").filter(|(folder, _)| LIBRARIES.contains(folder))?;
    let is_test =
        rest.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"));
    (!is_test).then(|| folder.to_owned())
}

/// Types that a file defines outside of tests and functions, each with its line.
fn types_of(rust: &Rust) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    collect(&rust.syntax.items, &mut found);
    found
}

fn collect(items: &[Item], found: &mut Vec<(String, usize)>) {
    for item in items {
        let (attributes, ident): (&[Attribute], &Ident) = match item {
            Item::Struct(item) => (&item.attrs, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.ident),
            Item::Union(item) => (&item.attrs, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.ident),
            Item::Type(item) => (&item.attrs, &item.ident),
            Item::Mod(module) => {
                let is_test = module.ident == "tests" || is_conditional(&module.attrs);
                if let Some((_, items)) = module.content.as_ref().filter(|_| !is_test) {
                    collect(items, found);
                }
                continue;
            }
            _ => continue,
        };
        if !is_conditional(attributes) {
            found.push((ident.to_string(), ident.span().start().line));
        }
    }
}

/// Only one of several conditional definitions is compiled.
fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && attribute.span().start().line > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_defined_twice_in_a_crate_is_found() {
        let files = [("core/src/a.rs", "struct A;"), ("core/src/b/mod.rs", "fn f() {}\nenum A {}")];
        let findings = check(&Tree::of(&files));
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].file.as_str(), findings[0].line), ("core/src/b/mod.rs", 2));
        assert!(findings[0].message.contains("core/src/a.rs:1"), "{}", findings[0].message);
    }

    #[test]
    fn other_crates_tests_and_conditions_pass() {
        let tests = "#[cfg(test)]\nmod tests { struct A; }";
        let conditions = "#[cfg(a)]\nstruct B;\n#[cfg(not(a))]\nstruct B;";
        let files =
            [("core/src/a.rs", "struct A;"), ("tasuki/src/a.rs", "struct A;"), ("core/src/t.rs", tests)];
        assert_eq!(check(&Tree::of(&files)), []);
        assert_eq!(check(&Tree::of(&[("core/src/c.rs", conditions)])), []);
    }
}
