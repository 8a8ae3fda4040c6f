//! Documents name files that exist. A document may leave out `src/` in a path, and a path may begin
//! at any folder.

use crate::tree::{File, Finding, Tree};

/// The change log and the notebook tell of files as they were.
const EXEMPT: &[&str] = &["CHANGELOG.md", "docs/notebook/"];
const ENDINGS: &[&str] = &[".rs", ".md"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let is_exempt = |file: &&File| EXEMPT.iter().any(|start| file.path.starts_with(start));
    let documents = tree.files.iter().filter(|file| file.path.ends_with(".md") && !is_exempt(file));
    documents.flat_map(|file| check_file(file, tree)).collect()
}

fn check_file(file: &File, tree: &Tree) -> Vec<Finding> {
    let named = file.lines().flat_map(|(line, text)| paths(text).map(move |path| (line, path)));
    let missing = named.filter(|(_, path)| !exists(path, tree));
    missing.map(|(line, path)| file.finding(line, format!("there is no file {path}"))).collect()
}

/// The names of files in a line. They contain at least one folder, so that a name alone, which is
/// often an example, passes.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let words = line.split(move |letter: char| !is_part(letter));
    words.map(|word| word.trim_start_matches("../").trim_start_matches("./")).filter(|word| {
        word.contains('/') && !word.starts_with('/') && ENDINGS.iter().any(|ending| word.ends_with(ending))
    })
}

fn exists(path: &str, tree: &Tree) -> bool {
    tree.files.iter().any(|file| {
        let short = file.path.replace("/src/", "/");
        [file.path.as_str(), &short]
            .iter()
            .any(|full| full.strip_suffix(path).is_some_and(|front| front.is_empty() || front.ends_with('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[("docs/a.md", text), ("core/src/base/error.rs", "")]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn files_that_do_not_exist_are_found() {
        let text = "See `core/src/base/error.rs`.\n`core/src/base/fault.rs`\n[a](../docs/b.md)\n";
        assert_eq!(lines(text), [2, 3]);
    }

    #[test]
    fn short_paths_and_bare_names_pass() {
        let text = "core/base/error.rs  base/error.rs\n`error.rs`, `main.rs`\n[a](../docs/a.md)\n";
        assert_eq!(lines(text), crate::tree::NO_LINES);
    }
}
