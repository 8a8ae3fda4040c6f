//! Fuzzy barriers among more members than the other cases have: from nine on a member counts what it has told.

use tasuki::{Sim, local, sim};
use tasuki_tests::table;
use tasuki_tests::watchdog::Watchdog;

const NAMES: [&str; 4] =
    ["i2_two_in_flight", "i2_members_compute", "i3_a_hundred_in_flight", "i_leaving_with_barriers_under_way"];

#[test]
fn on_threads() {
    for (name, ranks) in NAMES.iter().flat_map(|name| [7, 9, 17].map(|ranks| (name, ranks))) {
        let _watched = Watchdog::over(format!("{name} on {ranks} threads"));
        let case = table::find(name).expect("it is in the table");
        local(ranks, case.body).unwrap_or_else(|error| panic!("{name} on {ranks} threads: {error}"));
    }
}

#[test]
fn simulated() {
    for (name, ranks) in NAMES.iter().flat_map(|name| [7, 16, 33].map(|ranks| (name, ranks))) {
        for seed in 0..2 {
            let what = format!("{name} on {ranks} simulated ranks, seed {seed}");
            let _watched = Watchdog::over(what.clone());
            let case = table::find(name).expect("it is in the table");
            let machine = Sim::seed(seed).ranks(ranks).third_party(true).jitter_ns(50_000);
            sim(machine, case.body).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}
