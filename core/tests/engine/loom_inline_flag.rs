//! Models of an inline flag: a reader that sees the number sees the whole data before it.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tasuki_core::engine::InlineFlag;

#[derive(Default)]
struct Line {
    bytes: [AtomicU64; 2],
    flag: InlineFlag,
}

impl Line {
    fn write(&self, number: u64) {
        self.bytes.iter().for_each(|word| word.store(number * 10, Ordering::Relaxed));
        self.flag.set(number, number as u32 + 7);
    }

    /// Returns the data if the number is there.
    fn read(&self, number: u64) -> Option<[u64; 2]> {
        let tag = self.flag.tag_of(number)?;
        assert_eq!(u64::from(tag), number + 7, "the tag of another number");
        Some([0, 1].map(|at| self.bytes[at].load(Ordering::Relaxed)))
    }
}

/// The writer writes the next data when a signal says that the line is free.
#[test]
fn data_behind_the_flag_are_whole() {
    loom::model(|| {
        let (line, free) = (Arc::new(Line::default()), Arc::new(AtomicU64::new(0)));
        let writer = {
            let (line, free) = (line.clone(), free.clone());
            thread::spawn(move || {
                line.write(1);
                if free.load(Ordering::Acquire) == 1 {
                    line.write(2);
                }
            })
        };
        if let Some(data) = line.read(1) {
            assert_eq!(data, [10; 2], "not the data of this number");
            free.store(1, Ordering::Release);
        }
        writer.join().unwrap();
    });
}

/// Two threads take turns: the one that has read writes next.
#[test]
fn the_reader_writes_next() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let other = {
            let line = line.clone();
            thread::spawn(move || {
                if let Some(data) = line.read(1) {
                    assert_eq!(data, [10; 2], "not the data of this number");
                    line.write(2);
                }
            })
        };
        line.write(1);
        if let Some(data) = line.read(2) {
            assert_eq!(data, [20; 2], "not the data of this number");
        }
        other.join().unwrap();
    });
}
