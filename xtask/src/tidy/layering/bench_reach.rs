//! The bench measures what users get: its cases use only the crate `tasuki`. Its files for limits
//! measure the machine below the library and may use anything.

use crate::tidy::tokens::{identifiers, line_of};
use crate::tree::{File, Finding, Tree};

const BENCH: &str = "bench/src/";
/// The measurements for the choice of algorithms are not a case.
const TUNING: &[&str] = &["bench/src/tuning/cost_fit.rs", "bench/src/tuning/file.rs"];
/// The crate that the subcommands share does not bypass the library.
const SHARED: &str = "tasuki_command";
const LIMIT: &str = "bench/src/limit";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.vacant(BENCH).into_iter().collect();
    for (file, rust) in tree.rust().filter(|(file, _)| is_case(file)) {
        let ours = identifiers(&rust.tokens)
            .into_iter()
            .filter(|ident| ident.to_string().starts_with("tasuki_") && ident != SHARED);
        findings.extend(ours.map(|ident| {
            file.finding(
                line_of(&ident),
                format!("{ident}: a case uses the crate tasuki only, as a user does"),
            )
        }));
    }
    findings
}

fn is_case(file: &File) -> bool {
    file.below(BENCH) && !file.below(LIMIT) && !TUNING.contains(&file.path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_reaches_below_is_found() {
        let tree = Tree::of(&[("bench/src/put.rs", "use tasuki::Job;\nuse tasuki_core::base::Rank;")]);
        assert_eq!(check(&tree).iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn limits_and_users_of_the_facade_pass() {
        let tree = Tree::of(&[
            ("bench/src/put.rs", "use tasuki::Job;"),
            ("bench/src/limit.rs", "use tasuki_core::os;"),
            ("bench/src/limit/memcpy.rs", "use tasuki_core::os;"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn an_empty_bench_is_found() {
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
