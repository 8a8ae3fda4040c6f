//! Unsafe code may only be in files whose head says so and names the invariants, and each use says
//! why it is sound.

use crate::tidy::line_comment;
use crate::tidy::tokens::{identifiers, line_of};
use crate::tree::{File, Finding, Rust, Tree};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The line of a file's head that names its invariants.
const HEAD: &str = "//! Unsafe:";
/// The attribute that permits unsafe code in a file.
const PERMIT: &str = "#![allow(unsafe_code)]";
/// Folders that may not contain unsafe code.
const SAFE_FOLDERS: &[&str] = &["schedule/", "message/", "collective/", "examples/", "xtask/"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|(file, rust)| check_file(file, rust)).collect()
}

fn check_file(file: &File, rust: &Rust) -> Vec<Finding> {
    let places: Vec<usize> =
        identifiers(&rust.tokens).iter().filter(|ident| *ident == "unsafe").map(line_of).collect();
    let Some(first) = places.first() else { return needless_permits(file) };
    if let Some(folder) = SAFE_FOLDERS.iter().find(|folder| file.below(folder)) {
        return vec![file.finding(*first, format!("{folder} has no unsafe code"))];
    }
    let mut findings = missing_head(file);
    findings.extend(unexplained(file, &rust.tokens));
    findings.extend(undocumented(file, &rust.syntax));
    findings
}

fn missing_head(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.lines().any(|(_, line)| line.strip_prefix(HEAD).is_some_and(|text| !text.trim().is_empty())) {
        findings.push(file.finding(1, format!("unsafe code: name the invariants at the head, `{HEAD} ...`")));
    }
    if !has_permit(file) {
        findings.push(file.finding(1, format!("unsafe code: {PERMIT} is missing")));
    }
    findings
}

fn needless_permits(file: &File) -> Vec<Finding> {
    let permits = file.lines().filter(|(_, line)| *line == PERMIT || line.starts_with(HEAD));
    permits.map(|(line, _)| file.finding(line, "no unsafe code here: delete this line")).collect()
}

fn has_permit(file: &File) -> bool {
    file.lines().any(|(_, line)| line == PERMIT)
}

/// Blocks, implementations and foreign blocks without a SAFETY comment.
fn unexplained(file: &File, tokens: &TokenStream) -> Vec<Finding> {
    let mut places = Vec::new();
    collect_claims(tokens.clone(), &mut places);
    let lines: Vec<&str> = file.text.lines().collect();
    let silent = places.into_iter().filter(|line| !is_explained(&lines, *line));
    silent.map(|line| file.finding(line, "say right above why this is sound: `// SAFETY: ...`")).collect()
}

/// The lines on which `unsafe` claims that something is sound: before a block, `impl` or `extern`.
fn collect_claims(tokens: TokenStream, places: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match (token, tokens.get(at + 1)) {
            (TokenTree::Group(group), _) => collect_claims(group.stream(), places),
            (TokenTree::Ident(ident), Some(next))
                if ident == "unsafe" && is_claim(next, tokens.get(at + 3)) =>
            {
                places.push(line_of(ident));
            }
            _ => {}
        }
    }
}

/// `unsafe extern "C" { .. }` claims; `unsafe extern "C" fn` asks.
fn is_claim(next: &TokenTree, after_abi: Option<&TokenTree>) -> bool {
    match next {
        TokenTree::Group(_) => is_block(next),
        TokenTree::Ident(word) if word == "extern" => after_abi.is_some_and(is_block),
        TokenTree::Ident(word) => word == "impl",
        _ => false,
    }
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Looks for the comment on the line itself, in the comment above it, and above its statement.
fn is_explained(lines: &[&str], line: usize) -> bool {
    let says = |text: &str| line_comment::of(text).is_some_and(|comment| comment.contains("SAFETY:"));
    if says(lines[line - 1]) {
        return true;
    }
    for text in lines[..line - 1].iter().rev() {
        if line_comment::is_whole(text) {
            if says(text) {
                return true;
            }
        } else if ends_something(text) {
            return false;
        }
    }
    false
}

/// Returns true if the next line does not belong to the statement.
fn ends_something(line: &str) -> bool {
    let code = line.trim();
    code.is_empty() || code.ends_with([';', '{', '}', ','])
}

/// Unsafe functions and traits whose documentation has no Safety section.
fn undocumented(file: &File, syntax: &syn::File) -> Vec<Finding> {
    let mut promises = Promises { silent: Vec::new() };
    promises.visit_file(syntax);
    let message = "say in the documentation what callers must hold: `# Safety`";
    promises.silent.into_iter().map(|line| file.finding(line, message)).collect()
}

struct Promises {
    silent: Vec<usize>,
}

impl Promises {
    fn function(&mut self, signature: &syn::Signature, attributes: &[syn::Attribute]) {
        if let syn::Safety::Unsafe(keyword) = &signature.safety {
            self.promise(keyword, attributes);
        }
    }

    fn promise(&mut self, keyword: &syn::token::Unsafe, attributes: &[syn::Attribute]) {
        if !attributes.iter().any(says_safety) {
            self.silent.push(keyword.span.start().line);
        }
    }
}

fn says_safety(attribute: &syn::Attribute) -> bool {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return false };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return false };
    pair.path.is_ident("doc") && text.value().contains("# Safety")
}

impl<'ast> Visit<'ast> for Promises {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.attrs);
        visit::visit_item_fn(self, item);
    }

    /// Functions of a trait's implementation are documented at the trait.
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        for function in &item.items {
            if let (syn::ImplItem::Fn(function), None) = (function, &item.trait_) {
                self.function(&function.sig, &function.attrs);
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, &item.attrs);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if let Some(keyword) = &item.unsafety {
            self.promise(keyword, &item.attrs);
        }
        visit::visit_item_trait(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    const HEADED: &str = "//! A.\n#![allow(unsafe_code)]\n//! Unsafe: the pointer is valid.\n";

    fn lines_at(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    /// Findings in code below a correct head, with lines counted from the code's own first line.
    fn lines(code: &str) -> Vec<usize> {
        let found = lines_at("core/src/a.rs", &format!("{HEADED}{code}"));
        found.into_iter().map(|line| line - HEADED.lines().count()).collect()
    }

    #[test]
    fn a_file_without_head_or_permit_is_found() {
        let code = "// SAFETY: it is.\nunsafe impl Send for A {}\n";
        assert_eq!(lines_at("core/src/a.rs", &format!("//! A.\n{code}")).len(), 2);
        assert_eq!(
            lines_at("core/src/a.rs", &format!("#![allow(unsafe_code)]\n//! Unsafe:\n{code}")).len(),
            1
        );
        assert_eq!(lines(code), NO_LINES);
    }

    #[test]
    fn unsafe_code_is_found_in_macros_and_in_safe_folders() {
        assert_eq!(lines_at("core/src/a.rs", "macro_rules! m { () => { unsafe { f() } } }").len(), 3);
        let code = format!("{HEADED}// SAFETY: it is.\nunsafe impl Send for A {{}}\n");
        assert_eq!(lines_at("message/src/a.rs", &code).len(), 1);
        assert_eq!(lines_at("examples/src/a.rs", &code).len(), 1);
    }

    #[test]
    fn a_head_that_promises_nothing_is_found() {
        assert_eq!(lines_at("core/src/a.rs", HEADED), [2, 3]);
    }

    #[test]
    fn silent_blocks_and_implementations_are_found() {
        assert_eq!(lines("fn f() {\n    unsafe { g() }\n}"), [2]);
        assert_eq!(lines("// Because.\nunsafe impl Send for A {}"), [2]);
        assert_eq!(lines("unsafe extern \"C\" {}"), [1]);
        let second_unexplained = "fn f() {\n    // SAFETY: a\n    unsafe { g() };\n    unsafe { g() }\n}";
        assert_eq!(lines(second_unexplained), [4]);
    }

    #[test]
    fn explained_blocks_pass_also_inside_a_statement() {
        assert_eq!(
            lines("fn f() {\n    // SAFETY: a\n    // b\n    let x =\n        unsafe { g() };\n}"),
            NO_LINES
        );
        assert_eq!(lines("fn f() {\n    h(unsafe { g() }) // SAFETY: a\n}"), NO_LINES);
        assert_eq!(lines("// SAFETY: a\n#[allow(x)]\nunsafe impl Send for A {}"), NO_LINES);
    }

    #[test]
    fn unsafe_functions_and_traits_without_safety_section_are_found() {
        assert_eq!(lines("/// Reads.\npub unsafe fn f() {}"), [2]);
        assert_eq!(lines("impl A {\n    unsafe fn f() {}\n}"), [2]);
        assert_eq!(lines("trait A {\n    unsafe fn f();\n}"), [2]);
        assert_eq!(lines("unsafe trait A {}"), [1]);
        assert_eq!(lines("/// Reads.\n/// # Safety\n/// Valid.\npub unsafe fn f() {}"), NO_LINES);
        assert_eq!(lines("impl A for B {\n    unsafe fn f() {}\n}"), NO_LINES);
    }
}
