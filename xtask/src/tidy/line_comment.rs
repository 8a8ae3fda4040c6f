//! Comments of a line of Rust, as far as a single line shows them.

/// The text after the first `//` of a line, including further slashes and `!`.
pub(super) fn of(line: &str) -> Option<&str> {
    line.split_once("//").map(|(_, comment)| comment)
}

/// The text of a line that is only a comment for readers of the code, not documentation.
pub(super) fn plain(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    (!comment.starts_with(['/', '!'])).then(|| comment.trim())
}

/// Returns true if the line is only a comment, of any kind.
pub(super) fn is_whole(line: &str) -> bool {
    line.trim_start().starts_with("//")
}
