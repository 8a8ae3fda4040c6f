//! What a killed rank does while it unwinds: its destructors make calls, and all of those end.

use crate::faults::{ends, post};
use crate::harness::{cause, run, starter, wait};
use std::sync::Mutex;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::engine::Platform;
use tasuki_core::fabric::{Fabric, Posted, Refused, Token};
use tasuki_fabric_sim::{Outcome, Sim, simulate};

/// Operations of a rank that is to be killed.
struct Posting<'p> {
    fabric: &'p dyn Fabric,
    buffers: &'p mut [Vec<u8>],
    accepted: Vec<Token>,
    outcome: &'p Mutex<(Vec<Token>, Vec<Token>)>,
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        let mut ended: Vec<Token> = ends(self.fabric).iter().map(|end| end.0).collect();
        let refused = post(self.fabric, 99, &mut self.buffers[0]);
        assert!(matches!(refused, Err(Refused::Never(_))), "{refused:?}");
        ended.extend(ends(self.fabric).iter().map(|end| end.0));
        *self.outcome.lock().unwrap() = (std::mem::take(&mut self.accepted), ended);
    }
}

#[test]
fn everything_that_a_killed_rank_had_accepted_ends_while_it_unwinds() {
    let mut all = 0;
    for seed in 0..100 {
        let outcome = Mutex::default();
        let sim =
            Sim::seed(seed).remote_completion(seed % 2 == 0).outstanding_max(20).kill(Rank(0), seed * 40);
        let report = simulate(&sim, |member| {
            let mut buffers = vec![vec![0xee_u8; 100]; 30];
            let (fabric, host) = (&*member.fabric, &*member.platform);
            let (accepted, outcome) = (Vec::new(), &outcome);
            let mut posting = Posting { fabric, buffers: &mut buffers, accepted, outcome };
            if member.rank == Rank(1) {
                std::mem::forget(posting);
                return;
            }
            for number in 0..30 {
                if post(fabric, number, &mut posting.buffers[number as usize]) == Ok(Posted::Started) {
                    posting.accepted.push(number);
                }
            }
            host.compute(1_000_000);
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
struct Late<F: FnMut()>(F);

impl<F: FnMut()> Drop for Late<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_killed_rank_s_destructors_wait_for_nobody() {
    for seed in 0..20 {
        let told = Mutex::new(Vec::new());
        let report = run(&Sim::seed(seed).silent_death(Rank(1), 20_000), |worker| {
            if worker.rank() == Rank(0) {
                worker.platform().compute(100_000_000);
                return Ok(());
            }
            let _late = Late(|| {
                let outcomes = [wait(worker, 0, 1), worker.put(starter(0, 0), &[1; 100])];
                told.lock().unwrap().extend(outcomes.map(cause));
            });
            loop {
                worker.platform().compute(100);
            }
        });
        assert!(report.failure.is_none() && matches!(report.outcomes[1], Outcome::Killed), "seed {seed}");
        let told = told.into_inner().unwrap();
        let are_own = told.iter().all(|cause| matches!(cause, Cause::PeerDied { peer: Rank(1), .. }));
        assert!(are_own && told.len() == 2, "seed {seed}: {told:?}");
    }
}

#[test]
fn a_thread_that_is_dead_before_its_first_turn_ends_whatever_it_owns() {
    let report = simulate(&Sim::seed(1).ranks(1).kill(Rank(0), 20_000), |member| {
        let host = member.platform;
        let _late = Late(|| {
            let other = host.clone();
            let owned = Late(move || other.compute(100));
            (host.spawn(Box::new(move || drop(owned))).unwrap())();
        });
        loop {
            host.compute(100);
        }
    });
    assert!(report.unwrap().outcomes == [Outcome::<()>::Killed]);
}
