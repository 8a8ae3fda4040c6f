//! Cargo finds tests only in files that lie directly in `tests/`, and in folders there that have a
//! `main.rs`. Each one in another folder is named in `Cargo.toml`, because Cargo would ignore it
//! without a message.

use crate::tree::{Finding, Tree};

/// A module of tests, which is no test itself.
const SHARED: &str = "/launcher/";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let text_of =
        |path: &str| tree.files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let is_forgotten = |path: &str| {
        let Some((package, name)) = path.split_once("/tests/").filter(|(package, _)| !package.contains('/'))
        else {
            return false;
        };
        let folder = name.split('/').next().unwrap_or_default();
        let is_program = text_of(&format!("{package}/tests/{folder}/main.rs")).is_some();
        let manifest = text_of(&format!("{package}/Cargo.toml")).unwrap_or_default();
        name.contains('/')
            && !is_program
            && !path.contains(SHARED)
            && !manifest.contains(&format!("\"tests/{name}\""))
    };
    let rust = tree.rust().map(|(file, _)| file);
    rust.filter(|file| is_forgotten(&file.path))
        .map(|file| file.finding(1, "Cargo.toml does not name this test, so it never runs"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_no_manifest_names_is_found() {
        let tree = Tree::of(&[
            ("core/Cargo.toml", "[[test]]\nname = \"a\"\npath = \"tests/node/a.rs\"\n"),
            ("core/tests/node/a.rs", "//! A.\n"),
            ("core/tests/node/b.rs", "//! B.\n"),
            ("core/tests/c.rs", "//! C.\n"),
            ("core/tests/d/main.rs", "//! D.\n"),
            ("core/tests/d/e.rs", "//! E.\n"),
            ("tools/tests/launcher/mod.rs", "//! Shared.\n"),
        ]);
        let found: Vec<String> = check(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(found, ["core/tests/node/b.rs"]);
    }
}
