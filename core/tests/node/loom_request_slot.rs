//! Models of a request slot: each request is answered once, as it was posted, and its requester gets the reply.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use tasuki_core::node::request_slot::{OwnerReply, OwnerRequest, PostedCount, RequestSlot};

fn request(of: u32) -> OwnerRequest {
    OwnerRequest {
        requester: of,
        kind: of,
        offset: u64::from(of),
        len: u64::from(of),
        ..OwnerRequest::default()
    }
}

/// The owner's one check: answers the request that it finds.
fn answer_request(slot: &RequestSlot) {
    if let Some(asked) = slot.request() {
        assert_eq!(asked, request(5), "not the request that was posted");
        slot.complete(OwnerReply { status: 5, value: 5 });
    }
}

/// No loops: loom tries the owner's one check at every moment.
#[test]
fn a_request_is_answered_as_it_was_posted() {
    loom::model(|| {
        let shared = Arc::new((RequestSlot::default(), PostedCount::default()));
        let owner = {
            let shared = shared.clone();
            thread::spawn(move || answer_request(&shared.0))
        };
        let requester = thread::spawn(move || {
            assert!(shared.0.claim());
            shared.0.post(request(5), &shared.1);
            thread::yield_now(); // loom tries the owner's reply before and after
            let reply = shared.0.reply();
            assert!(
                reply.is_none_or(|reply| reply == OwnerReply { status: 5, value: 5 }),
                "not the reply that was given"
            );
        });
        owner.join().unwrap();
        requester.join().unwrap();
    });
}

#[test]
fn a_counted_request_is_visible() {
    loom::model(|| {
        let shared = Arc::new((RequestSlot::default(), PostedCount::default()));
        let owner = {
            let shared = shared.clone();
            thread::spawn(move || assert!(shared.1.count() == 0 || shared.0.request().is_some()))
        };
        assert!(shared.0.claim());
        shared.0.post(request(5), &shared.1);
        owner.join().unwrap();
    });
}

#[test]
fn one_of_two_requesters_gets_the_slot() {
    loom::model(|| {
        let shared = Arc::new((RequestSlot::default(), PostedCount::default()));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.0.claim())
        };
        let ours = shared.0.claim();
        assert!(ours != other.join().unwrap(), "both have the slot, or neither");
    });
}
