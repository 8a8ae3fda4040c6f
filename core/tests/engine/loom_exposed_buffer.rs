//! A model of an exposed buffer: no thread uses it after it was withdrawn.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tasuki_core::engine::executor::ExposedBuffer;

#[test]
fn withdrawing_waits_for_a_user() {
    loom::model(|| {
        let (bytes, exposed) = (Arc::new(UnsafeCell::new(0)), Arc::new(ExposedBuffer::nothing()));
        exposed.expose(1, 0);
        let user = {
            let (bytes, exposed) = (bytes.clone(), exposed.clone());
            thread::spawn(move || {
                if let Some(_access) = exposed.enter() {
                    // SAFETY: the buffer has not been withdrawn; loom checks it.
                    bytes.with_mut(|bytes| unsafe { *bytes += 1 });
                }
            })
        };
        exposed.revoke();
        while exposed.is_used() {
            thread::yield_now();
        }
        // SAFETY: no use is left and none can begin; loom checks it.
        bytes.with_mut(|bytes| unsafe { *bytes += 1 });
        assert!(exposed.enter().is_none());
        user.join().unwrap();
    });
}
