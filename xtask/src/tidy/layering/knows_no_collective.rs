//! Networks and schedules are independent of collectives: they treat the project's collectives and
//! those of users alike. No identifier there may contain a collective's name as a word. Tests may,
//! since they make schedules that do something.

use crate::tidy::tokens::line_of;
use crate::tree::{Finding, Tree};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// Folders to which the rule applies.
const BLIND: &[&str] =
    &["schedule/src/network/", "schedule/src/builder/", "schedule/src/check/", "schedule/src/simulate/"];
/// Files to which the rule applies.
const BLIND_FILES: &[&str] = &[
    "schedule/src/contract.rs",
    "schedule/src/user_defined_schedule.rs",
    "schedule/src/rank_part.rs",
    "schedule/src/step.rs",
];

/// Words of collectives' names. `reduce` is missing because it is a kind of step, and `scan`
/// because it is also a way to search.
const COLLECTIVES: &[&str] = &[
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "barrier",
    "bcast",
    "broadcast",
    "exscan",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
];

/// Names that consist of several words.
const JOINED: &[&str] = &["reduce_scatter", "all_gather", "all_reduce", "all_to_all", "prefix_sum"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        BLIND.iter().chain(BLIND_FILES).flat_map(|place| tree.vacant(place)).collect();
    let blind =
        tree.rust().filter(|(file, _)| BLIND.iter().chain(BLIND_FILES).any(|place| file.below(place)));
    for (file, rust) in blind.filter(|(file, _)| !file.path.ends_with("/tests.rs")) {
        let mut named = Vec::new();
        collect(rust.tokens.clone(), &mut named);
        findings.extend(named.iter().filter_map(|ident| {
            let word = collective(&snake(&ident.to_string()))?;
            Some(file.finding(line_of(ident), format!("{ident} names a collective: {word}")))
        }));
    }
    findings
}

/// The collective that a name mentions.
fn collective(name: &str) -> Option<&'static str> {
    let word = COLLECTIVES.iter().find(|word| name.split('_').any(|part| part == **word));
    let joined = || JOINED.iter().find(|joined| format!("_{name}_").contains(&format!("_{joined}_")));
    word.or_else(joined).copied()
}

/// Converts `ReduceScatter` and `REDUCE_SCATTER` to `reduce_scatter`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut was_lower = false;
    for letter in name.chars() {
        if was_lower && letter.is_uppercase() {
            snake.push('_');
        }
        was_lower = letter.is_lowercase();
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// All identifiers except those of test modules.
fn collect(tokens: TokenStream, found: &mut Vec<Ident>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(ident) => found.push(ident.clone()),
            TokenTree::Group(group) if !is_of_tests(&tokens[..at], group.delimiter()) => {
                collect(group.stream(), found);
            }
            _ => {}
        }
    }
}

/// Returns true if a group is the body of `mod tests`.
fn is_of_tests(before: &[TokenTree], delimiter: Delimiter) -> bool {
    let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    delimiter == Delimiter::Brace
        && matches!(before, [.., first, second] if is(first, "mod") && is(second, "tests"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::NO_LINES;

    /// All folders and files of the rule except the first.
    fn rest() -> Vec<(String, &'static str)> {
        let folders = BLIND[1..].iter().map(|folder| (format!("{folder}mod.rs"), "pub fn check() {}"));
        folders.chain(BLIND_FILES.iter().map(|file| (file.to_string(), ""))).collect()
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let rest = rest();
        let mut files: Vec<(&str, &str)> = rest.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        files.extend([("schedule/src/network/time.rs", ""), (path, text)]);
        check(&Tree::of(&files)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn names_of_collectives_are_found_however_they_are_written() {
        let path = "schedule/src/simulate/run.rs";
        assert_eq!(lines(path, "fn f() {\n    g!(is_bcast);\n}"), [2]);
        assert_eq!(lines(path, "use crate::collective::Operation::{Bcast, ReduceScatter};"), [1, 1]);
        assert_eq!(lines(path, "const ALLREDUCE_STEPS: u32 = 1;"), [1]);
        assert_eq!(lines("schedule/src/network/grid.rs", "fn barrier_hops() {}"), [1]);
    }

    #[test]
    fn steps_tests_prose_and_other_places_pass() {
        let path = "schedule/src/simulate/run.rs";
        assert_eq!(lines(path, "//! As a broadcast.\nenum D { Reduce }\nfn gathered() {}"), NO_LINES);
        assert_eq!(lines(path, "#[cfg(test)]\nmod tests { fn broadcast() {} }"), NO_LINES);
        assert_eq!(lines("schedule/src/check/tests.rs", "fn broadcast() {}"), NO_LINES);
        assert_eq!(lines("collective/src/bcast.rs", "fn bcast() {}"), NO_LINES);
    }

    #[test]
    fn folders_that_are_gone_are_found() {
        let rest = rest();
        let files: Vec<(&str, &str)> = rest.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        assert_eq!(check(&Tree::of(&files)).len(), 1);
    }
}
