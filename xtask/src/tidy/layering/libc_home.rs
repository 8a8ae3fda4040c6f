//! Only `core/src/os` may call the C library; all other code uses the system through it.

use crate::tidy::tokens::{identifiers, line_of};
use crate::tree::{Finding, Tree};

const HOME: &str = "core/src/os/";
const ONLY_MANIFEST: &str = "core/Cargo.toml";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.vacant(HOME).into_iter().collect();
    for (file, rust) in tree.rust().filter(|(file, _)| !file.below(HOME)) {
        let named = identifiers(&rust.tokens).into_iter().filter(|ident| ident == "libc");
        findings.extend(named.map(|ident| file.finding(line_of(&ident), "only core/src/os may name libc")));
    }
    for manifest in tree.manifests().filter(|file| file.path.contains('/') && file.path != ONLY_MANIFEST) {
        let wanted = manifest.lines().filter(|(_, line)| line.split([' ', '.', '=']).next() == Some("libc"));
        findings.extend(wanted.map(|(line, _)| manifest.finding(line, "only core may depend on libc")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const OS: (&str, &str) = ("core/src/os/futex.rs", "fn f() { libc::getpid(); }");

    #[test]
    fn libc_elsewhere_is_found_also_in_macros() {
        let tree = Tree::of(&[
            OS,
            ("core/src/base/rank.rs", "use libc::pid_t;"),
            ("tools/src/main.rs", "fn f() {\n assert!(libc::getpid() > 0);\n}"),
            ("tools/Cargo.toml", "[dependencies]\nlibc.workspace = true\n"),
        ]);
        assert_eq!(check(&tree).iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 2, 2]);
    }

    #[test]
    fn libc_at_home_and_in_words_passes() {
        let tree = Tree::of(&[
            OS,
            ("core/src/lib.rs", "//! os is the only caller of libc"),
            ("core/Cargo.toml", "[dependencies]\nlibc.workspace = true\n"),
            ("Cargo.toml", "[workspace.dependencies]\nlibc = \"0.2\"\n"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn an_empty_home_is_found() {
        assert_eq!(check(&Tree::of(&[("core/src/lib.rs", "")])).len(), 1);
    }
}
