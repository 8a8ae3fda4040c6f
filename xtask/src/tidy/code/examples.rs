//! Each public item of the crate `tasuki` has an example in its own documentation. Each public function, method and
//! constant also occurs in an example that runs: of a doc comment, of the guide, of README.md, or in `examples/`.
//! There, names are compared, not types: one example serves all methods of a name. What the crate re-exports from
//! another crate of the tree has its example there, or at the `pub use`.

use crate::tidy::code::root_types::is_left_out;
use crate::tree::{File, Finding, Tree};
use std::collections::HashSet;
use syn::{Attribute, Expr, Ident, ImplItem, Item, Lit, Meta, UseTree, Visibility};

const CRATE: &str = "tasuki/src/";
/// What only the bindings use, and the documentation does not show.
const NOT_SHOWN: &str = "tasuki/src/bindings.rs";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let own = tree.vacant(CRATE).into_iter().chain(unused(tree)).chain(without_own(tree));
    own.chain(without_any(tree)).collect()
}

fn is_shown(file: &File) -> bool {
    file.below(CRATE) && file.path != NOT_SHOWN
}

/// Finds the items without an example in their own documentation.
fn without_own(tree: &Tree) -> Vec<Finding> {
    let is_without =
        |item: &Public<'_>| !item.attributes.iter().any(|line| is_left_out(line) || has_fence(line));
    find(tree, is_without, |name| {
        format!("the documentation of `{name}` has no example: show what a user does with it")
    })
}

/// Finds the functions and constants that no example uses.
fn unused(tree: &Tree) -> Vec<Finding> {
    let shown: HashSet<&str> = tree.files.iter().flat_map(example_lines).flat_map(used_names).collect();
    let is_unused = |item: &Public<'_>| !item.is_type && !shown.contains(item.name.to_string().as_str());
    find(tree, is_unused, |name| format!("`{name}` occurs in no example: add one that runs"))
}

/// Finds the items of other crates that the crate re-exports without an example.
fn without_any(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| is_shown(file)) {
        for item in &rust.syntax.items {
            let Item::Use(item) = item else { continue };
            let UseTree::Path(path) = &item.tree else { continue };
            let folder = folder_of(&path.ident.to_string());
            let (Visibility::Public(_), Some(folder)) = (&item.vis, folder) else { continue };
            if item.attrs.iter().any(has_fence) {
                continue;
            }
            for name in leaves(&path.tree).into_iter().filter(|name| !has_example(tree, &folder, name)) {
                let text = format!("`{name}` has no example: give it one where it is defined, or here");
                findings.push(file.finding(name.span().start().line, text));
            }
        }
    }
    findings
}

/// Returns the folder with the sources of a crate of the tree.
fn folder_of(name: &str) -> Option<String> {
    let name = name.strip_prefix("tasuki_")?;
    Some(format!("{}/src/", name.replace("fabric_", "fabrics/")))
}

/// The names of the items that a `use` names.
fn leaves(tree: &UseTree) -> Vec<&Ident> {
    match tree {
        UseTree::Path(path) => leaves(&path.tree),
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Name(name) => vec![&name.ident],
        UseTree::Rename(name) => vec![&name.ident],
        UseTree::Glob(_) => Vec::new(),
    }
}

/// Returns true if a public item or a module of that name below the folder has an example.
fn has_example(tree: &Tree, folder: &str, name: &Ident) -> bool {
    let of_module = [format!("/{name}.rs"), format!("/{name}/mod.rs")];
    tree.rust().filter(|(file, _)| file.below(folder)).any(|(file, rust)| {
        let is_module = of_module.iter().any(|end| file.path.ends_with(end.as_str()));
        let has_own = |item: &Public<'_>| item.name == name && item.attributes.iter().any(has_fence);
        is_module && rust.syntax.attrs.iter().any(has_fence)
            || rust.syntax.items.iter().flat_map(public_items).any(|item| has_own(&item))
    })
}

/// Returns a finding for each public item of the crate that breaks the rule.
fn find(tree: &Tree, breaks: impl Fn(&Public<'_>) -> bool, text: impl Fn(&Ident) -> String) -> Vec<Finding> {
    let sources = tree.rust().filter(|(file, _)| is_shown(file));
    let items = sources.flat_map(|(file, rust)| {
        rust.syntax.items.iter().flat_map(public_items).map(move |item| (file, item))
    });
    let broken = items.filter(|(_, item)| breaks(item));
    broken.map(|(file, item)| file.finding(item.name.span().start().line, text(item.name))).collect()
}

/// A public item.
struct Public<'a> {
    name: &'a Ident,
    attributes: &'a [Attribute],
    /// True for a struct, an enum, a trait or an alias; false for a function or a constant.
    is_type: bool,
}

/// The public items that this item is or contains. Those of private modules and of implementations of traits are none.
fn public_items(item: &Item) -> Vec<Public<'_>> {
    let (visibility, attributes, name, is_type) = match item {
        Item::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident, false),
        Item::Const(item) => (&item.vis, &item.attrs, &item.ident, false),
        Item::Static(item) => (&item.vis, &item.attrs, &item.ident, false),
        Item::Struct(item) => (&item.vis, &item.attrs, &item.ident, true),
        Item::Enum(item) => (&item.vis, &item.attrs, &item.ident, true),
        Item::Union(item) => (&item.vis, &item.attrs, &item.ident, true),
        Item::Trait(item) => (&item.vis, &item.attrs, &item.ident, true),
        Item::Type(item) => (&item.vis, &item.attrs, &item.ident, true),
        Item::Impl(item) => return item.items.iter().filter_map(public_member).collect(),
        Item::Mod(item) if matches!(item.vis, Visibility::Public(_)) => {
            return item.content.iter().flat_map(|(_, items)| items).flat_map(public_items).collect();
        }
        _ => return Vec::new(),
    };
    let is_public = matches!(visibility, Visibility::Public(_));
    Vec::from_iter(is_public.then_some(Public { name, attributes, is_type }))
}

/// The public function or constant that this item of an implementation is.
fn public_member(item: &ImplItem) -> Option<Public<'_>> {
    let (visibility, attributes, name) = match item {
        ImplItem::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
        ImplItem::Const(item) => (&item.vis, &item.attrs, &item.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then_some(Public { name, attributes, is_type: false })
}

/// Returns true for a line of documentation that begins or ends an example.
fn has_fence(attribute: &Attribute) -> bool {
    let Meta::NameValue(pair) = &attribute.meta else { return false };
    let Expr::Lit(value) = &pair.value else { return false };
    matches!(&value.lit, Lit::Str(line) if pair.path.is_ident("doc") && line.value().contains("```"))
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
        unused(&Tree::of(files)).iter().map(|finding| finding.line).collect()
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
        assert_eq!(check(&Tree::of(&[("core/src/a.rs", source)])).len(), 1, "the rule guards nothing");
    }

    fn lines_without_own(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[("tasuki/src/a.rs", text), ("core/src/a.rs", "pub fn f() {}")]);
        without_own(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn public_items_without_an_example_are_found() {
        let text = "/// A.\npub struct A;\nimpl A {\n/// `go`.\npub fn go() {}\npub const MOST: u8 = 1;\n}\n\
            pub fn f() {}\npub enum E {}\npub trait T {}\npub type U = u8;\npub mod m {\npub struct B;\n}\n";
        assert_eq!(lines_without_own(text), [2, 5, 6, 8, 9, 10, 11, 13]);
    }

    #[test]
    fn items_with_an_example_and_those_that_nobody_sees_pass() {
        let text = "/// A.\n///\n/// ```\n/// a();\n/// ```\npub fn a() {}\n#[doc(hidden)]\npub fn b() {}\n\
            pub(crate) fn c() {}\nfn d() {}\nmod sealed { pub trait Sealed {} }\n\
            impl T for A {\nfn go() {}\n}\npub use x::Y;\n";
        assert_eq!(lines_without_own(text), NO_LINES);
    }

    #[test]
    fn items_of_other_crates_without_an_example_are_found() {
        let core = ("core/src/a.rs", "/// ```\n/// ```\npub struct A;\npub struct B;\n");
        let module = ("core/src/m/mod.rs", "//! ```\n//! ```\n");
        let sim = ("fabrics/sim/src/b.rs", "/// ```\n/// ```\npub struct B;\n");
        let found = |text: &str| {
            let tree = Tree::of(&[("tasuki/src/a.rs", text), core, module, sim]);
            without_any(&tree).iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        let text = "pub use tasuki_core::a::{A,\nB as C};\npub use tasuki_core::m;\npub use tasuki_core::n;\n\
            pub use tasuki_fabric_sim::B;\npub use crate::D;\nuse tasuki_core::a::B;\n";
        assert_eq!(found(text), [2, 4]);
        assert_eq!(found("/// ```\n/// ```\npub use tasuki_core::a::B;\n"), NO_LINES);
    }
}
