//! Words that were names here and told a reader nothing. The field has words for all of them
//! (docs/glossary.md).

use crate::tree::{File, Finding, Tree};

/// Each retired word, in lower case, with what to say instead.
const RETIRED: &[(&str, &str)] = &[
    ("baton", "owner lock"),
    ("berth", "ring span"),
    ("complaint", "mismatch, or the error of a wait probe"),
    ("crossing", "kernel copy"),
    ("deed", "action"),
    ("errand", "remote note"),
    ("exhibit", "exposed buffer"),
    ("farewell", "shutdown"),
    ("habit", "schedule cache, or cached schedule"),
    ("husk", "closed slot bank"),
    ("inlet", "stdin"),
    ("outlet", "stdout"),
    ("pace", "step, or step specification"),
    ("porter", "coordinator"),
    ("quarantine", "deferred free"),
    ("roster", "local queues"),
    ("seat", "rank state"),
    ("sentry", "monitor"),
    ("shelf", "work queue"),
    ("stray", "late match"),
    ("visitor", "connection"),
    ("walker", "executor"),
];
/// The change log keeps old words; this file must name what it looks for.
const EXEMPT: &[&str] = &["CHANGELOG.md", "xtask/src/tidy/text/retired_words.rs"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str())).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let lines = file.lines().chain([(1, file.path.as_str())]);
    let found = lines.flat_map(|(line, text)| words(text).map(move |word| (line, word)));
    let retired = found.filter_map(|(line, word)| {
        let singular = word.strip_suffix('s').unwrap_or(&word);
        let (old, new) = RETIRED.iter().find(|(old, _)| *old == word || *old == singular)?;
        Some(file.finding(line, format!("`{old}` is retired: say {new}")))
    });
    retired.collect()
}

/// The words of a line in lower case. Identifiers are split, both `with_bars` and `InCamelCase`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in text.chars() {
        if !letter.is_alphabetic() || was_lower && letter.is_uppercase() {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if letter.is_alphabetic() {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
    }
    words.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn retired_words_are_found_in_names_prose_and_paths() {
        let text = "struct BatonGrip;\nfn all_deeds() {}\n// Of a husk.\nconst A: &str = \"a berth\";\n";
        assert_eq!(lines("core/src/a.rs", text), [1, 2, 3, 4]);
        assert_eq!(lines("docs/a.md", "A rank's seat.\n"), [1]);
        assert_eq!(lines("collective/src/habit.rs", ""), [1]);
    }

    #[test]
    fn words_that_contain_one_pass() {
        let text = "// indeed, an inhabitant of the archipelago reports\nfn shelfless() {}\n";
        assert_eq!(lines("core/src/a.rs", text), crate::tree::NO_LINES);
    }
}
