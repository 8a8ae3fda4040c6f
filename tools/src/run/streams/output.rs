//! A buffered output stream of the launcher, written without blocking.

use crate::run::line_buffer::ENDS;
use crate::run::poll_sources::ready_size;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// If this number of bytes waits, the launcher does not read the ranks' pipes: a slow reader then
/// slows the ranks, as it would without a launcher.
const FULL: usize = 256 << 10;

/// A writer of whole lines from several sources.
pub(crate) struct OutputStream<F> {
    to: F,
    /// Bytes that can be written at once without waiting, when poll(2) says so.
    size: usize,
    waiting: Vec<u8>,
    /// The unfinished last line, if there is one.
    amid: Option<Amid>,
    /// Sources with a line that the stream ended after a `\r`. If a `
    /// ` follows, it is dropped.
    ended: Vec<usize>,
    closed: bool,
}

/// A line without an end.
#[derive(Clone, Copy)]
struct Amid {
    /// The process that wrote it.
    source: usize,
    /// True if the text ends with `\r`, so that the next text overwrites it.
    over: bool,
}

impl Amid {
    /// The unfinished line after a piece of `source`.
    fn after(piece: &[u8], source: usize) -> Option<Amid> {
        (!piece.ends_with(b"\n")).then_some(Amid { source, over: piece.ends_with(b"\r") })
    }
}

impl<F: AsFd> OutputStream<F> {
    /// Writes to `to`.
    pub(crate) fn new(to: F) -> OutputStream<F> {
        let size = ready_size(to.as_fd());
        OutputStream { to, size, waiting: Vec::new(), amid: None, ended: Vec::new(), closed: false }
    }

    /// Adds lines of `source`, each with `label` before it. Ends an unfinished line of another
    /// source first.
    pub(crate) fn put(&mut self, source: usize, label: &str, lines: &[u8]) {
        if self.closed || lines.is_empty() {
            return;
        }
        let lines = self.without_end_given(source, lines);
        if lines.is_empty() {
            return;
        }
        if let Some(amid) = self.amid.take_if(|amid| amid.source != source) {
            self.waiting.push(b'\n');
            if amid.over {
                self.ended.push(amid.source);
            }
        }
        if label.is_empty() {
            self.waiting.extend_from_slice(lines);
            self.amid = Amid::after(lines, source);
        } else {
            self.put_labelled(source, label, lines);
        }
    }

    /// `lines` without the `\n` that the stream has already added for the source.
    fn without_end_given<'l>(&mut self, source: usize, lines: &'l [u8]) -> &'l [u8] {
        let Some(at) = self.ended.iter().position(|&ended| ended == source) else { return lines };
        self.ended.swap_remove(at);
        lines.strip_prefix(b"\n").unwrap_or(lines)
    }

    fn put_labelled(&mut self, source: usize, label: &str, lines: &[u8]) {
        for piece in lines.split_inclusive(|byte| ENDS.contains(byte)) {
            if self.amid.is_none_or(|amid| amid.over && piece != b"\n") {
                self.waiting.extend_from_slice(label.as_bytes());
            }
            self.waiting.extend_from_slice(piece);
            self.amid = Amid::after(piece, source);
        }
    }

    /// Returns true if there is something to write.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if no more should be added now.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= FULL
    }

    /// The descriptor to write to.
    pub(crate) fn target(&self) -> BorrowedFd<'_> {
        self.to.as_fd()
    }

    /// Writes as much as possible without blocking; to be called when the target is ready. An error
    /// closes the stream: later text is dropped.
    pub(crate) fn write(&mut self) -> Result<(), Errno> {
        let end = self.waiting.len().min(self.size);
        match rustix::io::write(&self.to, &self.waiting[..end]) {
            Ok(written) => drop(self.waiting.drain(..written)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => {
                self.closed = true;
                self.waiting = Vec::new();
                return Err(error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What arrives at the other end of a pipe.
    fn written(put: impl FnOnce(&mut OutputStream<std::io::PipeWriter>)) -> String {
        let (mut read, write) = std::io::pipe().unwrap();
        let mut output = OutputStream::new(write);
        put(&mut output);
        while output.has_waiting() {
            output.write().unwrap();
        }
        drop(output);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_line_without_end_gets_one_only_if_another_goes_on() {
        assert_eq!(written(|out| out.put(0, "", b"half")), "half");
        let goes_on =
            |out: &mut OutputStream<_>| [&b"ha"[..], b"lf\n"].iter().for_each(|part| out.put(0, "", part));
        assert_eq!(written(goes_on), "half\n");
        let other = |out: &mut OutputStream<_>| {
            out.put(0, "", b"half");
            out.put(1, "", b"other\n");
        };
        assert_eq!(written(other), "half\nother\n");
    }

    #[test]
    fn each_line_has_its_label_once() {
        let text = written(|out| {
            out.put(0, "[0] ", b"a\nb");
            out.put(0, "[0] ", b"c\n");
            out.put(0, "[0] ", b"d");
            out.put(1, "[1] ", b"e\n");
        });
        assert_eq!(text, "[0] a\n[0] bc\n[0] d\n[1] e\n");
    }

    #[test]
    fn a_line_that_is_written_over_has_its_label_each_time() {
        let text = written(|out| {
            out.put(0, "[0] ", b"1 %\r2 %\r");
            out.put(0, "[0] ", b"3 %\r");
            out.put(0, "[0] ", b"\n");
            out.put(1, "[1] ", b"e\r\n");
        });
        assert_eq!(text, "[0] 1 %\r[0] 2 %\r[0] 3 %\r\n[1] e\r\n");
    }

    #[test]
    fn an_end_in_two_parts_is_one_end() {
        let text = written(|out| {
            out.put(0, "", b"a\r");
            out.put(1, "", b"b\r");
            out.put(0, "", b"\nc\r");
            out.put(1, "", b"over\n");
            out.put(0, "", b"\n\n");
        });
        assert_eq!(text, "a\r\nb\r\nc\r\nover\n\n");
    }

    #[test]
    fn a_closed_target_is_reported_once() {
        let (read, write) = std::io::pipe().unwrap();
        let mut output = OutputStream::new(write);
        drop(read);
        output.put(0, "", b"a\n");
        assert_eq!(output.write(), Err(Errno::PIPE));
        output.put(0, "", b"b\n");
        assert!(!output.has_waiting());
    }
}
