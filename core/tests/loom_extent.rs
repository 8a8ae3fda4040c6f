//! Models of an entry of the extent table: nobody uses what its owner has taken back.
#![cfg(loom)]
#![allow(unsafe_code)]
//! Unsafe: accesses of a loom cell, which reports any two that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tasuki_core::segment::extent::{Extent, ExtentInfo};

fn facts(of: u64) -> ExtentInfo {
    ExtentInfo { start: of, len: of, host: of }
}

#[test]
fn facts_belong_together_also_when_an_entry_is_used_again() {
    loom::model(|| {
        let extent = Arc::new(Extent::default());
        extent.publish(facts(1));
        let owner = {
            let extent = extent.clone();
            thread::spawn(move || {
                extent.retire();
                extent.publish(facts(2));
            })
        };
        if let Some(found) = extent.facts() {
            assert_eq!(found, facts(found.start), "half of the old registration, half of the new");
        }
        owner.join().unwrap();
    });
}

#[test]
fn a_live_entry_has_its_facts() {
    loom::model(|| {
        let extent = Arc::new(Extent::default());
        let reader = {
            let extent = extent.clone();
            thread::spawn(move || assert!(extent.facts().is_none_or(|found| found == facts(1))))
        };
        extent.publish(facts(1));
        reader.join().unwrap();
    });
}

/// Memory that the owner gave to somebody else once nobody was inside: loom reports an access that is not ordered.
#[test]
fn the_owner_waits_for_those_inside() {
    loom::model(|| {
        let shared = Arc::new((Extent::default(), UnsafeCell::new(0)));
        shared.0.publish(facts(1));
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (extent, memory) = &*shared;
                extent.begin_section();
                if extent.facts() == Some(facts(1)) {
                    // SAFETY: loom checks that the owner's write does not come at the same time.
                    memory.with_mut(|bytes| unsafe { *bytes = 1 });
                }
                extent.end_section();
            })
        };
        let (extent, memory) = &*shared;
        extent.retire();
        if !extent.is_used() {
            // SAFETY: as above.
            memory.with_mut(|bytes| unsafe { *bytes = 2 });
        }
        reader.join().unwrap();
    });
}
