//! The front page of the crate `tasuki` stays readable: at most 25 types lie in its root. The others lie in modules.
//! Paths that are kept for older programs are hidden, and traits of other crates are not shown as ours.

use crate::tree::{Finding, Rust, Tree};
use syn::spanned::Spanned;
use syn::{Attribute, Item, UseTree, Visibility};

const ROOT: &str = "tasuki/src/lib.rs";
const TYPES_MAX: usize = 25;

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::from_iter(tree.vacant(ROOT));
    for (file, rust) in tree.rust().filter(|(file, _)| file.path == ROOT) {
        let shown = shown(rust);
        if let Some((line, _)) = shown.get(TYPES_MAX) {
            let text = format!("the root shows {} types: move some into a module", shown.len());
            findings.push(file.finding(*line, text));
        }
        for (line, _) in shown.iter().filter(|(_, name)| name == "*") {
            findings.push(file.finding(*line, "a glob import hides which types the root shows"));
        }
    }
    findings
}

/// The public types of the root that the documentation shows, each with its line; `*` for a glob import.
fn shown(rust: &Rust) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for item in &rust.syntax.items {
        let (visibility, attributes, names) = match item {
            Item::Use(item) => (&item.vis, &item.attrs, imported(&item.tree)),
            Item::Struct(item) => (&item.vis, &item.attrs, vec![item.ident.to_string()]),
            Item::Enum(item) => (&item.vis, &item.attrs, vec![item.ident.to_string()]),
            Item::Union(item) => (&item.vis, &item.attrs, vec![item.ident.to_string()]),
            Item::Trait(item) => (&item.vis, &item.attrs, vec![item.ident.to_string()]),
            Item::Type(item) => (&item.vis, &item.attrs, vec![item.ident.to_string()]),
            _ => continue,
        };
        if matches!(visibility, Visibility::Public(_)) && !attributes.iter().any(is_left_out) {
            let line = item.span().start().line;
            found.extend(names.into_iter().filter(|name| is_type(name)).map(|name| (line, name)));
        }
    }
    found
}

/// The names that a `use` brings into its module; `*` for a glob import.
pub(super) fn imported(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => imported(&path.tree),
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(name) => vec![name.rename.to_string()],
        UseTree::Glob(_) => vec!["*".into()],
        UseTree::Group(group) => group.items.iter().flat_map(imported).collect(),
    }
}

/// Returns true for the name of a type, and for a glob import; false for functions, modules and constants.
fn is_type(name: &str) -> bool {
    name == "*" || name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}

/// Returns true for `#[doc(hidden)]` and `#[doc(no_inline)]`.
pub(super) fn is_left_out(attribute: &Attribute) -> bool {
    let mut is_left_out = false;
    let _ = attribute.parse_nested_meta(|meta| {
        is_left_out |= meta.path.is_ident("hidden") || meta.path.is_ident("no_inline");
        Ok(())
    });
    attribute.path().is_ident("doc") && is_left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[(ROOT, text)])).iter().map(|finding| finding.line).collect()
    }

    /// A root with that many types.
    fn root(types: usize) -> String {
        let names: Vec<String> = (0..types).map(|number| format!("Type{number}")).collect();
        format!("pub use inner::{{{}}};\n", names.join(", "))
    }

    #[test]
    fn a_type_too_many_is_found_however_it_gets_there() {
        let full = root(TYPES_MAX);
        assert_eq!(lines(&format!("{full}pub use a::b::C as Other;")), [2]);
        assert_eq!(lines(&format!("{full}pub struct Other;")), [2]);
        assert_eq!(lines(&format!("{full}/// An alias.\npub type Other = u8;")), [2]);
        assert_eq!(lines(&format!("{full}#[doc(inline)]\npub use a::Other;")), [2]);
        assert_eq!(lines("pub use inner::*;"), [1]);
    }

    #[test]
    fn hidden_paths_private_names_functions_and_constants_pass() {
        let full = root(TYPES_MAX);
        let rest = "#[doc(hidden)]\npub use a::Old;\n#[doc(no_inline)]\npub use bytemuck::Pod;\nuse a::Inner;\n\
            pub use a::{run, LIMIT};\npub(crate) struct Own;\npub mod part { pub struct Else; }";
        assert_eq!(lines(&format!("{full}{rest}")), NO_LINES);
    }

    #[test]
    fn a_missing_root_is_found() {
        assert_eq!(check(&Tree::of(&[("core/src/lib.rs", "")])).len(), 1);
    }
}
