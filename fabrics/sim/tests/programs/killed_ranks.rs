//! Killed ranks unwind: their destructors make calls, and all of these calls end.

use crate::faults::{poll_ends, post};
use crate::harness::{bootstrap_memory, cause, run, wait};
use std::sync::Mutex;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Platform;
use tasuki_core::fabric::{Accepted, Fabric, Refused, Token};
use tasuki_fabric_sim::{Outcome, Sim, simulate};

/// Operations of a rank that will be killed; polls for their ends when it is dropped.
struct Posting<'p> {
    fabric: &'p dyn Fabric,
    buffers: &'p mut [Vec<u8>],
    accepted: Vec<Token>,
    outcome: &'p Mutex<(Vec<Token>, Vec<Token>)>,
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        let mut ended: Vec<Token> = poll_ends(self.fabric).iter().map(|end| end.0).collect();
        let refused = post(self.fabric, 99, &mut self.buffers[0]);
        assert!(matches!(refused, Err(Refused::Never(_))), "{refused:?}");
        ended.extend(poll_ends(self.fabric).iter().map(|end| end.0));
        *self.outcome.lock().unwrap() = (std::mem::take(&mut self.accepted), ended);
    }
}

#[test]
fn accepted_operations_of_a_killed_rank_end_while_it_unwinds() {
    let mut all = 0;
    for seed in 0..100 {
        let outcome = Mutex::default();
        let sim =
            Sim::seed(seed).remote_completion(seed % 2 == 0).outstanding_max(20).kill(Rank(0), seed * 40);
        let report = simulate(&sim, |member| {
            let mut buffers = vec![vec![0xee_u8; 100]; 30];
            let (fabric, platform) = (&*member.fabric, &*member.platform);
            let (accepted, outcome) = (Vec::new(), &outcome);
            let mut posting = Posting { fabric, buffers: &mut buffers, accepted, outcome };
            if member.rank == Rank(1) {
                std::mem::forget(posting);
                return;
            }
            for number in 0..30 {
                if post(fabric, number, &mut posting.buffers[number as usize]) == Ok(Accepted::Started) {
                    posting.accepted.push(number);
                }
            }
            platform.compute(1_000_000);
        });
        assert!(report.unwrap().outcomes[0] == Outcome::Killed);
        let (accepted, mut ended) = outcome.into_inner().unwrap();
        ended.sort_unstable();
        assert_eq!(ended, accepted, "seed {seed}");
        all += accepted.len();
    }
    assert!(all > 500, "{all}");
}

/// Makes a call when it is dropped.
struct CallOnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for CallOnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn destructors_of_a_killed_rank_do_not_wait() {
    for seed in 0..20 {
        let errors = Mutex::new(Vec::new());
        let report = run(&Sim::seed(seed).silent_death(Rank(1), 20_000), |worker| {
            if worker.rank() == Rank(0) {
                worker.platform().compute(100_000_000);
                return Ok(());
            }
            let _call = CallOnDrop(|| {
                let outcomes = [wait(worker, 0, 1), worker.put(bootstrap_memory(0, 0), &[1; 100])];
                errors.lock().unwrap().extend(outcomes.map(cause));
            });
            loop {
                worker.platform().compute(100);
            }
        });
        assert!(report.failure.is_none() && matches!(report.outcomes[1], Outcome::Killed), "seed {seed}");
        let errors = errors.into_inner().unwrap();
        let are_own = errors.iter().all(|cause| matches!(cause, Cause::PeerDied { peer: Rank(1), .. }));
        assert!(are_own && errors.len() == 2, "seed {seed}: {errors:?}");
    }
}

#[test]
fn a_thread_killed_before_its_first_turn_drops_what_it_owns() {
    let report = simulate(&Sim::seed(1).ranks(1).kill(Rank(0), 20_000), |member| {
        let platform = member.platform;
        let _call = CallOnDrop(|| {
            let other = platform.clone();
            let owned = CallOnDrop(move || other.compute(100));
            (platform.spawn(Box::new(move || drop(owned))).unwrap())();
        });
        loop {
            platform.compute(100);
        }
    });
    assert!(report.unwrap().outcomes == [Outcome::<()>::Killed]);
}
