//! Comments of a line of Rust, as far as a line alone can tell.

/// The text behind the first `//` of a line, with the rest of its slashes and `!`.
pub(super) fn of(line: &str) -> Option<&str> {
    line.split_once("//").map(|(_, comment)| comment)
}

/// The text of a line that is nothing but a comment for the reader of the code (not documentation).
pub(super) fn plain(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    (!comment.starts_with(['/', '!'])).then(|| comment.trim())
}

/// Whether the line is nothing but a comment of any kind.
pub(super) fn is_whole(line: &str) -> bool {
    line.trim_start().starts_with("//")
}
