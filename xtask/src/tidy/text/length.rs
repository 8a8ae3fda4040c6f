//! Advice on files, lines and functions that are too long. A long file may hold a second concept.

use crate::tree::{File, Finding, Rust, Tree};
use syn::visit::{self, Visit};

/// A longer file probably holds a second concept.
const FILE_LINES_MAX: usize = 500;
/// The limit for lines that rustfmt cannot break: comments and strings.
const LINE_CHARS_MAX: usize = 120;
/// A function that fits on a screen; the median should be near ten.
const FUNCTION_LINES_MAX: usize = 70;

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|(file, rust)| check_file(file, rust)).collect()
}

fn check_file(file: &File, rust: &Rust) -> Vec<Finding> {
    let mut findings = Vec::new();
    let count = file.lines().count();
    if count > FILE_LINES_MAX {
        let message =
            format!("{count} lines, at most {FILE_LINES_MAX}: find the second idea and move it out");
        findings.push(file.finding(FILE_LINES_MAX + 1, message));
    }
    for (line, text) in file.lines().filter(|(_, text)| !text.contains("://")) {
        let chars = text.chars().count();
        if chars > LINE_CHARS_MAX {
            findings.push(file.finding(line, format!("{chars} characters, at most {LINE_CHARS_MAX}")));
        }
    }
    let mut functions = Functions { long: Vec::new() };
    functions.visit_file(&rust.syntax);
    findings.extend(functions.long.into_iter().map(|(line, name, lines)| {
        file.finding(line, format!("{name} has {lines} lines, at most {FUNCTION_LINES_MAX}"))
    }));
    findings
}

/// Functions past the limit: line, name, length.
struct Functions {
    long: Vec<(usize, String, usize)>,
}

impl Functions {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let lines = body.brace_token.span.close().end().line - first + 1;
        if lines > FUNCTION_LINES_MAX {
            self.long.push((first, signature.ident.to_string(), lines));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("core/src/a.rs", text)])).iter().map(|finding| finding.line).collect()
    }

    fn function(body_lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(body_lines))
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(lines(&"// x\n".repeat(FILE_LINES_MAX + 1)), [FILE_LINES_MAX + 1]);
        assert_eq!(lines(&"// x\n".repeat(FILE_LINES_MAX)), NO_LINES);
    }

    #[test]
    fn a_long_line_is_found_but_for_addresses() {
        let long = "x".repeat(LINE_CHARS_MAX);
        assert_eq!(lines(&format!("fn f() {{}}\n// {long}\n")), [2]);
        assert_eq!(lines(&format!("// https://{long}\n// {}\n", &long[3..])), NO_LINES);
    }

    #[test]
    fn long_functions_are_found_wherever_they_stand() {
        let (good, bad) = (function(FUNCTION_LINES_MAX - 2), function(FUNCTION_LINES_MAX - 1));
        assert_eq!(lines(&good), NO_LINES);
        assert_eq!(lines(&bad), [1]);
        assert_eq!(lines(&format!("impl A {{\n{bad}}}")), [2]);
        assert_eq!(lines(&format!("trait A {{\n{bad}}}")), [2]);
        assert_eq!(lines(&format!("mod a {{\n{bad}}}")), [2]);
    }
}
