//! Every Rust file begins with `//!` and the one concept that it holds.

use crate::tree::{Finding, Tree};

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let headless = tree.rust().filter(|(file, _)| !file.text.starts_with("//!"));
    headless.map(|(file, _)| file.finding(1, "begin the file with `//!` and the concept it holds")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_head_is_found() {
        let tree = Tree::of(&[("core/src/rank.rs", "struct Rank;\n")]);
        assert_eq!(check(&tree).len(), 1);
    }

    #[test]
    fn a_file_with_head_passes() {
        let tree = Tree::of(&[("core/src/rank.rs", "//! Ranks.\nstruct Rank;\n")]);
        assert_eq!(check(&tree), []);
    }
}
