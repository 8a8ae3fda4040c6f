//! Models of who looks at a queue: whatever is posted or raised while its rank goes away is seen by the rank, or by
//! whoever did it.
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
    serving: PollState,
    posters: RingWriters,
    reader: RingReader,
    line: RingLine,
    counter: AtomicU64,
    arming: SignalControl,
}

/// As where writers execute fences: the poster has one between its line and its look.
#[test]
fn a_command_that_is_posted_while_its_rank_goes_away_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.serving.begin(PollerKind::Itself);
        let poster = {
            let node = node.clone();
            thread::spawn(move || {
                let position = node.posters.reserve(1, 1, &node.reader).unwrap();
                node.line.write(position, &[1; LINE_WORDS]);
                RingWriters::fence_after_reserve();
                fence(Ordering::SeqCst); // SYNC serving
                !node.serving.is_on()
            })
        };
        node.serving.end(PollerKind::Itself);
        let seen = node.line.holds(0);
        assert!(poster.join().unwrap() || seen, "nobody looks");
    });
}

/// Without that fence, as where the compare-and-swap is one: the rank at least sees that a place was reserved, and asks
/// for a barrier, or sees what was written there.
#[test]
fn a_place_that_is_reserved_while_its_rank_goes_away_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.serving.begin(PollerKind::Itself);
        let poster = {
            let node = node.clone();
            thread::spawn(move || {
                let position = node.posters.reserve(1, 1, &node.reader).unwrap();
                RingWriters::fence_after_reserve();
                node.line.write(position, &[1; LINE_WORDS]);
                !node.serving.is_on()
            })
        };
        node.serving.end(PollerKind::Itself);
        let seen = node.posters.found_at(0, &node.line) != RingLineState::Nothing;
        assert!(poster.join().unwrap() || seen, "nobody looks");
    });
}

#[test]
fn a_signal_that_is_raised_while_its_rank_goes_away_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        node.serving.begin(PollerKind::Itself);
        node.arming.arm(0, false);
        let raiser = {
            let node = node.clone();
            thread::spawn(move || {
                node.counter.fetch_add(1, Ordering::Relaxed);
                node.arming.look_after_add() != NOBODY && !node.serving.is_on()
            })
        };
        node.serving.end(PollerKind::Itself);
        let seen = node.counter.load(Ordering::Relaxed) > 0;
        assert!(raiser.join().unwrap() || seen, "nobody looks");
    });
}

#[test]
fn a_signal_that_is_raised_while_it_is_armed_is_seen() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let raiser = {
            let node = node.clone();
            thread::spawn(move || {
                node.counter.fetch_add(1, Ordering::Relaxed);
                node.arming.look_after_add() != NOBODY
            })
        };
        node.arming.arm(0, false);
        let seen = node.counter.load(Ordering::Relaxed) > 0;
        assert!(raiser.join().unwrap() || seen, "nobody looks");
    });
}

/// A program is let go on by a plain store, where what its next command waits for has been marked before.
#[test]
fn a_program_that_is_started_while_its_signal_is_raised_is_seen() {
    loom::model(|| {
        let (node, starts) = (Arc::new(Node::default()), Arc::new(AtomicU64::new(0)));
        node.arming.arm(0, false);
        let raiser = {
            let (node, starts) = (node.clone(), starts.clone());
            thread::spawn(move || {
                node.counter.fetch_add(1, Ordering::Relaxed);
                node.arming.look_after_add() != NOBODY && starts.load(Ordering::Acquire) > 0
            })
        };
        starts.store(1, Ordering::Release);
        node.arming.keep_armed(0);
        let seen = node.counter.load(Ordering::Relaxed) > 0;
        assert!(raiser.join().unwrap() || seen, "nobody goes on");
    });
}

#[test]
fn two_queues_that_wait_are_both_known() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let other = {
            let node = node.clone();
            thread::spawn(move || node.arming.arm(3, false))
        };
        node.arming.arm(5, false);
        other.join().unwrap();
        assert_eq!(node.arming.look_after_add(), SEVERAL);
        node.arming.disarm(3);
        assert_eq!(node.arming.look_after_add(), SEVERAL);
    });
}

#[test]
fn poison_is_whole_and_the_first_counts() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let poison = |rank| Poison::of(&Cause::Stale { address: u64::from(rank) }, Rank(rank));
        let other = {
            let node = node.clone();
            thread::spawn(move || node.arming.poison(&node.counter, poison(1)))
        };
        let seen = node.arming.poisoned();
        assert!(seen.is_none_or(|seen| seen == poison(1)), "{seen:?}");
        assert!(other.join().unwrap() && !node.arming.poison(&node.counter, poison(2)));
        assert_eq!(node.arming.poisoned(), Some(poison(1)));
    });
}

#[test]
fn a_raise_meets_a_threshold_or_the_poison_came_before_it() {
    loom::model(|| {
        let node = Arc::new(Node::default());
        let other = {
            let node = node.clone();
            thread::spawn(move || {
                let poison = Poison::of(&Cause::NullAddress, Rank(1));
                node.arming.poison(&node.counter, poison)
            })
        };
        node.counter.fetch_add(1, Ordering::Release);
        let seen = node.counter.load(Ordering::Acquire);
        assert_eq!(node.arming.raised_value(seen), 1, "raises are counted, poisoned or not");
        other.join().unwrap();
        let (_, stood) = node.arming.poison_and_value().unwrap();
        assert!(!reached(seen, 1) || stood == 1, "what was met before is not poisoned");
        assert!(!reached(node.counter.load(Ordering::Acquire), 1), "what was not, no raise meets any more");
    });
}
