//! Words that were names here and told a reader nothing. The field has words for all of them
//! (docs/glossary.md).

use crate::tidy::tokens;
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
    ("grip", "hold of the owner lock"),
    ("habit", "schedule cache, or cached schedule"),
    ("husk", "closed slot bank"),
    ("inlet", "stdin"),
    ("outlet", "stdout"),
    ("pace", "step, or step specification"),
    ("porter", "coordinator"),
    ("quarantine", "deferred free"),
    ("riddle", "the question by name"),
    ("roster", "local queues"),
    ("seat", "rank state"),
    ("sentry", "monitor"),
    ("shelf", "work queue"),
    ("spool", "buffered send, or send buffer"),
    ("spooled", "buffered"),
    ("stray", "late match"),
    ("visitor", "connection"),
    ("walker", "executor"),
];
/// Each word that is plain English in prose but says nothing as a name, with what to say instead.
/// Only identifiers of Rust code may not contain it.
///
/// Not in the list are words of the old names that are the field's words for something else: arrangement, half, host,
/// machine, notice, park, spot, stride, trial, walk.
const RETIRED_IN_NAMES: &[(&str, &str)] = &[
    ("anew", "again, or repeating"),
    ("attend", "run, or poll"),
    ("crew", "number of ranks"),
    ("door", "server"),
    ("flights", "in flight"),
    ("guest", "rank state"),
    ("hear", "read, or receive"),
    ("heard", "received, or the value's content"),
    ("inquire", "test, or is pending"),
    ("judge", "check, or exit status"),
    ("laid", "copied, or placed"),
    ("lent", "borrowed, or call buffers"),
    ("loan", "revocable buffer"),
    ("pump", "progress"),
    ("roll", "call log, or map of identifiers"),
    ("sight", "inspect"),
    ("standing", "statistics"),
    ("talking", "sending"),
    ("tell", "report, or send"),
    ("told", "reported, or the value's content"),
    ("travelling", "offloaded"),
    ("untold", "unreported"),
];
/// What a line contains that explains a word of the paper FMPL by ours.
const QUOTES_FMPL: &str = "FMPL: ";
/// How the names begin that papers and their libraries have given to calls.
const OF_PAPERS: &[&str] = &["acp_", "blacs_", "fmpl_", "nicam_"];
/// The change log keeps old words; this file must name what it looks for.
const EXEMPT: &[&str] = &["CHANGELOG.md", "xtask/src/tidy/text/retired_words.rs"];

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Finding> {
    let files = || tree.files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str()));
    files().flat_map(check_file).chain(files().flat_map(check_identifiers)).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let lines = file.lines().chain([(1, file.path.as_str())]);
    let own = lines.filter(|(_, text)| !text.contains(QUOTES_FMPL));
    let found = own.flat_map(|(line, text)| words(text).map(move |word| (line, word)));
    found.filter_map(|(line, word)| finding(file, line, &word, RETIRED)).collect()
}

/// Finds words in identifiers, including those inside macros, but not in comments and strings.
fn check_identifiers(file: &File) -> Vec<Finding> {
    let Some(rust) = &file.rust else { return Vec::new() };
    let identifiers = tokens::identifiers(&rust.tokens);
    let found = identifiers.iter().flat_map(|identifier| {
        let (line, name) = (tokens::line_of(identifier), identifier.to_string());
        let name = if OF_PAPERS.iter().any(|prefix| name.starts_with(prefix)) { "" } else { &name };
        words(name).map(move |word| (line, word)).collect::<Vec<_>>()
    });
    found.filter_map(|(line, word)| finding(file, line, &word, RETIRED_IN_NAMES)).collect()
}

fn finding(file: &File, line: usize, word: &str, retired: &[(&str, &str)]) -> Option<Finding> {
    let singular = word.strip_suffix('s').unwrap_or(word);
    let (old, new) = retired.iter().find(|(old, _)| *old == word || *old == singular)?;
    Some(file.finding(line, format!("`{old}` is retired: say {new}")))
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
        let text = "struct BatonTaker;\nfn all_deeds() {}\n// Of a husk.\nconst A: &str = \"a berth\";\n";
        assert_eq!(lines("core/src/a.rs", text), [1, 2, 3, 4]);
        assert_eq!(lines("docs/a.md", "A rank's seat.\n"), [1]);
        assert_eq!(lines("collective/src/habit.rs", ""), [1]);
    }

    #[test]
    fn words_of_prose_are_found_in_names_only() {
        let text =
            "// Rank 0 is told.\nfn told() {}\nstruct Heard;\nconst A: &str = \"heard\";\nf!(told_apart);\n";
        assert_eq!(lines("core/src/a.rs", text), [2, 3, 5]);
    }

    #[test]
    fn the_spool_is_a_word_of_the_paper_only() {
        let text = "/// Buffered sends (FMPL: spool).\nfn spooled() {}\n/// The spool.\nstruct Grip;\n";
        assert_eq!(lines("core/src/a.rs", text), [2, 3, 4]);
    }

    #[test]
    fn calls_of_papers_keep_their_names() {
        assert_eq!(lines("bindings/c/src/a.rs", "fn acp_inquire() {}\nfn inquire() {}\n"), [2]);
    }

    #[test]
    fn words_that_contain_one_pass() {
        let text = "// indeed, an inhabitant of the archipelago reports\nfn shelfless() {}\n";
        assert_eq!(lines("core/src/a.rs", text), crate::tree::NO_LINES);
    }
}
