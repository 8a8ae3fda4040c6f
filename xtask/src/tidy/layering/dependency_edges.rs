//! Which part of the repository may depend on which: dependencies run in one direction, fabrics
//! never name what runs on them, and schedules do not know ranks' memory.

use crate::tree::{File, Finding, Tree};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Each top folder with the folders on which its packages may depend, for any purpose, tests
/// included.
const MAY_USE: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("fabrics", &["core"]),
    ("schedule", &[]),
    ("message", &["core"]),
    ("collective", &["core", "message", "schedule"]),
    ("tasuki", &["core", "fabrics", "message", "collective", "schedule"]),
    ("examples", &["tasuki", "schedule"]),
    ("bindings", &["tasuki", "bindings"]),
    ("bench", &["core", "schedule", "tasuki", "tools"]),
    ("tools", &["core", "fabrics", "schedule", "tasuki", "bench", "examples", "tools"]),
    ("tests", &["core", "fabrics", "schedule", "tasuki", "examples", "tools"]),
    ("xtask", &[]),
];

/// Tables of a manifest that name dependencies.
const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let manifests: Vec<Manifest> =
        tree.manifests().filter_map(|file| Manifest::parse(file, &mut findings)).collect();
    let homes: BTreeMap<&str, &str> = manifests.iter().filter_map(Manifest::home).collect();
    let renames: BTreeMap<String, String> = manifests.iter().flat_map(Manifest::workspace_renames).collect();
    for manifest in &manifests {
        findings.extend(manifest.breaches(&homes, &renames));
    }
    findings
}

struct Manifest<'t> {
    file: &'t File,
    table: Table,
}

impl<'t> Manifest<'t> {
    fn parse(file: &'t File, findings: &mut Vec<Finding>) -> Option<Manifest<'t>> {
        match file.text.parse() {
            Ok(table) => Some(Manifest { file, table }),
            Err(error) => {
                findings.push(file.finding(1, format!("not TOML: {error}")));
                None
            }
        }
    }

    /// The package's name and its top folder.
    fn home(&self) -> Option<(&str, &str)> {
        let name = self.table.get("package")?.get("name")?.as_str()?;
        Some((name, self.folder()?))
    }

    fn folder(&self) -> Option<&str> {
        self.file.path.split_once('/').map(|(folder, _)| folder)
    }

    /// `alias = { package = "name" }` among the workspace's dependencies.
    fn workspace_renames(&self) -> Vec<(String, String)> {
        let shared = self.table.get("workspace").and_then(|workspace| workspace.get("dependencies"));
        let entries = shared.and_then(Value::as_table).into_iter().flatten();
        entries.filter_map(|(alias, entry)| Some((alias.clone(), renamed(entry)?))).collect()
    }

    fn breaches(&self, homes: &BTreeMap<&str, &str>, renames: &BTreeMap<String, String>) -> Vec<Finding> {
        let Some(folder) = self.folder() else { return Vec::new() };
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == folder) else {
            return vec![self.file.finding(
                1,
                "a new folder: say in xtask/src/tidy/layering/dependency_edges.rs what it may use",
            )];
        };
        let mut findings = Vec::new();
        for (alias, package) in self.dependencies(renames) {
            if let Some(used) = homes.get(package.as_str()).filter(|used| !allowed.contains(used)) {
                findings.push(
                    self.file.finding(self.line_of(&alias), format!("{folder} may not depend on {used}")),
                );
            }
        }
        findings
    }

    /// Alias and package of each dependency of any kind, for any target.
    fn dependencies(&self, renames: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let targets = self.table.get("target").and_then(Value::as_table).into_iter().flatten();
        let scopes = targets.filter_map(|(_, scope)| scope.as_table()).chain([&self.table]);
        let lists = scopes.flat_map(|scope| KINDS.iter().filter_map(|kind| scope.get(*kind)?.as_table()));
        let entries = lists.flatten();
        let named = |alias: &String, entry| renamed(entry).or_else(|| renames.get(alias).cloned());
        entries.map(|(alias, entry)| (alias.clone(), named(alias, entry).unwrap_or(alias.clone()))).collect()
    }

    fn line_of(&self, alias: &str) -> usize {
        let starts = |line: &str| line.trim_start().starts_with(alias);
        self.file.lines().find(|(_, line)| starts(line)).map_or(1, |(line, _)| line)
    }
}

fn renamed(entry: &Value) -> Option<String> {
    Some(entry.get("package")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: (&str, &str) = ("core/Cargo.toml", "[package]\nname = \"tasuki-core\"\n");
    const SIM: (&str, &str) = (
        "fabrics/sim/Cargo.toml",
        "[package]\nname = \"tasuki-fabric-sim\"\n[dependencies]\ntasuki-core.workspace = true\n",
    );

    fn findings_with(manifest: &str) -> Vec<Finding> {
        check(&Tree::of(&[CORE, SIM, ("collective/Cargo.toml", manifest)]))
    }

    #[test]
    fn collectives_that_name_a_fabric_are_found_even_in_tests() {
        let findings =
            findings_with("[package]\nname = \"m\"\n[dev-dependencies]\ntasuki-fabric-sim = \"1\"\n");
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].line, findings[0].message.as_str()),
            (4, "collective may not depend on fabrics")
        );
    }

    #[test]
    fn other_names_and_targets_hide_nothing() {
        let renamed = "[target.'cfg(unix)'.dependencies]\nother = { package = \"tasuki-fabric-sim\" }\n";
        assert_eq!(findings_with(renamed).len(), 1);
        let root = "[workspace.dependencies]\nother = { package = \"tasuki-fabric-sim\", version = \"1\" }\n";
        let manifest = "[dependencies]\nother.workspace = true\n";
        assert_eq!(
            check(&Tree::of(&[CORE, SIM, ("Cargo.toml", root), ("collective/Cargo.toml", manifest)])).len(),
            1
        );
    }

    #[test]
    fn dependencies_that_run_down_pass() {
        assert_eq!(
            findings_with("[package]\nname = \"m\"\n[dependencies]\ntasuki-core = \"1\"\nlibc = \"1\"\n"),
            []
        );
    }

    #[test]
    fn an_unknown_folder_and_a_broken_manifest_are_found() {
        assert_eq!(check(&Tree::of(&[("extras/Cargo.toml", "")])).len(), 1);
        assert_eq!(check(&Tree::of(&[("core/Cargo.toml", "[")])).len(), 1);
    }
}
