//! The file that a rank leaves of what it has recorded, beside the file of the job: FILE.rank0, FILE.rank1, ...
//!
//! Words of eight bytes, the lowest byte first: a mark, rank, size, whether time was virtual, events, lost events,
//! bytes of names; the names of threads, a line each, filled up to whole words; the events.

use super::event::{EVENT_BYTES, TraceEvent, WORDS};
use crate::base::Rank;
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"tasuki-t");
const HEAD_WORDS: usize = 7;

/// EventKind one rank has recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct RankTrace {
    /// Which rank.
    pub rank: Rank,
    /// Of how many.
    pub size: usize,
    /// Whether times are virtual.
    pub is_virtual: bool,
    /// Events that later ones have overwritten: those that came first.
    pub lost: u64,
    /// Names of its threads, by their number.
    pub threads: Vec<String>,
    /// EventKind happened, in the order in which it was recorded.
    pub events: Vec<TraceEvent>,
}

/// Where that rank's part of a file lies.
pub fn part_file(file: &Path, rank: Rank) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".rank{rank}"));
    name.into()
}

impl RankTrace {
    /// As the bytes of its file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut names = self.threads.join("\n").into_bytes();
        let named = names.len() as u64;
        names.resize(names.len().next_multiple_of(8), 0);
        let (rank, size, events) = (u64::from(self.rank.0), self.size as u64, self.events.len() as u64);
        let head: [u64; HEAD_WORDS] =
            [MAGIC, rank, size, u64::from(self.is_virtual), events, self.lost, named];
        let mut bytes: Vec<u8> = head.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.reserve(names.len() + self.events.len() * EVENT_BYTES);
        bytes.extend(names);
        bytes.extend(self.events.iter().flat_map(TraceEvent::words).flat_map(u64::to_le_bytes));
        bytes
    }

    /// The part of such bytes; why it is none.
    pub fn of_bytes(bytes: &[u8]) -> Result<RankTrace, &'static str> {
        let (head, rest) =
            bytes.split_at_checked(8 * HEAD_WORDS).ok_or("it is shorter than the head of a part")?;
        let head: [u64; HEAD_WORDS] = words(head);
        let [magic, rank, size, is_virtual, count, lost, named] = head;
        let is_one = magic == MAGIC && rank < size && size <= u64::from(Rank::MAX.0);
        if !is_one {
            return Err("it is no part of a trace of this version");
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
            rank: Rank(rank as u32),
            size: size as usize,
            is_virtual: is_virtual != 0,
            lost,
            threads: String::from_utf8_lossy(&names[..named as usize]).lines().map(String::from).collect(),
            events: events.collect::<Option<_>>().ok_or("an event of it is of another version")?,
        })
    }
}

/// As many words as there are, which is as many as bytes were cut for.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::some_of_each;
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
            events: some_of_each().into_iter().map(event).collect(),
        };
        let bytes = part.bytes();
        assert_eq!(RankTrace::of_bytes(&bytes), Ok(part));
        for len in 0..bytes.len() {
            assert!(RankTrace::of_bytes(&bytes[..len]).is_err(), "cut to {len}");
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0xff;
            let _ = RankTrace::of_bytes(&wrong); // whatever it says, it says something
        }
    }

    #[test]
    fn parts_lie_beside_their_file() {
        assert_eq!(part_file(Path::new("a/b.json"), Rank(12)), Path::new("a/b.json.rank12"));
    }
}
