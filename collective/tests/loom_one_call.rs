//! A model of the word of the call under way: a thread begins no call during that of another thread, and sees what the
//! calls before it have written.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use one_call::OneCall;

#[path = "../src/one_call.rs"]
mod one_call;

/// A communicator with a number that each call changes by a load and a store.
struct Communicator {
    call: OneCall,
    calls: AtomicU32,
}

impl Communicator {
    /// Does what a call does after its beginning. Returns the number of calls, with this one.
    fn run_call(&self) -> u32 {
        let calls = self.calls.load(Ordering::Relaxed) + 1;
        self.calls.store(calls, Ordering::Relaxed);
        self.call.end();
        calls
    }
}

#[test]
fn a_call_begins_after_the_one_before_and_sees_what_it_wrote() {
    loom::model(|| {
        let communicator = Arc::new(Communicator { call: OneCall::none(), calls: AtomicU32::new(0) });
        communicator.call.begin(5);
        let other = {
            let communicator = communicator.clone();
            thread::spawn(move || {
                if communicator.call.is_none() {
                    communicator.call.begin(6);
                    assert_eq!(communicator.call.word(), 6, "the word of another call");
                    assert_eq!(communicator.run_call(), 2, "the call before is not over, or is not seen");
                }
            })
        };
        assert_eq!(communicator.call.word(), 5, "another call has begun meanwhile");
        assert_eq!(communicator.run_call(), 1);
        other.join().unwrap();
        assert!(communicator.call.is_none());
    });
}
