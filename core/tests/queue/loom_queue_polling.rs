//! Models of queue polling: a command or raise that comes while the rank stops polling is seen by the rank, or by the
//! thread that posted or raised.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::reached;
use tasuki_core::fabric::{NOBODY, Poison, SEVERAL, SignalControl};
use tasuki_core::queue::directory::{PollState, PollerKind};
use tasuki_core::queue::ring::{LINE_WORDS, RingLine, RingLineState, RingReader, RingWriters};

#[derive(Default)]
struct Node {
    polling: PollState,
    posters: RingWriters,
    reader: RingReader,
    line: RingLine,
    counter: AtomicU64,
    control: SignalControl,
}

/// The mode in which writers execute fences: the poster has one between writing its line and its check.
#[test]
fn a_command_posted_while_the_rank_stops_polling_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.polling.begin(PollerKind::OwnRank);
        let poster = {
            let node = node.clone();
            thread::spawn(move || {
                let position = node.posters.reserve(1, 1, &node.reader).unwrap();
                node.line.write(position, &[1; LINE_WORDS]);
                RingWriters::fence_after_reserve();
                fence(Ordering::SeqCst); // SYNC serving
                !node.polling.is_polled()
            })
        };
        node.polling.end(PollerKind::OwnRank);
        let seen = node.line.holds(0);
        assert!(poster.join().unwrap() || seen, "no thread sees the command");
    });
}

/// The mode without that fence, where the compare-and-swap is the only one: the rank at least sees that a position was
/// reserved, and then executes a barrier, or sees what was written there.
#[test]
fn a_position_reserved_while_the_rank_stops_polling_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.polling.begin(PollerKind::OwnRank);
        let poster = {
            let node = node.clone();
            thread::spawn(move || {
                let position = node.posters.reserve(1, 1, &node.reader).unwrap();
                RingWriters::fence_after_reserve();
                node.line.write(position, &[1; LINE_WORDS]);
                !node.polling.is_polled()
            })
        };
        node.polling.end(PollerKind::OwnRank);
        let seen = node.posters.state_at(0, &node.line) != RingLineState::Nothing;
        assert!(poster.join().unwrap() || seen, "no thread sees the command");
    });
}

#[test]
fn a_raise_while_the_rank_stops_polling_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.polling.begin(PollerKind::OwnRank);
        node.control.arm(0, false);
        let raiser = {
            let node = node.clone();
            thread::spawn(move || {
                node.counter.fetch_add(1, Ordering::Relaxed);
                node.control.armed_after_raise() != NOBODY && !node.polling.is_polled()
            })
        };
        node.polling.end(PollerKind::OwnRank);
        let seen = node.counter.load(Ordering::Relaxed) > 0;
        assert!(raiser.join().unwrap() || seen, "no thread sees the raise");
    });
}

#[test]
fn a_raise_while_the_signal_is_armed_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let raiser = {
            let node = node.clone();
            thread::spawn(move || {
                node.counter.fetch_add(1, Ordering::Relaxed);
                node.control.armed_after_raise() != NOBODY
            })
        };
        node.control.arm(0, false);
        let seen = node.counter.load(Ordering::Relaxed) > 0;
        assert!(raiser.join().unwrap() || seen, "no thread sees the raise");
    });
}

/// A repeating queue is started by a plain store, after the signal that its next command waits for was armed.
#[test]
fn a_raise_while_a_repeating_queue_starts_is_seen() {
    loom::model(|| {
        let (node, starts) = (Arc::new(Node::default()), Arc::new(AtomicU64::new(0)));
        node.control.arm(0, false);
        let raiser = {
            let (node, starts) = (node.clone(), starts.clone());
            thread::spawn(move || {
                node.counter.fetch_add(1, Ordering::Relaxed);
                node.control.armed_after_raise() != NOBODY && starts.load(Ordering::Acquire) > 0
            })
        };
        starts.store(1, Ordering::Release);
        node.control.keep_armed(0);
        let seen = node.counter.load(Ordering::Relaxed) > 0;
        assert!(raiser.join().unwrap() || seen, "no thread continues the queue");
    });
}

#[test]
fn two_waiting_queues_are_both_recorded() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let other = {
            let node = node.clone();
            thread::spawn(move || node.control.arm(3, false))
        };
        node.control.arm(5, false);
        other.join().unwrap();
        assert_eq!(node.control.armed_after_raise(), SEVERAL);
        node.control.disarm(3);
        assert_eq!(node.control.armed_after_raise(), SEVERAL);
    });
}

#[test]
fn poison_is_whole_and_the_first_one_stays() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let poison = |rank| Poison::of(&Cause::Stale { address: rank as u64 }, Rank(rank));
        let other = {
            let node = node.clone();
            thread::spawn(move || node.control.poison(&node.counter, poison(1)))
        };
        let seen = node.control.poisoned();
        assert!(seen.is_none_or(|seen| seen == poison(1)), "{seen:?}");
        assert!(other.join().unwrap() && !node.control.poison(&node.counter, poison(2)));
        assert_eq!(node.control.poisoned(), Some(poison(1)));
    });
}

#[test]
fn a_raise_reaches_a_threshold_unless_the_poison_came_first() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let other = {
            let node = node.clone();
            thread::spawn(move || {
                let poison = Poison::of(&Cause::NullAddress, Rank(1));
                node.control.poison(&node.counter, poison)
            })
        };
        node.counter.fetch_add(1, Ordering::Release);
        let seen = node.counter.load(Ordering::Acquire);
        assert_eq!(node.control.raised_value(seen), 1, "raises of a poisoned signal are counted, too");
        other.join().unwrap();
        let (_, stood) = node.control.poison_and_value().unwrap();
        assert!(!reached(seen, 1) || stood == 1, "a threshold that was reached before is not poisoned");
        assert!(
            !reached(node.counter.load(Ordering::Acquire), 1),
            "no later raise reaches another threshold"
        );
    });
}
