//! Models of answer lines: each use of one has its own answer, whatever became of the use before.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::{TestReplyLine, TestReplyLines};
use tasuki_core::fabric::Poison;
use tasuki_core::queue::handler_call::Reply;
use tasuki_core::segment::GlobalAddress;

fn lines() -> Arc<TestReplyLines> {
    Arc::new(TestReplyLines::new(GlobalAddress::new(Rank(0), 0)))
}

fn answer(of: u32) -> Reply {
    Reply::Failed(Poison::of(&Cause::Stale { address: u64::from(of) }, Rank(of)))
}

/// Asks: takes the line, and has posted the call.
fn ask(lines: &TestReplyLines) -> Option<TestReplyLine> {
    lines.take().inspect(|line| lines.expect(*line))
}

#[test]
fn an_answer_that_has_come_is_whole() {
    loom::model(|| {
        let lines = lines();
        let line = ask(&lines).unwrap();
        let asked = {
            let lines = lines.clone();
            thread::spawn(move || lines.answer(line, &answer(5)))
        };
        assert!(!lines.has_come(line) || lines.read(line) == Some(answer(5)), "torn");
        asked.join().unwrap();
    });
}

/// One thread has read its answer and gives the line back, another takes it.
#[test]
fn the_next_use_does_not_take_the_last_answer_for_its_own() {
    loom::model(|| {
        let lines = lines();
        let other = {
            let lines = lines.clone();
            thread::spawn(move || {
                if let Some(line) = ask(&lines) {
                    lines.answer(line, &answer(1));
                    assert_eq!(lines.read(line), Some(answer(1)));
                    lines.give_back(line);
                }
            })
        };
        if let Some(line) = ask(&lines) {
            assert!(!lines.has_come(line), "the answer to another call");
            lines.give_back(line);
        }
        other.join().unwrap();
    });
}

/// A late answer is not written over that of the next use.
#[test]
fn an_abandoned_line_is_used_again_when_its_answer_has_come() {
    loom::model(|| {
        let lines = lines();
        let line = ask(&lines).unwrap();
        lines.abandon(line);
        let asked = {
            let lines = lines.clone();
            thread::spawn(move || lines.answer(line, &answer(1)))
        };
        let next = ask(&lines);
        if let Some(next) = next {
            lines.answer(next, &answer(2));
        }
        asked.join().unwrap();
        if let Some(next) = next {
            assert_eq!(lines.read(next), Some(answer(2)), "a late answer");
            assert!(lines.has_come(next));
        }
    });
}

#[test]
fn of_two_that_find_an_abandoned_line_one_has_it() {
    loom::model(|| {
        let lines = lines();
        let line = ask(&lines).unwrap();
        lines.abandon(line);
        lines.answer(line, &answer(1));
        let other = {
            let lines = lines.clone();
            thread::spawn(move || ask(&lines))
        };
        let ours = ask(&lines);
        let theirs = other.join().unwrap();
        assert!(ours.is_none() || theirs.is_none(), "both have it");
    });
}
