//! Nothing is silenced that should be reported: no lint on documentation or SAFETY comments, no
//! general warnings, no test. (`cfg_attr(miri, ignore = "why")` is permitted where Miri cannot run
//! a test.)

use crate::tidy::tokens::identifiers;
use crate::tree::{Finding, Tree};
use syn::visit::Visit;

/// Lints that nobody may switch off.
const LINTS: &[&str] = &["warnings", "missing_docs", "undocumented_unsafe_blocks", "missing_safety_doc"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let mut attributes = Attributes { silencing: Vec::new() };
        attributes.visit_file(&rust.syntax);
        findings.extend(attributes.silencing.into_iter().map(|(line, message)| file.finding(line, message)));
    }
    findings
}

struct Attributes {
    silencing: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for Attributes {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let line = attribute.pound_token.span.start().line;
        let path = attribute.path();
        if path.is_ident("ignore") {
            self.silencing
                .push((line, "an ignored test tests nothing: make it pass or delete it".to_owned()));
        }
        if let (true, syn::Meta::List(list)) =
            (path.is_ident("allow") || path.is_ident("expect"), &attribute.meta)
        {
            let named = identifiers(&list.tokens).into_iter();
            let lints = named.filter(|ident| LINTS.iter().any(|lint| ident == lint));
            self.silencing.extend(lints.map(|lint| (line, format!("{lint} may not be switched off"))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("core/src/a.rs", text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn silenced_lints_and_tests_are_found() {
        assert_eq!(lines("//! A.\n#![allow(missing_docs)]\n"), [2]);
        assert_eq!(lines("struct A;\n#[expect(clippy::undocumented_unsafe_blocks)]\nfn f() {}\n"), [2]);
        assert_eq!(lines("#[test]\n#[ignore = \"slow\"]\nfn f() {}\n"), [2]);
    }

    #[test]
    fn other_attributes_pass() {
        let text = "#![allow(unsafe_code)]\n#[allow(clippy::too_many_arguments)]\nfn f() {}\n\
            #[cfg_attr(miri, ignore = \"opens files\")]\n#[test]\nfn g() {}\n";
        assert_eq!(lines(text), NO_LINES);
    }
}
