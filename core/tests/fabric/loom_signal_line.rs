//! Models of a signal line: a payload that is read is whole, or known to be torn.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;
use tasuki_core::fabric::signal_line::LineWords;

#[test]
fn payload_is_visible_with_its_counter() {
    loom::model(|| {
        let line = Arc::new(LineWords::default());
        let writer = {
            let line = line.clone();
            thread::spawn(move || line.write(&[11, 12], 1))
        };
        if line.counter.load(Ordering::Acquire) == 1 {
            assert_eq!(line.read(1, 2).map(|words| (words[0], words[1])), Some((11, 12)));
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_torn_payload_is_detected() {
    loom::model(|| {
        let line = Arc::new(LineWords::default());
        line.write(&[11, 12], 1);
        let writer = {
            let line = line.clone();
            thread::spawn(move || line.write(&[21, 22], 2))
        };
        let seen = line.counter.load(Ordering::Acquire);
        if let Some(words) = line.read(seen, 6) {
            assert_eq!((words[0], words[1]), (seen * 10 + 1, seen * 10 + 2));
        }
        writer.join().unwrap();
    });
}

#[test]
fn earlier_stores_are_visible_with_the_raised_counter() {
    loom::model(|| {
        let line = Arc::new(LineWords::default());
        let data = Arc::new(loom::sync::atomic::AtomicU64::new(0));
        let writer = {
            let (line, data) = (line.clone(), data.clone());
            thread::spawn(move || {
                data.store(7, Ordering::Relaxed);
                line.raise_tagged(1, 0, 5);
            })
        };
        if line.counter.load(Ordering::Acquire) == 1 {
            assert_eq!(data.load(Ordering::Relaxed), 7);
        }
        writer.join().unwrap();
    });
}

#[test]
fn the_tag_of_a_raise_is_there_with_the_counter() {
    loom::model(|| {
        let line = Arc::new(LineWords::default());
        let writer = {
            let line = line.clone();
            thread::spawn(move || {
                line.raise_tagged(1, 1, 11);
                line.raise_tagged(2, 2, 12);
            })
        };
        let seen = line.counter.load(Ordering::Acquire);
        let tags = line.tags();
        (1..=seen).for_each(|value| assert_eq!(tags.of(value as u32), Some(value as u32 + 10)));
        writer.join().unwrap();
    });
}
