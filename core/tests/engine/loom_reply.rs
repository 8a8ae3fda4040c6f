//! Models of reply lines: each use of a line gets its own reply, whatever became of the use before.
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

fn reply(of: u32) -> Reply {
    Reply::Failed(Poison::of(&Cause::Stale { address: u64::from(of) }, Rank(of as usize)))
}

/// Takes a line as a caller does, and marks its call as posted.
fn post(lines: &TestReplyLines) -> Option<TestReplyLine> {
    lines.take().inspect(|line| lines.expect(*line))
}

#[test]
fn a_reply_that_has_arrived_is_whole() {
    loom::model(|| {
        let lines = lines();
        let line = post(&lines).unwrap();
        let replier = {
            let lines = lines.clone();
            thread::spawn(move || lines.reply(line, &reply(5)))
        };
        assert!(!lines.has_arrived(line) || lines.read(line) == Some(reply(5)), "torn");
        replier.join().unwrap();
    });
}

/// One thread has read its reply and returns the line; another takes the line.
#[test]
fn the_next_use_does_not_read_the_reply_of_the_last() {
    loom::model(|| {
        let lines = lines();
        let other = {
            let lines = lines.clone();
            thread::spawn(move || {
                if let Some(line) = post(&lines) {
                    lines.reply(line, &reply(1));
                    assert_eq!(lines.read(line), Some(reply(1)));
                    lines.release(line);
                }
            })
        };
        if let Some(line) = post(&lines) {
            assert!(!lines.has_arrived(line), "the reply to another call");
            lines.release(line);
        }
        other.join().unwrap();
    });
}

/// A late reply does not overwrite that of the next use.
#[test]
fn an_abandoned_line_is_reused_when_its_reply_has_arrived() {
    loom::model(|| {
        let lines = lines();
        let line = post(&lines).unwrap();
        lines.abandon(line);
        let replier = {
            let lines = lines.clone();
            thread::spawn(move || lines.reply(line, &reply(1)))
        };
        let next = post(&lines);
        if let Some(next) = next {
            lines.reply(next, &reply(2));
        }
        replier.join().unwrap();
        if let Some(next) = next {
            assert_eq!(lines.read(next), Some(reply(2)), "a late reply overwrote this one");
            assert!(lines.has_arrived(next));
        }
    });
}

#[test]
fn one_of_two_threads_gets_an_abandoned_line() {
    loom::model(|| {
        let lines = lines();
        let line = post(&lines).unwrap();
        lines.abandon(line);
        lines.reply(line, &reply(1));
        let other = {
            let lines = lines.clone();
            thread::spawn(move || post(&lines))
        };
        let ours = post(&lines);
        let theirs = other.join().unwrap();
        assert!(ours.is_none() || theirs.is_none(), "both have the line");
    });
}
