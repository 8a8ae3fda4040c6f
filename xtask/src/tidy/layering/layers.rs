//! The folders of core form layers; each may use only itself and lower layers. The rule looks for
//! the paths `crate::layer` and `super::..::layer`, also in macros.

use crate::tidy::tokens::line_of;
use crate::tree::{File, Finding, Tree};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

const CORE: &str = "core/src/";

/// The layers, lowest first.
const LAYERS: &[&str] = &["base", "os", "segment", "node", "fabric", "queue", "engine", "bootstrap"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.vacant(CORE).into_iter().collect();
    for (file, rust) in tree.rust().filter(|(file, _)| file.below(CORE)) {
        let path = &file.path[CORE.len()..];
        if path == "lib.rs" {
            continue;
        }
        let layer = path.split(['/', '.']).next().unwrap_or_default();
        match LAYERS.iter().position(|name| *name == layer) {
            Some(height) => findings.extend(breaches(file, height, &rust.tokens)),
            None => {
                findings.push(file.finding(1, "not in a layer: name it in xtask/src/tidy/layering/layers.rs"))
            }
        }
    }
    findings
}

fn breaches(file: &File, height: usize, tokens: &TokenStream) -> Vec<Finding> {
    let mut scan = Scan { named: Vec::new() };
    scan.walk(tokens.clone(), depth(&file.path[CORE.len()..]));
    let layer_of = |ident: &Ident| LAYERS.iter().position(|name| ident == name);
    let above = scan.named.iter().filter(|ident| layer_of(ident).is_some_and(|used| used > height));
    above
        .map(|ident| file.finding(line_of(ident), format!("{} may not use {ident}", LAYERS[height])))
        .collect()
}

/// How many modules a file lies below the crate's root: 1 for `os/mod.rs` and `os.rs`, 2 for
/// `os/futex.rs`.
fn depth(path: &str) -> usize {
    let parts = path.split('/').count();
    if path.ends_with("/mod.rs") { parts - 1 } else { parts }
}

/// Collects the first name of each path that begins at the crate's root.
struct Scan {
    named: Vec<Ident>,
}

impl Scan {
    /// `depth` is the depth of the module that contains these tokens.
    fn walk(&mut self, tokens: TokenStream, depth: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    let is_module =
                        group.delimiter() == Delimiter::Brace && at >= 2 && is(&tokens[at - 2], "mod");
                    self.walk(group.stream(), depth + usize::from(is_module));
                }
                TokenTree::Ident(ident) if starts_path(&tokens[..at]) => {
                    if let Some(height) = height_of(ident, depth) {
                        self.follow(&tokens[at + 1..], height);
                    }
                }
                _ => {}
            }
        }
    }

    /// Continues after `crate`, `self` or `super`, with the number of levels that remain up to the
    /// crate's root.
    fn follow(&mut self, rest: &[TokenTree], height: usize) {
        let [first, second, next, ..] = rest else { return };
        if !(is_colon(first) && is_colon(second)) {
            return;
        }
        match next {
            TokenTree::Ident(ident) if ident == "super" => self.follow(&rest[3..], height.saturating_sub(1)),
            TokenTree::Ident(ident) if height == 0 => self.named.push(ident.clone()),
            TokenTree::Group(group) if height == 0 => self.named.extend(heads_of(group.stream())),
            _ => {}
        }
    }
}

/// Returns true if the next token begins a path and is not a later part of one. (`x: crate::y`
/// begins one.)
fn starts_path(before: &[TokenTree]) -> bool {
    !matches!(before, [.., first, second] if is_colon(first) && is_colon(second))
}

/// How far below the crate's root a path begins if it starts with this word in a module of that
/// depth.
fn height_of(start: &Ident, depth: usize) -> Option<usize> {
    match start.to_string().as_str() {
        "crate" => Some(0),
        "self" => Some(depth),
        "super" => Some(depth.saturating_sub(1)),
        _ => None,
    }
}

/// The first names of `{a::x, b::{y, z}}`: `a` and `b`.
fn heads_of(tokens: TokenStream) -> Vec<Ident> {
    let mut heads = Vec::new();
    let mut at_head = true;
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) if at_head => heads.push(ident.clone()),
            _ => {}
        }
        at_head = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
    }
    heads
}

fn is(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_path_to_a_higher_layer_is_found() {
        assert_eq!(lines("core/src/os/futex.rs", "use crate::base::Rank;\nuse crate::engine::Engine;"), [2]);
        assert_eq!(lines("core/src/base/rank.rs", "use crate::{\n    base::x,\n    os::{y, z},\n};"), [3]);
        assert_eq!(lines("core/src/segment/heap.rs", "struct A {\n    a: crate::engine::E,\n}"), [2]);
        assert_eq!(lines("core/src/segment/heap.rs", "fn f() { g!(crate::engine::h()) }"), [1]);
        assert_eq!(lines("core/src/segment/heap.rs", "macro_rules! m { () => { $crate::fabric::F } }"), [1]);
    }

    #[test]
    fn a_way_up_by_super_is_found() {
        assert_eq!(lines("core/src/os/futex.rs", "use super::super::engine::Engine;"), [1]);
        assert_eq!(lines("core/src/os/mod.rs", "use super::engine::Engine;"), [1]);
        assert_eq!(lines("core/src/os/mod.rs", "use self::super::engine::Engine;"), [1]);
        let inline = "mod tests {\n    use super::super::super::engine::E;\n}";
        assert_eq!(lines("core/src/os/futex.rs", inline), [2]);
    }

    #[test]
    fn lower_layers_the_own_and_same_named_modules_pass() {
        assert_eq!(lines("core/src/engine/mod.rs", "use crate::{base::Rank, engine::wait, os};"), NO_LINES);
        assert_eq!(
            lines("core/src/os/futex.rs", "use super::engine::Engine; use crate::os::engine::X;"),
            NO_LINES
        );
        assert_eq!(lines("core/src/os/futex.rs", "mod tests { use super::super::engine::E; }"), NO_LINES);
        assert_eq!(lines("core/src/lib.rs", "pub use crate::bootstrap::join;"), NO_LINES);
    }

    #[test]
    fn a_place_outside_the_layers_is_found() {
        assert_eq!(lines("core/src/extra/mod.rs", ""), [1]);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
