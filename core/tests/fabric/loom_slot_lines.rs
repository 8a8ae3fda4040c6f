//! Models of slot lines: a message is complete when it is seen, a line is overwritten only after it was read, and no
//! sender claims a receive that was withdrawn.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;
use tasuki_core::fabric::{SlotLine, SlotWord};

/// Sends two messages through one line, each after its receive was posted. The main word is the number; the payload
/// is twice the number, and that plus one.
#[test]
fn messages_of_one_slot_arrive_in_order() {
    loom::model(|| {
        let (at_receiver, at_sender) = (Arc::new(SlotLine::default()), Arc::new(SlotLine::default()));
        let sender = {
            let (at_receiver, at_sender) = (at_receiver.clone(), at_sender.clone());
            thread::spawn(move || {
                for number in 1..=2 {
                    while at_sender.read(SlotWord::Side) < number {
                        thread::yield_now();
                    }
                    at_receiver.write(&[2 * number, 2 * number + 1], number);
                }
            })
        };
        for number in 1..=2 {
            at_sender.write_side(number);
            while at_receiver.read(SlotWord::Main) < number {
                thread::yield_now();
            }
            assert_eq!(at_receiver.read(SlotWord::Main), number, "sent before its receive was posted");
            assert_eq!(
                (at_receiver.payload(0), at_receiver.payload(1)),
                (2 * number, 2 * number + 1),
                "the payload of another message"
            );
        }
        sender.join().unwrap();
    });
}

/// The receiver reads the payload before it posts the next receive; the sender may write the payload after it has
/// seen that posting.
#[test]
fn payload_is_overwritten_only_after_it_was_read() {
    loom::model(|| {
        let (at_sender, payload) = (Arc::new(SlotLine::default()), Arc::new(UnsafeCell::new(1)));
        let sender = {
            let (at_sender, payload) = (at_sender.clone(), payload.clone());
            thread::spawn(move || {
                while at_sender.read(SlotWord::Side) < 2 {
                    thread::yield_now();
                }
                // SAFETY: the receiver has read it; loom checks it.
                payload.with_mut(|payload| unsafe { *payload = 2 });
            })
        };
        // SAFETY: the sender waits for the posting; loom checks it.
        assert_eq!(payload.with(|payload| unsafe { *payload }), 1);
        at_sender.write_side(2);
        sender.join().unwrap();
    });
}

/// Both ranks copy a message of two parts: each part is copied once, the sender knows when its source is free, and
/// the receiver has all data when it is notified.
#[test]
fn parts_of_a_split_copy_are_copied_once() {
    loom::model(|| {
        const SHARED: u64 = 1;
        const ALL: u64 = 2;
        let (at_receiver, at_sender) = (Arc::new(SlotLine::default()), Arc::new(SlotLine::default()));
        let source: Arc<[UnsafeCell<u64>; 2]> =
            Arc::new(std::array::from_fn(|part| UnsafeCell::new(part as u64 + 1)));
        let target: Arc<[UnsafeCell<u64>; 2]> = Arc::new(std::array::from_fn(|_| UnsafeCell::new(0)));
        let copy = |source: &[UnsafeCell<u64>; 2], target: &[UnsafeCell<u64>; 2]| {
            let (source, target) = (source as *const _, target as *const _);
            move |part: u64| {
                // SAFETY: the model's cells live as long as its threads; loom checks the accesses.
                let (source, target): (&[UnsafeCell<u64>; 2], &[UnsafeCell<u64>; 2]) =
                    unsafe { (&*source, &*target) };
                // SAFETY: only the thread that has taken a part copies it; loom checks it.
                let value = source[part as usize].with(|value| unsafe { *value });
                // SAFETY: only the thread that has taken a part copies it; loom checks it.
                target[part as usize].with_mut(|place| unsafe { *place = value });
            }
        };
        let sender = {
            let (at_receiver, at_sender) = (at_receiver.clone(), at_sender.clone());
            let (source, target) = (source.clone(), target.clone());
            thread::spawn(move || {
                at_sender.begin_parts();
                at_receiver.write(&[], SHARED);
                let (copy, mut copied) = (copy(&source, &target), 0);
                loop {
                    match at_sender.take_part() {
                        part if part < 2 => copy(part),
                        _ => break,
                    }
                    copied += 1;
                }
                while copied + at_sender.read(SlotWord::Side) < 2 {
                    thread::yield_now();
                }
                // SAFETY: all parts are copied, so the receiver no longer reads the source; loom checks it.
                source[0].with_mut(|value| unsafe { *value = 9 });
                // SAFETY: all parts are copied, so the receiver no longer reads the source; loom checks it.
                source[1].with_mut(|value| unsafe { *value = 9 });
                at_receiver.write(&[], ALL);
            })
        };
        let (copy, mut copied) = (copy(&source, &target), 0);
        while at_receiver.read(SlotWord::Main) < SHARED {
            thread::yield_now();
        }
        if at_receiver.read(SlotWord::Main) == SHARED {
            loop {
                match at_sender.take_part() {
                    part if part < 2 => copy(part),
                    _ => break,
                }
                copied += 1;
                at_sender.write_side(copied);
            }
        }
        while at_receiver.read(SlotWord::Main) < ALL {
            thread::yield_now();
        }
        for part in [0, 1] {
            // SAFETY: the sender reported that all parts are there; loom checks it.
            assert_eq!(target[part].with(|value| unsafe { *value }), part as u64 + 1);
        }
        sender.join().unwrap();
    });
}

const POSTED: u64 = 1;
const CLAIMED: u64 = 2;
const WITHDRAWN: u64 = 3;

/// A receive is described, withdrawn, and described again, while its sender reads and claims it.
#[test]
fn a_successful_claim_covers_the_description_read_before() {
    loom::model(|| {
        let line = Arc::new(SlotLine::default());
        let receiver = {
            let line = line.clone();
            thread::spawn(move || {
                line.write(&[100], 4 | POSTED);
                let taken_back = line.main().compare_exchange(
                    4 | POSTED,
                    4 | WITHDRAWN,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                );
                if taken_back.is_ok() {
                    line.write(&[200], 8 | POSTED);
                }
                taken_back.is_ok()
            })
        };
        let word = line.read(SlotWord::Main);
        let place = line.payload(0);
        let mut claimed = None;
        if word & 3 == POSTED {
            let claim =
                line.main().compare_exchange(word, word & !3 | CLAIMED, Ordering::SeqCst, Ordering::SeqCst);
            claimed = claim.ok().map(|_| place);
        }
        let was_taken_back = receiver.join().unwrap();
        if let Some(place) = claimed {
            assert_eq!(place, if was_taken_back { 200 } else { 100 });
        }
    });
}
