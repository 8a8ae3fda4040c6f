//! Models of a shared copy: each chunk is claimed once, and the thread that completes the copy sees all chunks copied.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tasuki_core::node::shared_copy::{CopyEnd, SharedCopies, WORDS};

struct Node {
    copies: SharedCopies,
    /// What the chunks have been copied to.
    bytes: [AtomicU64; 2],
}

impl Node {
    fn new() -> Node {
        Node { copies: SharedCopies::default(), bytes: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Copies chunks as long as there are any; returns how many copies it has completed.
    fn share(&self, parts: usize, end: CopyEnd) -> usize {
        let mut complete = 0;
        while let Some(chunk) = self.copies.claim(end) {
            assert!(
                chunk.words.iter().all(|word| *word == chunk.words[0] && *word != 0),
                "a torn description"
            );
            let before = self.bytes[chunk.index as usize].swap(chunk.words[0], Ordering::Relaxed);
            assert_ne!(before, chunk.words[0], "copied twice");
            if let Some(all) = self.copies.done(&chunk, true) {
                assert!(all.is_ok && all.words == chunk.words);
                let parts = &self.bytes[..parts];
                let is_whole = parts.iter().all(|bytes| bytes.load(Ordering::Relaxed) >= all.words[0]);
                assert!(is_whole, "the copy was completed before its bytes were visible");
                complete += 1;
            }
        }
        complete
    }
}

#[test]
fn chunks_are_copied_once_and_the_copy_completes_once() {
    loom::model(|| {
        let node = Arc::new(Node::new());
        let other = {
            let node = node.clone();
            thread::spawn(move || node.share(2, CopyEnd::Back))
        };
        assert!(node.copies.open([1; WORDS], 2));
        let ours = node.share(2, CopyEnd::Front);
        assert_eq!(ours + other.join().unwrap(), 1);
        assert!(!node.copies.has_any());
    });
}

/// The slot is used again while another thread may still read its old description.
#[test]
fn a_slot_can_be_used_again() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let node = Arc::new(Node::new());
        let other = {
            let node = node.clone();
            thread::spawn(move || node.share(1, CopyEnd::Back))
        };
        let mut ours = 0;
        for round in 1..=2 {
            assert!(node.copies.open([round; WORDS], 1));
            ours += node.share(1, CopyEnd::Front);
            while node.copies.has_any() {
                thread::yield_now();
            }
        }
        assert_eq!(ours + other.join().unwrap(), 2);
    });
}
