//! Cuts the output of a process into lines, so that lines of different ranks never mix. A `\r` ends
//! a line, too, so that progress bars are seen. The beginning of a line whose end does not come,
//! such as a prompt, is printed after a delay.

use std::time::{Duration, Instant};

/// How long the beginning of a line waits for the rest: longer than a program needs to write a line
/// in parts, and too short to be noticed at a prompt.
const UNFINISHED: Duration = Duration::from_millis(100);

/// Longest line that is kept together, in bytes: the launcher's buffer for each stream of a rank. A
/// longer line is printed in pieces of this size.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// What a line ends with.
pub(in crate::run) const ENDS: [u8; 2] = *b"\n\r";

/// The beginning of a line whose end has not come yet.
#[derive(Default)]
pub(crate) struct LineBuffer {
    held: Vec<u8>,
    /// When the first byte of it came.
    since: Option<Instant>,
}

impl LineBuffer {
    /// Adds bytes that were read, and passes whole lines (several at a time) to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant, mut out: impl FnMut(&[u8])) {
        let end = bytes.iter().rposition(|byte| ENDS.contains(byte)).map_or(0, |at| at + 1);
        let (whole, rest) = bytes.split_at(end);
        if !whole.is_empty() {
            if self.held.is_empty() {
                out(whole);
            } else {
                self.held.extend_from_slice(whole);
                out(&self.held);
                self.held.clear();
            }
            self.since = None;
        }
        self.held.extend_from_slice(rest);
        while self.held.len() >= LINE_BYTES_MAX {
            out(&self.held[..LINE_BYTES_MAX]);
            self.held.drain(..LINE_BYTES_MAX);
            self.since = None;
        }
        if self.held.is_empty() {
            self.since = None;
        } else {
            self.since.get_or_insert(now);
        }
    }

    /// When the unfinished line is to be printed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Some(self.since? + UNFINISHED)
    }

    /// Passes the unfinished line to `out`: its time is over, or the process writes no more.
    pub(crate) fn flush_partial(&mut self, out: impl FnOnce(&[u8])) {
        self.since = None;
        if !self.held.is_empty() {
            out(&self.held);
            self.held.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut all) = (LineBuffer::default(), Vec::new());
        for part in parts {
            lines.push(part, Instant::now(), |block| all.push(block.to_vec()));
            assert!(lines.held.len() < LINE_BYTES_MAX);
            assert_eq!(lines.deadline().is_some(), !lines.held.is_empty());
        }
        lines.flush_partial(|block| all.push(block.to_vec()));
        assert_eq!(lines.deadline(), None);
        all
    }

    #[test]
    fn a_line_waits_from_its_first_byte_on() {
        let (mut lines, start) = (LineBuffer::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        lines.push(b"a", start, |_| panic!("no line has ended"));
        lines.push(b"b", after(60), |_| panic!("no line has ended"));
        assert_eq!(lines.deadline(), Some(after(100)));
        lines.push(b"c\nd", after(70), |line| assert_eq!(line, b"abc\n"));
        assert_eq!(lines.deadline(), Some(after(170)), "another line has begun");
        lines.flush_partial(|part| assert_eq!(part, b"d"));
        lines.push(b"e\n", after(300), |line| assert_eq!(line, b"e\n"));
        assert_eq!(lines.deadline(), None);
    }

    #[test]
    fn only_whole_lines_are_passed_on() {
        assert_eq!(cut(&[b"a", b"b\nc\nd", b"\n"]), [b"ab\nc\n".to_vec(), b"d\n".to_vec()]);
    }

    #[test]
    fn a_carriage_return_ends_a_line() {
        assert_eq!(cut(&[b"1 %\r2", b" %\r\nend\n"]), [b"1 %\r".to_vec(), b"2 %\r\nend\n".to_vec()]);
    }

    #[test]
    fn a_last_line_without_end_is_kept() {
        assert_eq!(cut(&[b"a\nb"]), [b"a\n".to_vec(), b"b".to_vec()]);
        assert!(cut(&[b""]).is_empty());
    }

    #[test]
    fn long_lines_are_printed_in_pieces() {
        let (part, count) = ([b'x'; 10_000], 100);
        let pieces = cut(&vec![&part[..]; count]);
        assert!(pieces.iter().all(|piece| piece.len() <= LINE_BYTES_MAX));
        assert_eq!(pieces.concat().len(), part.len() * count);
    }
}
