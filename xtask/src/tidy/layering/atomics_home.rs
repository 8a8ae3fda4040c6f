//! Atomics and fences come from `core/src/base/sync.rs`, which has loom's in models. A fence or an atomic from
//! elsewhere would be no part of a model, and the model would say nothing about it.

use crate::tree::{Finding, Tree};
use proc_macro2::{Spacing, TokenStream, TokenTree};

const HOME: &str = "core/src/base/sync.rs";
/// The crates whose structures ranks and threads share.
const SHARING: &[&str] =
    &["core/src/", "fabrics/shm/src/", "fabrics/sim/src/", "message/src/", "collective/src/", "tasuki/src/"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.vacant(HOME).into_iter().collect();
    let shares = |path: &str| path != HOME && SHARING.iter().any(|folder| path.starts_with(folder));
    for (file, rust) in tree.rust().filter(|(file, _)| shares(&file.path)) {
        let mut lines = Vec::new();
        collect(rust.tokens.clone(), &mut lines);
        findings.extend(
            lines.into_iter().map(|line| file.finding(line, format!("take atomics and fences from {HOME}"))),
        );
    }
    findings
}

/// Adds the line of each path that goes through a module `atomic`, also inside macros.
fn collect(tokens: TokenStream, lines: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), lines),
            TokenTree::Ident(ident) if ident == "atomic" => {
                let is_module = matches!(tokens.get(at + 1), Some(TokenTree::Punct(colon))
                    if colon.as_char() == ':' && colon.spacing() == Spacing::Joint);
                let is_of_sync =
                    at >= 3 && matches!(&tokens[at - 3], TokenTree::Ident(sync) if sync == "sync");
                lines.extend((is_module || is_of_sync).then(|| ident.span().start().line));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: (&str, &str) = (HOME, "pub use std::sync::atomic::{AtomicU64, fence};");

    fn lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[SYNC, ("message/src/a.rs", text)]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn atomics_from_elsewhere_are_found() {
        assert_eq!(lines("use std::sync::{\n Arc,\n atomic::{AtomicU64, Ordering},\n};"), [3]);
        assert_eq!(lines("use std::sync::atomic;\nfn f() {\n assert!(atomic::fence == g);\n}"), [1, 3]);
        assert_eq!(
            lines("fn f() {\n core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);\n}"),
            [2, 2]
        );
    }

    #[test]
    fn atomics_from_home_and_other_things_of_that_name_pass() {
        let passes = "use tasuki_core::base::sync::{AtomicU64, Ordering};\nstruct S { atomic: u8 }\n\
                      fn f(worker: &Worker) { worker.atomic(1); Worker::atomic(worker, 2); }";
        assert!(lines(passes).is_empty());
    }

    #[test]
    fn programs_may_take_them_from_anywhere_and_a_missing_home_is_found() {
        let tree = Tree::of(&[SYNC, ("examples/a.rs", "use std::sync::atomic::AtomicU64;")]);
        assert_eq!(check(&tree), []);
        assert_eq!(check(&Tree::of(&[("core/src/lib.rs", "")])).len(), 1);
    }
}
