//! Models of a line that is sealed: who sees the seal sees what lies before it, and takes nothing twice or torn.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tasuki_core::engine::InlineFlag;

#[derive(Default)]
struct Line {
    bytes: [AtomicU64; 2],
    seal: InlineFlag,
}

impl Line {
    fn lay(&self, number: u64) {
        self.bytes.iter().for_each(|word| word.store(number * 10, Ordering::Relaxed));
        self.seal.put(number);
    }

    /// What is taken if it is there.
    fn take(&self, number: u64) -> Option<[u64; 2]> {
        self.seal.is(number).then(|| [0, 1].map(|at| self.bytes[at].load(Ordering::Relaxed)))
    }
}

/// The next one is laid out there when the signal says that the place is free.
#[test]
fn what_is_sealed_is_whole() {
    loom::model(|| {
        let (line, free) = (Arc::new(Line::default()), Arc::new(AtomicU64::new(0)));
        let layer = {
            let (line, free) = (line.clone(), free.clone());
            thread::spawn(move || {
                line.lay(1);
                if free.load(Ordering::Acquire) == 1 {
                    line.lay(2);
                }
            })
        };
        if let Some(taken) = line.take(1) {
            assert_eq!(taken, [10; 2], "not what was sealed");
            free.store(1, Ordering::Release);
        }
        layer.join().unwrap();
    });
}

/// Two that swap their place: who has taken there lays there next.
#[test]
fn who_has_taken_lays_there() {
    loom::model(|| {
        let line = Arc::new(Line::default());
        let other = {
            let line = line.clone();
            thread::spawn(move || {
                if let Some(taken) = line.take(1) {
                    assert_eq!(taken, [10; 2], "not what was sealed");
                    line.lay(2);
                }
            })
        };
        line.lay(1);
        if let Some(taken) = line.take(2) {
            assert_eq!(taken, [20; 2], "not what was sealed");
        }
        other.join().unwrap();
    });
}
