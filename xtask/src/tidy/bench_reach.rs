//! The bench measures what users get: its cases reach our library through the crate `tasuki` only. Its limits
//! measure the machine below the library, so their files are free.

use super::tokens::{identifiers, line_of};
use crate::tree::{Finding, Tree};

const BENCH: &str = "tools/src/bench/";
const LIMIT: &str = "tools/src/bench/limit";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.vacant(BENCH).into_iter().collect();
    for (file, rust) in tree.rust().filter(|(file, _)| file.below(BENCH) && !file.below(LIMIT)) {
        let ours =
            identifiers(&rust.tokens).into_iter().filter(|ident| ident.to_string().starts_with("tasuki_"));
        findings.extend(ours.map(|ident| {
            file.finding(
                line_of(&ident),
                format!("{ident}: a case uses the crate tasuki only, as a user does"),
            )
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_reaches_below_is_found() {
        let tree = Tree::of(&[("tools/src/bench/put.rs", "use tasuki::Job;\nuse tasuki_core::base::Rank;")]);
        assert_eq!(check(&tree).iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn limits_and_users_of_the_facade_pass() {
        let tree = Tree::of(&[
            ("tools/src/bench/put.rs", "use tasuki::Job;"),
            ("tools/src/bench/limit.rs", "use tasuki_core::os;"),
            ("tools/src/bench/limit/memcpy.rs", "use tasuki_core::os;"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn an_empty_bench_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
