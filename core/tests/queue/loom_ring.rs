//! Loom models of a queue's ring: a reader only reads complete posted commands, and no line is overwritten before it
//! was read.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use tasuki_core::queue::ring::{LINE_WORDS, RingLine, RingReader, RingWriters};

const CAPACITY: u64 = 2;

#[derive(Default)]
struct Ring {
    writers: RingWriters,
    reader: RingReader,
    lines: [RingLine; CAPACITY as usize],
}

impl Ring {
    fn line(&self, position: u64) -> &RingLine {
        &self.lines[(position % CAPACITY) as usize]
    }

    /// Posts one command whose words are all equal. Returns false if there is no room.
    fn post(&self, word: u64) -> bool {
        let Some(position) = self.writers.reserve(1, CAPACITY, &self.reader) else { return false };
        self.line(position).write(position, &[word; LINE_WORDS]);
        true
    }

    /// Reads at most one command.
    fn read(&self) -> Option<u64> {
        let position = self.reader.read();
        let line = self.line(position);
        if !line.holds(position) {
            return None;
        }
        let words = line.read();
        assert!(words.iter().all(|word| *word == words[0] && *word != 0), "torn: {words:?}");
        self.reader.set_read(position + 1);
        Some(words[0])
    }
}

#[test]
fn a_reader_sees_whole_posted_commands() {
    loom::model(|| {
        let ring = Arc::new(Ring::default());
        let poster = {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.post(7)))
        };
        assert!(ring.read().is_none_or(|word| word == 7));
        poster.join().unwrap();
        assert!(ring.read().is_none_or(|word| word == 7));
    });
}

/// A poster wraps around the ring while it is read: the third command overwrites the first.
#[test]
fn a_line_is_reused_only_after_it_was_read() {
    loom::model(|| {
        let ring = Arc::new(Ring::default());
        assert!(ring.post(1) && ring.post(2));
        let poster = {
            let ring = ring.clone();
            thread::spawn(move || ring.post(3))
        };
        let read: Vec<u64> = (0..3).filter_map(|_| ring.read()).collect();
        assert!([1, 2, 3].starts_with(&read), "{read:?}");
        poster.join().unwrap();
    });
}

#[test]
fn two_posters_reserve_different_positions() {
    loom::model(|| {
        let ring = Arc::new(Ring::default());
        let poster = {
            let ring = ring.clone();
            thread::spawn(move || ring.post(1))
        };
        assert!(ring.post(2) && poster.join().unwrap());
        let mut read = [ring.read().unwrap(), ring.read().unwrap()];
        read.sort_unstable();
        assert_eq!(read, [1, 2]);
        assert!(ring.read().is_none());
    });
}

/// A poster that uses the read position which another poster cached overwrites nothing that is still being read.
#[test]
fn the_cached_read_position_of_another_poster_is_safe_to_use() {
    loom::model(|| {
        let ring = Arc::new(Ring::default());
        assert!(ring.post(1) && ring.post(2));
        let writers: Vec<_> = [3, 4]
            .map(|word| {
                let ring = ring.clone();
                thread::spawn(move || ring.post(word))
            })
            .into();
        let first = ring.read();
        assert_eq!(first, Some(1));
        writers.into_iter().for_each(|poster| assert!(poster.join().is_ok()));
        assert_eq!(ring.read(), Some(2));
    });
}
