//! A name of `tasuki::schedule` has no other meaning in the crate `tasuki`, so that a program may import from both.

use super::root_types::imported;
use crate::tree::{Finding, Rust, Tree};
use syn::spanned::Spanned;
use syn::{Item, Visibility};

const SCHEDULE: &str = "tasuki/src/schedule.rs";
/// The root and the public modules.
const OTHERS: &[&str] = &[
    "tasuki/src/lib.rs",
    "tasuki/src/collective/mod.rs",
    "tasuki/src/engine.rs",
    "tasuki/src/message/mod.rs",
    "tasuki/src/nicam/mod.rs",
    "tasuki/src/onesided.rs",
    "tasuki/src/prelude.rs",
];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.vacant(SCHEDULE).into_iter().collect();
    findings.extend(OTHERS.iter().flat_map(|other| tree.vacant(other)));
    let of_others: Vec<(&str, String)> = tree
        .rust()
        .filter(|(file, _)| OTHERS.contains(&file.path.as_str()))
        .flat_map(|(file, rust)| public_names(rust).into_iter().map(|(_, name)| (file.path.as_str(), name)))
        .collect();
    for (file, rust) in tree.rust().filter(|(file, _)| file.path == SCHEDULE) {
        for (line, name) in public_names(rust) {
            if name == "*" {
                findings.push(file.finding(line, "a glob import hides which names the module has"));
            } else if let Some((other, _)) = of_others.iter().find(|(_, theirs)| *theirs == name) {
                findings.push(file.finding(line, format!("`{name}` has another meaning in {other}")));
            }
        }
    }
    findings
}

/// The names that other crates can import from a file, each with the line of its item; `*` for a glob import.
fn public_names(rust: &Rust) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for item in &rust.syntax.items {
        let (visibility, names) = match item {
            Item::Use(item) => (&item.vis, imported(&item.tree)),
            Item::Struct(item) => (&item.vis, vec![item.ident.to_string()]),
            Item::Enum(item) => (&item.vis, vec![item.ident.to_string()]),
            Item::Union(item) => (&item.vis, vec![item.ident.to_string()]),
            Item::Trait(item) => (&item.vis, vec![item.ident.to_string()]),
            Item::Type(item) => (&item.vis, vec![item.ident.to_string()]),
            Item::Const(item) => (&item.vis, vec![item.ident.to_string()]),
            Item::Fn(item) => (&item.vis, vec![item.sig.ident.to_string()]),
            Item::Mod(item) => (&item.vis, vec![item.ident.to_string()]),
            _ => continue,
        };
        if matches!(visibility, Visibility::Public(_)) {
            let line = item.span().start().line;
            found.extend(names.into_iter().map(|name| (line, name)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    /// The lines of findings, if the schedule module and the root have these texts.
    fn lines(schedule: &str, root: &str) -> Vec<usize> {
        let others = OTHERS.iter().map(|&other| (other, if other == OTHERS[0] { root } else { "" }));
        let files: Vec<(&str, &str)> = others.chain([(SCHEDULE, schedule)]).collect();
        check(&Tree::of(&files)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_name_with_another_meaning_is_found_however_it_gets_there() {
        let schedule = "pub use a::{B, C};\npub use a::started;";
        assert_eq!(lines(schedule, "pub use x::y::C;"), [1]);
        assert_eq!(lines(schedule, "#[doc(hidden)]\npub use x::Y as B;"), [1]);
        assert_eq!(lines(schedule, "pub struct B;\npub fn started() {}"), [1, 2]);
        assert_eq!(lines("pub use a::*;", ""), [1]);
    }

    #[test]
    fn other_names_and_private_ones_pass() {
        assert_eq!(
            lines("pub use a::{B, C};\nuse a::D;", "pub use x::D;\nuse x::B;\npub mod b {}"),
            NO_LINES
        );
    }

    #[test]
    fn a_missing_module_is_found() {
        assert_eq!(check(&Tree::of(&[(SCHEDULE, "")])).len(), OTHERS.len());
    }
}
