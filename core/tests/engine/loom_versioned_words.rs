//! Models of words that are read together: a reader gets the words of one write, and the last ones in the end.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use tasuki_core::engine::VersionedWords;

#[test]
fn a_reader_gets_the_words_of_one_write() {
    loom::model(|| {
        let words = Arc::new(VersionedWords::<2>::default());
        let writer = {
            let words = words.clone();
            thread::spawn(move || {
                assert!(words.try_write([1, 1]));
                assert!(words.try_write([2, 2]));
            })
        };
        if let Some([one, two]) = words.read() {
            assert_eq!(one, two, "words of two writes");
        }
        writer.join().unwrap();
        assert_eq!(words.read(), Some([2, 2]));
    });
}

#[test]
fn of_two_writers_one_gives_way_or_comes_later() {
    loom::model(|| {
        let words = Arc::new(VersionedWords::<2>::default());
        let other = {
            let words = words.clone();
            thread::spawn(move || words.try_write([1, 1]))
        };
        let own = words.try_write([2, 2]);
        let others = other.join().unwrap();
        assert!(own || others, "no thread has written");
        let [one, two] = words.read().expect("nobody writes");
        assert_eq!(one, two, "words of two writes");
    });
}
