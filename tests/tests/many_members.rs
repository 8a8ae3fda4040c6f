//! Cases with more members than elsewhere. From nine members on, a fuzzy barrier counts the members
//! that it has notified, and an allgather takes several rounds, or writes long blocks directly to
//! their places.

use tasuki::{Job, Result, Sim, Sum, local, sim};
use tasuki_tests::table;
use tasuki_tests::watchdog::Watchdog;

const NAMES: [&str; 4] =
    ["i2_two_in_flight", "i2_members_compute", "i3_a_hundred_in_flight", "i_leaving_with_barriers_under_way"];

#[test]
fn on_threads() {
    for (name, ranks) in NAMES.iter().flat_map(|name| [7, 9, 17].map(|ranks| (name, ranks))) {
        let _watched = Watchdog::over(format!("{name} on {ranks} threads"));
        let case = table::find(name).expect("the case is in the table");
        local(ranks, case.body).unwrap_or_else(|error| panic!("{name} on {ranks} threads: {error}"));
    }
}

#[test]
fn simulated() {
    for (name, ranks) in NAMES.iter().flat_map(|name| [7, 16, 33].map(|ranks| (name, ranks))) {
        for seed in 0..2 {
            let what = format!("{name} on {ranks} simulated ranks, seed {seed}");
            let _watched = Watchdog::over(what.clone());
            let case = table::find(name).expect("the case is in the table");
            let machine = Sim::seed(seed).ranks(ranks).third_party(true).jitter_ns(50_000);
            sim(machine, case.body).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

/// Allgathers by messages, of blocks below and above the length from which blocks are written
/// directly to their places.
fn blocks_of_all(job: &Job) -> Result<()> {
    let (me, size) = (job.rank().index(), job.size());
    for bytes in [1, 48, 100, (4 << 10) - 1, 4 << 10, 10_000] {
        let all = job.world().allgather(&vec![me as u8; bytes])?;
        let is_right = |(member, block): (usize, &[u8])| block.iter().all(|&byte| byte == member as u8);
        assert!(all.len() == size * bytes && all.chunks(bytes).enumerate().all(is_right), "{bytes} bytes");
    }
    Ok(())
}

#[test]
fn long_blocks_go_straight_to_their_places() {
    for ranks in [8, 9, 11] {
        let _watched = Watchdog::over(format!("allgathers of {ranks}"));
        local(ranks, blocks_of_all).unwrap_or_else(|error| panic!("on {ranks} threads: {error}"));
        let simulated = sim(Sim::seed(1).ranks(ranks), blocks_of_all);
        simulated.unwrap_or_else(|error| panic!("on {ranks} simulated ranks: {error}"));
    }
}

/// Runs a case with more members than the runners of all cases have, also more than are combined from the left.
fn with_many_members(name: &str) {
    for ranks in [9, 34] {
        let _watched = Watchdog::over(format!("{name} on {ranks} threads"));
        let case = table::find(name).expect("the case is in the table");
        local(ranks, case.body).unwrap_or_else(|error| panic!("{name} on {ranks} threads: {error}"));
    }
}

#[test]
fn plans_of_many_members_keep_the_combining_order() {
    with_many_members("j_plans_keep_the_combining_order");
}

#[test]
fn calls_of_many_members_keep_the_combining_order() {
    with_many_members("j_calls_keep_the_combining_order");
}

/// With more members than read each other's words, too, calls that differ end with errors.
#[test]
fn different_calls_of_many_members_get_errors() {
    let _watched = Watchdog::over("different calls of 34 threads");
    let body = |job: &Job| {
        let part = job.world().split(0)?;
        part.barrier()?;
        job.barrier()?;
        let outcome = if job.rank().0 == 7 { part.barrier() } else { part.allreduce(&[1], Sum).map(drop) };
        assert!(outcome.is_err() || part.barrier().is_err(), "the calls differ");
        job.barrier()
    };
    local(34, body).unwrap_or_else(|error| panic!("on 34 threads: {error}"));
}

/// From nine members on, an allreduce of few values goes up a tree and down again.
#[test]
fn nan_among_more_members() {
    for name in ["g12_nan_and_zeros_in_every_call", "g12_nan_and_ties_in_every_call"] {
        for ranks in [7, 9] {
            let _watched = Watchdog::over(format!("{name} on {ranks} threads"));
            let case = table::find(name).expect("the case is in the table");
            local(ranks, case.body).unwrap_or_else(|error| panic!("{name} on {ranks} threads: {error}"));
        }
    }
}

/// What buffers take does not depend on the number of ranks, but for those whose formulas say so.
#[test]
fn no_buffer_exceeds_its_maximum_with_many_peers() {
    let case = table::find("no_buffer_exceeds_its_maximum").expect("the case is in the table");
    let _watched = Watchdog::over("the bounds of buffers");
    local(16, case.body).unwrap_or_else(|error| panic!("on 16 threads: {error}"));
    for ranks in [16, 128] {
        let machine = Sim::seed(1).ranks(ranks);
        sim(machine, case.body).unwrap_or_else(|error| panic!("on {ranks} simulated ranks: {error}"));
    }
}
