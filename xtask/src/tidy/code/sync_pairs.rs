//! A comment `SYNC name` marks one side of a pair of release and acquire. Each name must occur at
//! both sides.

use crate::tidy::line_comment;
use crate::tree::{File, Finding, Tree};
use std::collections::BTreeMap;

const MARK: &str = "SYNC ";
pub(super) const OWN_TALK: &str = "xtask/";

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for (file, _) in tree.rust().filter(|(file, _)| !file.below(OWN_TALK)) {
        for (line, text) in file.lines() {
            for name in names(text) {
                let message = format!("SYNC {name} stands nowhere else: name its other side, too");
                places.entry(name).or_default().push(file.finding(line, message));
            }
        }
    }
    places.into_values().filter(|sides| sides.len() == 1).flatten().collect()
}

/// Returns each name with one of its places.
pub(super) fn names_of(tree: &Tree) -> BTreeMap<&str, (&File, usize)> {
    let files = tree.rust().filter(|(file, _)| !file.below(OWN_TALK));
    let of_line = |file, (line, text)| names(text).into_iter().map(move |name| (name, (file, line)));
    files.flat_map(|(file, _)| file.lines().flat_map(move |line| of_line(file, line))).collect()
}

/// The names in the comment of a line.
pub(super) fn names(line: &str) -> Vec<&str> {
    let comment = line_comment::of(line).unwrap_or_default();
    let behind_marks = comment.split(MARK).skip(1);
    behind_marks.map(leading_name).filter(|name| !name.is_empty()).collect()
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lonely_side_is_found() {
        let tree = Tree::of(&[
            ("core/src/a.rs", "// SYNC wake: after the signal\nfn f() {} // SYNC sleep."),
            ("core/src/b.rs", "//! text\n// SYNC sleep pairs with a.rs"),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].file.as_str(), findings[0].line), ("core/src/a.rs", 1));
    }

    #[test]
    fn two_sides_pass_also_in_one_file() {
        let tree = Tree::of(&[(
            "core/src/a.rs",
            "/// SYNC wake, SYNC sleep\nfn f() {}\n// SYNC sleep, SYNC wake\n",
        )]);
        assert_eq!(check(&tree), []);
    }
}
