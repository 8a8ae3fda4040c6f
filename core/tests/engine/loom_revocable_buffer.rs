//! A model of a revocable buffer: no thread uses it after it was revoked.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tasuki_core::engine::{Local, RevocableBuffer};

#[test]
fn revoke_waits_for_a_user() {
    loom::model(|| {
        let bytes = Arc::new(UnsafeCell::new(0));
        // SAFETY: the buffer's own address is never used here; the cell stands for it.
        let buffer = unsafe { RevocableBuffer::new(Local(std::ptr::null_mut()), 0, true, None) };
        let user = {
            let (bytes, buffer) = (bytes.clone(), buffer.clone());
            thread::spawn(move || {
                if let Ok(_use) = buffer.enter() {
                    // SAFETY: the buffer has not been revoked; loom checks it.
                    bytes.with_mut(|bytes| unsafe { *bytes += 1 });
                }
            })
        };
        buffer.revoke(thread::yield_now);
        // SAFETY: no use is left and none can begin; loom checks it.
        bytes.with_mut(|bytes| unsafe { *bytes += 1 });
        assert!(buffer.enter().is_err());
        user.join().unwrap();
    });
}
