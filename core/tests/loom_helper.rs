//! Models of a helper's sleep: what is left to it while it falls asleep it sees, or it is woken, or whoever left it is
//! told that nobody looks.
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
    bulk: SharedCopies,
    serving: PollState,
    posters: RingWriters,
    reader: RingReader,
    line: RingLine,
}

impl Node {
    /// The helper falls asleep, if it finds nothing: on what.
    fn settle(&self, work: impl FnOnce() -> bool) -> Option<Epoch> {
        let rest = || {
            self.serving.end(PollerKind::Itself);
        };
        self.helper.settle(rest, |line| line.begin_sleep(ASLEEP, || ()), work)
    }
}

/// Nobody counts on the helper for a copy: who offers it takes part, and wakes whoever sleeps.
#[test]
fn a_copy_that_is_offered_while_it_falls_asleep_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.serving.begin(PollerKind::Itself);
        let opener = {
            let node = node.clone();
            thread::spawn(move || {
                assert!(node.bulk.open([1; WORDS], 1));
                node.helper.needs_wake(WakeMode::Fence)
            })
        };
        let asleep = node.settle(|| node.bulk.has_any());
        opener.join().unwrap();
        assert!(asleep.is_none_or(|epoch| !node.helper.keeps_asleep(epoch)), "asleep beside a copy");
    });
}

/// A poster leaves its command to whoever looks; the helper was the last that did.
#[test]
fn a_command_that_is_posted_while_it_falls_asleep_is_run() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.serving.begin(PollerKind::Itself);
        let poster = {
            let node = node.clone();
            thread::spawn(move || {
                let position = node.posters.reserve(1, 1, &node.reader).unwrap();
                node.line.write(position, &[1; LINE_WORDS]);
                fence(Ordering::SeqCst); // SYNC serving
                !node.serving.is_on()
            })
        };
        let asleep = node.settle(|| node.line.holds(0));
        assert!(poster.join().unwrap() || asleep.is_none(), "left to one who sleeps");
    });
}

/// Woken in between it does not sleep, and lies down anew as if nothing had been.
#[test]
fn it_sleeps_again_after_it_was_woken() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let first = node.settle(|| false).expect("there is nothing to do");
        let waker = {
            let node = node.clone();
            thread::spawn(move || node.helper.needs_wake(WakeMode::Fence))
        };
        let woken = !node.helper.keeps_asleep(first);
        assert!(waker.join().unwrap() && !node.helper.keeps_asleep(first), "woken once: {woken}");
        assert!(node.settle(|| true).is_none() && !node.helper.is_down());
        let again = node.settle(|| false).expect("there is nothing to do");
        assert!(node.helper.keeps_asleep(again));
    });
}
