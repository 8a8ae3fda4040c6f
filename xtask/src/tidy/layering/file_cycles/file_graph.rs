//! Which source files of one crate use which: an edge goes to the file that defines what a path
//! names, through all re-exports.

use super::named_paths::{FileNames, ModulePath, Names};
use crate::tree::{File, Rust};
use std::collections::BTreeMap;
use syn::Item;

/// For each file the files that it uses, and the first line that does so.
pub(super) type FileGraph = BTreeMap<String, BTreeMap<String, usize>>;

/// Re-exports of re-exports are followed as far as this, since imports may name each other in a
/// circle.
const HOPS_MAX: usize = 16;

/// The graph of the crate whose sources are `files`, with paths below the folder `source`.
pub(super) fn file_graph(source: &str, files: &[(&File, &Rust)]) -> FileGraph {
    let modules = Modules::of(source, files);
    let mut graph = FileGraph::new();
    for (path, module) in &modules.all {
        if modules.is_node(&module.file) {
            let used = graph.entry(module.file.clone()).or_default();
            for (file, line) in modules.uses(path, module) {
                let first = used.entry(file).or_insert(line);
                *first = line.min(*first);
            }
        }
    }
    graph
}

impl Names {
    /// Returns true if a path begins outside of the module, itself or by an import. What a module
    /// takes from the modules that it declares does not count: they are its parts.
    fn leads_out(&self, parts: &[String]) -> bool {
        let begins_outside =
            |parts: &[String]| matches!(parts, [first, ..] if first == "crate" || first == "super");
        let import = parts.first().and_then(|first| self.imports.get(first));
        begins_outside(parts) || import.is_some_and(|target| begins_outside(target))
    }
}

struct Module {
    file: String,
    names: Names,
}

/// The modules of a crate, by their paths.
struct Modules {
    all: BTreeMap<ModulePath, Module>,
    /// Files that only declare modules and re-export: a use of them is one of what they re-export.
    lists: Vec<String>,
}

impl Modules {
    fn of(source: &str, files: &[(&File, &Rust)]) -> Modules {
        let mut modules = Modules { all: BTreeMap::new(), lists: Vec::new() };
        let mut test_modules = Vec::new();
        for (file, rust) in files {
            let names = FileNames::of(&rust.tokens, &module_path(&file.path[source.len()..]));
            test_modules.extend(names.test_modules);
            let in_file = |names| Module { file: file.path.clone(), names };
            modules.all.extend(names.modules.into_iter().map(|(path, names)| (path, in_file(names))));
            if rust.syntax.items.iter().all(is_list_item) {
                modules.lists.push(file.path.clone());
            }
        }
        modules.all.retain(|path, _| !test_modules.iter().any(|tests| path.starts_with(tests)));
        modules
    }

    fn is_node(&self, file: &String) -> bool {
        !self.lists.contains(file)
    }

    /// The other files that a module uses, with the line of each use.
    fn uses(&self, path: &ModulePath, module: &Module) -> Vec<(String, usize)> {
        let leading = module.names.paths.iter().filter(|named| module.names.leads_out(&named.parts));
        let found = leading.filter_map(|named| {
            let home = self.home(&self.absolute(path, &named.parts)?, HOPS_MAX)?;
            Some((home.clone(), named.line))
        });
        found.filter(|(file, _)| *file != module.file && self.is_node(file)).collect()
    }

    /// Converts a path as it is written in the module to one from the crate's root; `None` for
    /// one that begins with another crate.
    fn absolute(&self, module: &ModulePath, parts: &[String]) -> Option<ModulePath> {
        let mut base = module.as_slice();
        let mut rest = parts;
        match parts.first()?.as_str() {
            "crate" => (base, rest) = (&[], &parts[1..]),
            "self" => rest = &parts[1..],
            "super" => {}
            first => {
                let is_child = self.all.contains_key(&[base, &[first.to_owned()]].concat());
                let imported = self.all.get(module).and_then(|module| module.names.imports.get(first));
                // `use a::b::{self}` would otherwise explain `a` by itself.
                let is_import =
                    imported.is_some_and(|target| target.first().is_some_and(|name| name != first));
                if !is_child && !is_import {
                    return None;
                }
            }
        }
        while let [first, tail @ ..] = rest
            && first == "super"
        {
            (base, rest) = (&base[..base.len().checked_sub(1)?], tail);
        }
        Some([base, rest].concat())
    }

    /// The file that defines what a path from the crate's root names.
    fn home(&self, path: &[String], hops: usize) -> Option<&String> {
        let (mut depth, mut module) = (0, self.all.get(&[][..])?);
        while depth < path.len()
            && let Some(child) = self.all.get(&path[..=depth])
        {
            (depth, module) = (depth + 1, child);
        }
        let import = path.get(depth).and_then(|name| module.names.imports.get(name));
        let target = import.filter(|_| hops > 0).and_then(|parts| {
            let target = self.absolute(&path[..depth].to_vec(), parts)?;
            self.home(&[&target, &path[depth + 1..]].concat(), hops - 1)
        });
        target.or(Some(&module.file))
    }
}

/// The path of a file's module: `a::b` for `a/b.rs` and for `a/b/mod.rs`.
fn module_path(file: &str) -> ModulePath {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    if ["lib", "main"].contains(&stem) {
        return ModulePath::new();
    }
    stem.strip_suffix("/mod").unwrap_or(stem).split('/').map(str::to_owned).collect()
}

fn is_list_item(item: &Item) -> bool {
    match item {
        Item::Mod(module) if module.ident == "tests" => true,
        Item::Mod(module) => module.content.iter().all(|(_, items)| items.iter().all(is_list_item)),
        item => matches!(item, Item::Use(_)),
    }
}
