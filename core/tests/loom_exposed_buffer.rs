//! A model of bytes that a call shows: nobody uses what was taken back.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tasuki_core::engine::executor::ExposedBuffer;

#[test]
fn whoever_uses_them_is_waited_for() {
    loom::model(|| {
        let (bytes, shown) = (Arc::new(UnsafeCell::new(0)), Arc::new(ExposedBuffer::nothing()));
        shown.show(1, 0);
        let user = {
            let (bytes, shown) = (bytes.clone(), shown.clone());
            thread::spawn(move || {
                if let Some(_using) = shown.enter() {
                    // SAFETY: they were not taken back; loom checks it.
                    bytes.with_mut(|bytes| unsafe { *bytes += 1 });
                }
            })
        };
        shown.take_back();
        while shown.is_used() {
            thread::yield_now();
        }
        // SAFETY: nobody is inside and nobody comes in; loom checks it.
        bytes.with_mut(|bytes| unsafe { *bytes += 1 });
        assert!(shown.enter().is_none());
        user.join().unwrap();
    });
}
