//! Models of an entry of the extent table: no thread uses memory that its owner has freed.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tasuki_core::segment::extent::{Extent, ExtentInfo};

fn info(of: u64) -> ExtentInfo {
    ExtentInfo { start: of, len: of, host: of }
}

#[test]
fn info_is_consistent_when_an_entry_is_reused() {
    loom::model(|| {
        let extent = Arc::new(Extent::default());
        extent.publish(info(1));
        let owner = {
            let extent = extent.clone();
            thread::spawn(move || {
                extent.retire();
                extent.publish(info(2));
            })
        };
        if let Some(found) = extent.info() {
            assert_eq!(found, info(found.start), "the info mixes the old registration and the new one");
        }
        owner.join().unwrap();
    });
}

#[test]
fn a_published_entry_has_its_info() {
    loom::model(|| {
        let extent = Arc::new(Extent::default());
        let reader = {
            let extent = extent.clone();
            thread::spawn(move || assert!(extent.info().is_none_or(|found| found == info(1))))
        };
        extent.publish(info(1));
        reader.join().unwrap();
    });
}

/// Memory that the owner reuses once no section is open: loom reports an access that is not ordered.
#[test]
fn the_owner_waits_for_open_sections() {
    loom::model(|| {
        let shared = Arc::new((Extent::default(), UnsafeCell::new(0)));
        shared.0.publish(info(1));
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (extent, memory) = &*shared;
                extent.begin_section();
                if extent.info() == Some(info(1)) {
                    // SAFETY: the section is open and the extent is published, so the owner does not write now; loom
                    // checks it.
                    memory.with_mut(|bytes| unsafe { *bytes = 1 });
                }
                extent.end_section();
            })
        };
        let (extent, memory) = &*shared;
        extent.retire();
        if !extent.is_used() {
            // SAFETY: the extent is retired and no section is open, so the reader does not write now; loom checks it.
            memory.with_mut(|bytes| unsafe { *bytes = 2 });
        }
        reader.join().unwrap();
    });
}
