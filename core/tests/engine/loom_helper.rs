//! Models of a helper that falls asleep: it sees work that is left to it meanwhile, or it is woken,
//! or the thread that left the work learns that no helper polls.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{Ordering, fence};
use loom::thread;
use tasuki_core::node::park::{ASLEEP, Epoch, ParkLine, WakeMode};
use tasuki_core::node::shared_copy::{SharedCopies, WORDS};
use tasuki_core::queue::directory::{PollState, PollerKind};
use tasuki_core::queue::ring::{LINE_WORDS, RingLine, RingReader, RingWriters};

#[derive(Default)]
struct Node {
    helper: ParkLine,
    copies: SharedCopies,
    polling: PollState,
    posters: RingWriters,
    reader: RingReader,
    line: RingLine,
}

impl Node {
    /// Lets the helper fall asleep if it finds no work; returns the epoch that it sleeps on.
    fn settle(&self, work: impl FnOnce() -> bool) -> Option<Epoch> {
        let suspend = || {
            self.polling.end(PollerKind::OwnRank);
        };
        self.helper.sleep_unless(suspend, |line| line.begin_sleep(ASLEEP, || ()), work)
    }
}

/// No thread relies on the helper for a copy: the thread that offers it takes part, and wakes the helper.
#[test]
fn a_copy_offered_while_the_helper_falls_asleep_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.polling.begin(PollerKind::OwnRank);
        let opener = {
            let node = node.clone();
            thread::spawn(move || {
                assert!(node.copies.open([1; WORDS], 1));
                node.helper.needs_wake(WakeMode::Fence)
            })
        };
        let asleep = node.settle(|| node.copies.has_any());
        opener.join().unwrap();
        assert!(
            asleep.is_none_or(|epoch| !node.helper.keeps_asleep(epoch)),
            "asleep although there is a copy"
        );
    });
}

/// A poster leaves its command to a thread that polls; the helper was the last one.
#[test]
fn a_command_posted_while_the_helper_falls_asleep_is_run() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.polling.begin(PollerKind::OwnRank);
        let poster = {
            let node = node.clone();
            thread::spawn(move || {
                let position = node.posters.reserve(1, 1, &node.reader).unwrap();
                node.line.write(position, &[1; LINE_WORDS]);
                fence(Ordering::SeqCst); // SYNC serving
                !node.polling.is_polled()
            })
        };
        let asleep = node.settle(|| node.line.holds(0));
        assert!(poster.join().unwrap() || asleep.is_none(), "the command was left to a sleeping helper");
    });
}

/// A helper that was woken in between does not sleep on, and can fall asleep again.
#[test]
fn a_woken_helper_can_sleep_again() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let first = node.settle(|| false).expect("there is nothing to do");
        let waker = {
            let node = node.clone();
            thread::spawn(move || node.helper.needs_wake(WakeMode::Fence))
        };
        let woken = !node.helper.keeps_asleep(first);
        assert!(waker.join().unwrap() && !node.helper.keeps_asleep(first), "woken once: {woken}");
        assert!(node.settle(|| true).is_none() && !node.helper.is_asleep());
        let again = node.settle(|| false).expect("there is nothing to do");
        assert!(node.helper.keeps_asleep(again));
    });
}
