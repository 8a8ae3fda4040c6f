//! No file or folder is called by a word that says nothing of what is in it.

use crate::tree::{Finding, Tree};

/// Names that gather whatever has no home. (`helper` is not among them: threads that help a rank are called so.)
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helpers", "misc"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
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
