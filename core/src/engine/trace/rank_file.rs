//! The trace file of a rank, beside the file of the job: FILE.rank0, FILE.rank1, ...
//!
//! It consists of little-endian words of eight bytes: a magic number, rank, size, whether time was virtual, number of
//! events, number of lost events, bytes of names; then the names of threads, a line each, padded to whole words; then
//! the events.

use super::event::{EVENT_BYTES, TraceEvent, WORDS};
use crate::base::Rank;
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-t");
const HEAD_WORDS: usize = 7;

/// The trace of one rank.
#[derive(Clone, PartialEq, Debug)]
pub struct RankTrace {
    /// The rank.
    pub rank: Rank,
    /// The number of ranks of the job.
    pub size: usize,
    /// True if times are virtual.
    pub is_virtual: bool,
    /// Number of events that were lost, mostly the first ones, which later events have overwritten.
    pub lost: u64,
    /// Names of the rank's threads, by their numbers.
    pub threads: Vec<String>,
    /// The events, in the order in which they were recorded.
    pub events: Vec<TraceEvent>,
}

/// Returns the path of a rank's trace file.
pub fn part_file(file: &Path, rank: Rank) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".rank{rank}"));
    name.into()
}

impl RankTrace {
    /// Encodes the trace as the bytes of its file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut names = self.threads.join("\n").into_bytes();
        let named = names.len() as u64;
        names.resize(names.len().next_multiple_of(8), 0);
        let (rank, size, events) = (self.rank.0 as u64, self.size as u64, self.events.len() as u64);
        let head: [u64; HEAD_WORDS] =
            [MAGIC, rank, size, u64::from(self.is_virtual), events, self.lost, named];
        let mut bytes: Vec<u8> = head.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.reserve(names.len() + self.events.len() * EVENT_BYTES);
        bytes.extend(names);
        bytes.extend(self.events.iter().flat_map(TraceEvent::words).flat_map(u64::to_le_bytes));
        bytes
    }

    /// Decodes the bytes of a file, or returns why they are no trace.
    pub fn of_bytes(bytes: &[u8]) -> Result<RankTrace, &'static str> {
        let (head, rest) = bytes
            .split_at_checked(8 * HEAD_WORDS)
            .ok_or("it is shorter than the header of a rank's trace")?;
        let head: [u64; HEAD_WORDS] = words(head);
        let [magic, rank, size, is_virtual, count, lost, named] = head;
        let is_one = magic == MAGIC && rank < size && size <= Rank::MAX.0 as u64;
        if !is_one {
            return Err("it is no rank's trace of this version");
        }
        let padded = named.checked_next_multiple_of(8).and_then(|bytes| usize::try_from(bytes).ok());
        let (names, events) =
            padded.and_then(|padded| rest.split_at_checked(padded)).ok_or("its names are cut off")?;
        if events.len() as u64 / EVENT_BYTES as u64 != count || !events.len().is_multiple_of(EVENT_BYTES) {
            return Err("its events are cut off");
        }
        let events =
            events.chunks_exact(EVENT_BYTES).map(|event| TraceEvent::of_words(&words::<WORDS>(event)));
        Ok(RankTrace {
            rank: Rank(rank as usize),
            size: size as usize,
            is_virtual: is_virtual != 0,
            lost,
            threads: String::from_utf8_lossy(&names[..named as usize]).lines().map(String::from).collect(),
            events: events.collect::<Option<_>>().ok_or("an event of it is of another version")?,
        })
    }
}

/// Decodes `N` words from as many bytes.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::one_of_each_kind;
    use super::*;

    #[test]
    fn a_part_is_read_as_it_was_written_or_refused() {
        let event = |what| TraceEvent { thread: 1, begin_ns: 1, end_ns: 2, failed: true, what };
        let part = RankTrace {
            rank: Rank(3),
            size: 4,
            is_virtual: true,
            lost: 5,
            threads: vec!["program".into(), "helper".into()],
            events: one_of_each_kind().into_iter().map(event).collect(),
        };
        let bytes = part.bytes();
        assert_eq!(RankTrace::of_bytes(&bytes), Ok(part));
        for len in 0..bytes.len() {
            assert!(RankTrace::of_bytes(&bytes[..len]).is_err(), "cut to {len}");
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0xff;
            let _ = RankTrace::of_bytes(&wrong); // must not panic
        }
    }

    #[test]
    fn parts_lie_beside_their_file() {
        assert_eq!(part_file(Path::new("a/b.json"), Rank(12)), Path::new("a/b.json.rank12"));
    }
}
