//! Checks that the cases of order can fail. For each claim, either an order mutant runs, which is
//! the same program without the order, or the case of the claim runs on a machine that breaks the
//! promise on which the case rests. Both must fail.

use tasuki::Sim;
use tasuki_tests::order_mutants::{self, needs_its_order};
use tasuki_tests::{table, watchdog::Watchdog};

#[test]
fn d1_signal_beside_its_bytes_comes_too_early() {
    needs_its_order("D1", order_mutants::d1_signal_with_its_bytes, 2, 0..60);
}

#[test]
fn d2_store_beside_its_copy_comes_too_early() {
    needs_its_order("D2", order_mutants::d2_store_after_copy, 2, 0..60);
}

#[test]
fn b4_chain_without_order_shows_a_stale_value() {
    needs_its_order("B4", order_mutants::b4_chain, 3, 0..60);
}

#[test]
fn b5_exact_order_is_less_than_prefix() {
    needs_its_order("B5", order_mutants::b5_prefix, 3, 0..60);
}

#[test]
fn b6_copy_without_order_overtakes_everything() {
    needs_its_order("B6", order_mutants::b6_all, 3, 0..60);
}

#[test]
fn b8_waiting_for_one_is_less_than_completing_it() {
    needs_its_order("B8", order_mutants::b8_completion, 3, 0..60);
}

#[test]
fn b7_copies_that_do_not_continue_each_other_end_in_any_order() {
    needs_its_order("B7", order_mutants::b7_last_of_many, 2, 0..60);
}

#[test]
fn c10_copy_beside_its_atomic_misses_the_result() {
    needs_its_order("C10", order_mutants::c10_result_before_dependent_copy, 2, 0..60);
}

#[test]
fn d16_a_count_of_two_streams_does_not_say_which() {
    needs_its_order("D16", order_mutants::d16_one_stream, 2, 0..60);
}

#[test]
fn g11b_resetting_a_slot_after_sending_loses_the_next_posting() {
    needs_its_order("G11b", order_mutants::g11b_reset_after_sending, 2, 0..60);
}

#[test]
fn j1_starts_without_readiness_overtake_each_other() {
    needs_its_order("J1", order_mutants::j1_readiness, 3, 0..60);
}

#[test]
fn j1_readiness_counted_with_the_data_is_none() {
    needs_its_order("J1, ready with data", order_mutants::j1_readiness_apart, 4, 0..60);
}

/// Asserts that the case fails on a machine with that fault, under at least one seed.
fn notices(name: &str, ranks: usize, fault: fn(Sim) -> Sim) {
    let _watched = Watchdog::over(format!("{name} on a faulty machine"));
    let case = table::find(name).expect("the case is in the table");
    let fails = |seed| {
        // A limit, because a lost lock would make the case run for ever.
        let sim = fault(Sim::seed(seed).ranks(ranks)).time_max_ns(2_000_000_000);
        tasuki::sim(sim, case.body).is_err()
    };
    assert!((0..30).any(fails), "{name} does not notice the fault");
}

#[test]
fn signals_that_overtake_their_bytes_are_noticed() {
    notices("d1_bytes_are_there_when_the_signal_is_seen", 2, |sim| sim.unordered_signals(true));
    notices("d1_one_signal_counts_many_writers", 4, |sim| sim.unordered_signals(true));
    notices("signals_follow_their_bytes", 2, |sim| sim.unordered_signals(true));
}

#[test]
fn ends_before_the_bytes_are_there_are_noticed() {
    notices("b4_chain_by_handles", 3, |sim| sim.early_ends(true));
    notices("d2_store_after_copy", 2, |sim| sim.early_ends(true));
    notices("b7_cont_on_one_path", 2, |sim| sim.early_ends(true));
}

#[test]
fn flushes_that_do_not_wait_are_noticed() {
    fn fault(sim: Sim) -> Sim {
        sim.jitter_ns(50_000).remote_completion(false).native_put_signal(false).early_flush(true)
    }
    notices("b4_chain_by_handles", 3, fault);
    notices("d2_store_after_copy", 2, fault);
}

#[test]
fn torn_lines_are_noticed() {
    notices("lines_carry_their_payload", 2, |sim| sim.torn_lines(true));
}

#[test]
fn torn_atomics_are_noticed() {
    notices("c7_fetch_adds_are_exact", 3, |sim| sim.torn_atomics(true));
    notices("c7_bits_of_one_word", 3, |sim| sim.torn_atomics(true));
    notices("c9_lock_excludes_and_starves_nobody", 3, |sim| sim.torn_atomics(true));
}
