//! What follows from what is written down, also where that is much.

use super::*;

const MANY: usize = 100_000;

/// Steps of all ranks, joins included.
fn steps(write: fn(&mut Builder)) -> usize {
    let schedule = Schedule::build("many", (MANY, 0, 64), write, |_| Contract::default());
    (0..MANY).map(|rank| schedule.part(rank).steps().len()).sum()
}

/// With memory or time that grows with the square of the ranks this would not end.
#[test]
fn a_hundred_thousand_ranks_are_written_down() {
    let chain = |b: &mut Builder| {
        let data = b.buffer("data", b.bytes());
        for pair in b.ranks().windows(2) {
            let heard = b.last_write(data.on(pair[0]));
            b.copy(data.on(pair[0]), data.on(pair[1])).after(heard);
        }
    };
    let tree = |b: &mut Builder| {
        let data = b.buffer("data", b.bytes());
        for child in 1..MANY {
            let parent = (child - 1) / 2;
            let heard = b.last_write(data.on(parent));
            b.copy(data.on(parent), data.on(child)).after(heard);
        }
    };
    // To the root: what many know comes together.
    let fold = |b: &mut Builder| {
        let data = b.buffer("data", b.bytes());
        for child in (1..MANY).rev() {
            let parent = (child - 1) / 2;
            let summed = b.last_write(data.on(child)).into_iter().chain(b.last_write(data.on(parent)));
            let summed: Vec<StepId> = summed.collect();
            b.reduce(data.on(child), data.on(parent), false).after(summed);
        }
    };
    // One rank does it all.
    let listed = |b: &mut Builder| {
        b.by(Some(0));
        let data = b.buffer("data", b.bytes());
        for pair in b.ranks().windows(2) {
            let heard = b.last_write(data.on(pair[0]));
            b.copy(data.on(pair[0]), data.on(pair[1])).after(heard);
        }
    };
    for write in [chain, tree, fold, listed] {
        assert!(steps(write) >= MANY - 1);
    }
}

/// Two steps come after one: both know what it knows, and who comes after either waits for no start of a rank anew.
#[test]
fn who_comes_after_waits_for_no_start_twice() {
    let write = |b: &mut Builder| {
        let data = b.buffer("data", 8);
        let sent = b.copy(data.on(0), data.on(1)).written();
        let one = b.copy(data.on(1), data.on(2)).after([sent]).written();
        let other = b.copy(data.on(1), data.on(3)).after([sent]).written();
        b.copy(data.on(2), data.on(0)).after([one]);
        b.copy(data.on(3), data.on(0)).after([other]);
        b.copy(data.on(3), data.on(2)).after([other]); // of rank 2 it knows nothing
    };
    let schedule = Schedule::build("diamond", (4, 0, 8), write, |_| Contract::default());
    let heard = |rank: usize| -> Vec<String> {
        let part = schedule.part(rank);
        let names = part.counters().iter().map(|counter| counter.name.to_string());
        names.filter(|name| name.ends_with("has started")).collect()
    };
    let of = |rank: usize| format!("rank {rank} has started");
    assert_eq!([0, 1, 2, 3].map(heard), [vec![of(1)], vec![of(2), of(3)], vec![], vec![of(2)]]);
}
