//! A model of a loan: nobody uses what was called back.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tasuki_core::engine::{Local, RevocableBuffer};

#[test]
fn whoever_is_inside_is_waited_for() {
    loom::model(|| {
        let bytes = Arc::new(UnsafeCell::new(0));
        // SAFETY: the loan's own place is never used here; the cell stands for it.
        let loan = unsafe { RevocableBuffer::new(Local(std::ptr::null_mut()), 0, true, None) };
        let user = {
            let (bytes, loan) = (bytes.clone(), loan.clone());
            thread::spawn(move || {
                if let Ok(_inside) = loan.enter() {
                    // SAFETY: the loan has not been called back; loom checks it.
                    bytes.with_mut(|bytes| unsafe { *bytes += 1 });
                }
            })
        };
        loan.revoke(thread::yield_now);
        // SAFETY: nobody is inside and nobody comes in; loom checks it.
        bytes.with_mut(|bytes| unsafe { *bytes += 1 });
        assert!(loan.enter().is_err());
        user.join().unwrap();
    });
}
