//! No file or folder has a name that says nothing about its content.

use crate::tree::{Finding, Tree};

/// Names for collections of unrelated code. (`helper` is allowed: it is the term for threads that
/// help a rank.)
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helpers", "misc"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if let Some(word) = file.path.split(['/', '.', '_', '-']).find(|part| EMPTY_NAMES.contains(part)) {
            findings
                .push(file.finding(1, format!("`{word}` names no concept: call the file by what it holds")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_in_files_and_folders() {
        let paths = ["core/src/utils.rs", "tests/common/mod.rs", "tools/src/string_utils.rs"];
        assert_eq!(check(&Tree::of(&paths.map(|path| (path, "")))).len(), paths.len());
    }

    #[test]
    fn names_of_concepts_pass() {
        let paths = ["core/src/uncommon.rs", "core/src/engine/helper.rs"];
        assert_eq!(check(&Tree::of(&paths.map(|path| (path, "")))), []);
    }
}
