//! Comments contain no code: the history keeps old code.

use crate::tidy::line_comment;
use crate::tree::{Finding, Tree};

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in tree.rust() {
        let dead = file.lines().filter(|(_, line)| line_comment::plain(line).is_some_and(is_code));
        findings.extend(
            dead.map(|(line, _)| file.finding(line, "code in a comment: delete it, history keeps it")),
        );
    }
    findings
}

/// Returns true if the text is a whole Rust statement with an effect. Prose that ends with a
/// semicolon hardly ever parses.
fn is_code(text: &str) -> bool {
    text.ends_with(';') && text.contains(['(', '=', ':']) && syn::parse_str::<syn::Stmt>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_in_comments_are_found() {
        let tree = Tree::of(&[(
            "core/src/a.rs",
            "fn f() {\n    // let x = g();\n    // use a::b;\n    // g(1);\n}",
        )]);
        assert_eq!(check(&tree).iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn prose_and_doc_examples_pass() {
        let text = "//! f(x);\n/// g(x);\nfn f() {} // g(x);\n// It waits (as all do);\n// nothing else;\n";
        assert_eq!(check(&Tree::of(&[("core/src/a.rs", text)])), []);
    }
}
