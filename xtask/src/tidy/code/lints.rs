//! Every package takes lints, version, edition, minimum toolchain and licence from the workspace.

use crate::tree::{File, Finding, Tree};
use toml::{Table, Value};

const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    tree.manifests().flat_map(check_manifest).collect()
}

fn check_manifest(file: &File) -> Vec<Finding> {
    let table: Table = file.text.parse().unwrap_or_default();
    let Some(package) = table.get("package") else { return Vec::new() };
    let mut findings = Vec::new();
    if !from_workspace(table.get("lints")) {
        findings.push(file.finding(1, "[lints] workspace = true is missing"));
    }
    for key in INHERITED.iter().filter(|key| !from_workspace(package.get(key))) {
        findings.push(file.finding(1, format!("{key}.workspace = true is missing")));
    }
    findings
}

fn from_workspace(entry: Option<&Value>) -> bool {
    entry.and_then(|entry| entry.get("workspace")?.as_bool()) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n[lints]\nworkspace = true\n";

    #[test]
    fn a_package_that_goes_its_own_way_is_found() {
        let own_version = GOOD.replace("rust-version.workspace = true", "rust-version = \"1.70\"");
        assert_eq!(check(&Tree::of(&[("core/Cargo.toml", &own_version)])).len(), 1);
        let no_lints = GOOD.replace("[lints]\nworkspace = true\n", "");
        assert_eq!(check(&Tree::of(&[("core/Cargo.toml", &no_lints)])).len(), 1);
    }

    #[test]
    fn a_package_that_inherits_passes() {
        assert_eq!(check(&Tree::of(&[("core/Cargo.toml", GOOD), ("Cargo.toml", "[workspace]\n")])), []);
    }
}
