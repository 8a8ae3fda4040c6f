//! Tests of parts made by a builder, also of many ranks.

use super::*;

const MANY: usize = 100_000;

/// Counts the steps of all ranks, joins included.
fn steps(write: fn(&mut Builder)) -> usize {
    let schedule = Schedule::build("many", (MANY, 0, 64), write, |_| Contract::default());
    (0..MANY).map(|rank| schedule.part(rank).steps().len()).sum()
}

/// This test would not end if memory or time grew with the square of the ranks.
#[test]
fn a_hundred_thousand_ranks_are_built_in_time() {
    let chain = |b: &mut Builder| {
        let data = b.buffer("data", b.bytes());
        for pair in b.ranks().windows(2) {
            let last = b.last_write(data.on(pair[0]));
            b.copy(data.on(pair[0]), data.on(pair[1])).after(last);
        }
    };
    let tree = |b: &mut Builder| {
        let data = b.buffer("data", b.bytes());
        for child in 1..MANY {
            let parent = (child - 1) / 2;
            let last = b.last_write(data.on(parent));
            b.copy(data.on(parent), data.on(child)).after(last);
        }
    };
    // To the root: the sets of many ranks are merged.
    let fold = |b: &mut Builder| {
        let data = b.buffer("data", b.bytes());
        for child in (1..MANY).rev() {
            let parent = (child - 1) / 2;
            let summed = b.last_write(data.on(child)).into_iter().chain(b.last_write(data.on(parent)));
            let summed: Vec<StepId> = summed.collect();
            b.reduce(data.on(child), data.on(parent), false).after(summed);
        }
    };
    // One rank prepares all steps.
    let driven = |b: &mut Builder| {
        b.prepared_by(Some(0));
        let data = b.buffer("data", b.bytes());
        for pair in b.ranks().windows(2) {
            let last = b.last_write(data.on(pair[0]));
            b.copy(data.on(pair[0]), data.on(pair[1])).after(last);
        }
    };
    for write in [chain, tree, fold, driven] {
        assert!(steps(write) >= MANY - 1);
    }
}

/// Two steps come after the same step. Neither they nor their successors wait again for a start that it has waited for.
#[test]
fn a_successor_waits_for_no_start_twice() {
    let write = |b: &mut Builder| {
        let data = b.buffer("data", 8);
        let sent = b.copy(data.on(0), data.on(1)).id();
        let one = b.copy(data.on(1), data.on(2)).after([sent]).id();
        let other = b.copy(data.on(1), data.on(3)).after([sent]).id();
        b.copy(data.on(2), data.on(0)).after([one]);
        b.copy(data.on(3), data.on(0)).after([other]);
        b.copy(data.on(3), data.on(2)).after([other]); // its chain has not waited for the start of rank 2
    };
    let schedule = Schedule::build("diamond", (4, 0, 8), write, |_| Contract::default());
    let waited = |rank: usize| -> Vec<String> {
        let part = schedule.part(rank);
        let names = part.signal_decls().iter().map(|counter| counter.name.to_string());
        names.filter(|name| name.ends_with("has started")).collect()
    };
    let of = |rank: usize| format!("rank {rank} has started");
    assert_eq!([0, 1, 2, 3].map(waited), [vec![of(1)], vec![of(2), of(3)], vec![], vec![of(2)]]);
}
