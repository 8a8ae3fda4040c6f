//! Words that must not stay in the sources: marks of unfinished work, and paths of one machine.

use crate::tidy::line_comment;
use crate::tree::{File, Finding, Tree};

/// Marks of unfinished work: finish it, or write an issue.
const UNFINISHED: &[&str] = &["TODO", "FIXME", "XXX"];
/// Folders that a reader does not have. Code may name them, comments and documentation may not.
const MACHINE_PLACES: &[&str] = &["/work/", "/tmp/", "/root/", "/home/"];
/// This file must name the words that it looks for.
const SELF: &str = "xtask/src/tidy/text/unfinished_marks.rs";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| file.path != SELF).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        if let Some(word) = UNFINISHED.iter().find(|word| has_word(text, word)) {
            findings.push(file.finding(line, format!("{word}: finish it, or write an issue")));
        }
        if let Some(place) = MACHINE_PLACES.iter().find(|place| prose(file, text).contains(**place)) {
            findings.push(file.finding(line, format!("{place} is a place of one machine")));
        }
    }
    findings
}

/// The part of a line that is prose for readers.
fn prose<'t>(file: &File, line: &'t str) -> &'t str {
    if file.rust.is_some() {
        return line_comment::of(line).unwrap_or_default();
    }
    if file.path.ends_with(".md") { line } else { "" }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn marks_of_unfinished_work_are_found_everywhere() {
        assert_eq!(lines("core/src/a.rs", "fn f() {}\nfn g() {} // TODO: more\n"), [2]);
        assert_eq!(lines("docs/a.md", "Text.\nFIXME\n"), [2]);
        assert_eq!(lines("core/Cargo.toml", "# XXX\n"), [1]);
    }

    #[test]
    fn places_of_a_machine_are_found_in_prose() {
        assert_eq!(lines("docs/a.md", "see /work/x\n"), [1]);
        assert_eq!(lines("core/src/a.rs", "/// As in /tmp/x.\nfn f() {}\n"), [1]);
    }

    #[test]
    fn code_may_name_folders_and_words_may_contain_marks() {
        assert_eq!(lines("core/src/a.rs", "const A: &str = \"/tmp/x\"; // XXXX, TODOS\n"), NO_LINES);
    }
}
