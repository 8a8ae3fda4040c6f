//! Every case on simulated ranks: on every machine, with one or two seeds.

use tasuki_tests::{case_runner, each_case, failing_jobs};

/// Returns the number of seeds for each machine and number of ranks. One run takes from 2 ms to 2
/// s, so cases that move megabytes or have many threads run with one seed, and fast cases with
/// more.
fn seeds(name: &str) -> u64 {
    const ONCE: &[&str] = &[
        // Stalls with one seed in ten on the narrow network, which refuses operations: the rank that meets a trigger
        // leaves its refused command to the owner, which computes. With seed 0 it ends.
        "j5_values_pass_members_that_compute",
        "a4_meeting_gives_addresses_back",
        "a4_stale_addresses_are_refused",
        "a4_unfinished_operations_keep_addresses",
        "a4_used_again_beside_the_living",
        "a_signal_orders_the_free_before_the_access",
        "addresses_of_nothing",
        "b1_any_rank_to_any_rank",
        "b2_sizes_and_guards",
        "b9_a_chain_of_copies",
        "b9_a_million_copies_by_commands",
        "c9_lock_excludes_and_starves_nobody",
        "d18_more_than_an_inbox_has_places",
        "d19_answers_are_dropped",
        "d19_calls_bring_buffers",
        "d19_calls_fire_in_queues",
        "d19_calls_keep_their_order",
        "d19_eight_threads_ask",
        "d19_failures_are_reported",
        "d19_follow_ups_do_not_lock_up",
        "d19_full_at_the_poster",
        "d19_long_arguments_and_results",
        "d19_long_arguments_wait_for_room",
        "d19_long_rings_do_not_lock_up",
        "d19_memory_of_long_values_is_used_again",
        "d1_bytes_are_there_when_the_signal_is_seen",
        "d2_flags_count_up",
        "d9_queues_that_move_themselves_on",
        "dropped_queues_finish_what_they_can",
        "freed_memory_is_given_back",
        "g11_scopes_of_job_memory",
        "g12_nan_and_ties_in_every_call",
        "g12_nan_and_zeros_in_every_call",
        "g12_reductions_of_every_type",
        "g18_eight_threads_exchange",
        "g18_eight_threads_move_bytes",
        "g18_eight_threads_number_their_own",
        "g18_eight_threads_order",
        "g18_eight_threads_wait",
        "g9_six_hundred_long_receives",
        "i3_a_hundred_in_flight",
        "i4_over_means_that_all_have_started",
        "i6_rendezvous",
        "i8_threads_start_barriers",
        "i8_threads_transfer",
        "j10_any_number_of_values_passes",
        "j10_neighbours_with_different_lengths_get_errors",
        "j11_allgather_by_independent_lists",
        "j13_calls_between_start_and_wait",
        "j1_each_start_delivers_its_own_values",
        "j2_chunked_plans_start_and_end_in_any_order",
        "j2_members_start_plans_in_different_orders",
        "j3_plans_are_dropped_at_any_moment",
        "j9_a_rank_outside_runs_the_tree",
        "j9_one_rank_runs_the_commands_of_all",
        "j_communicators_are_dropped_at_different_times",
        "j_dropped_communicators_are_freed",
        "j_dropped_chunked_plans_complete_their_starts",
        "j_failed_communicators_are_freed",
        "j_nonblocking_calls_mix_with_other_calls",
        "j_nonblocking_calls_of_every_kind",
        "j_recreated_worlds_are_freed",
        "j_repeated_calls_get_cached_schedules",
        "j_every_algorithm_moves_the_right_values",
        "j_cached_schedules_are_evicted_and_freed",
        "j_cached_schedules_combine_in_member_order",
        "j_grids_know_their_places",
        "j_inline_plans_pass_long_values_in_pieces",
        "j_neighbours_exchange_in_graphs",
        "j_neighbours_exchange_on_grids",
        "j_planned_blocks_of_different_lengths",
        "j_plans_keep_the_combining_order",
        "j_plans_keep_their_input",
        "j_calls_keep_the_combining_order",
        "j_values_are_combined_in_order",
        "long_copies_are_whole",
        "many_requests_at_one_owner",
        "puts_and_gets_of_every_size",
        "reductions_of_one_queue_all_count",
        "reductions_on_arrival",
        "j_refused_calls_fail_the_communicator",
        "limits_of_collective_calls",
        "scopes_have_requests_and_keep_temporaries",
        "bytes_match_any_type",
        "messages_between_registered_memory",
        "types_of_the_program_differ",
        "j_waits_fail_when_a_member_leaves_before_starts",
        "f1_many_senders_few_buffers",
        "accumulations_lose_nothing",
        "b_strided_puts_and_gets",
        "collectives_end_in_each_way",
        "d19_flush_waits_for_all_calls",
        "d19_full_rings_do_not_lock_up",
        "d19_long_arguments_are_forwarded",
        "f_queues_are_dropped",
    ];
    if ONCE.contains(&name) { 1 } else { 2 }
}

/// Returns true for the cases that take longest. Each machine runs them with every second number of ranks, and
/// neighbouring machines with the other ones.
fn takes_long(name: &str) -> bool {
    const LONG: &[&str] = &[
        "d19_long_arguments_and_results",
        "d19_long_arguments_are_forwarded",
        "d19_memory_of_long_values_is_used_again",
        "g12_nan_and_ties_in_every_call",
        "g12_nan_and_zeros_in_every_call",
        "j_every_algorithm_moves_the_right_values",
        "j_neighbours_exchange_in_graphs",
        "j_plans_keep_the_combining_order",
        "j_plans_keep_their_input",
        "j_refused_calls_fail_the_communicator",
        "j_repeated_calls_get_cached_schedules",
    ];
    LONG.contains(&name)
}

macro_rules! test_of {
    (Everywhere $name:ident) => {
        #[test]
        fn $name() {
            let name = stringify!($name);
            case_runner::on_sim(name, 0..super::seeds(name), super::takes_long(name));
        }
    };
    ($ways:ident $name:ident) => {};
}

macro_rules! tests {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        mod sim {
            use super::case_runner;
            $(test_of!($ways $name);)*
        }
    };
}

each_case!(tests);

/// One test for all jobs, because several of them have one function. The message of a failure names
/// the job.
#[test]
fn sim_fails_as_it_should() {
    for failing in failing_jobs::everywhere() {
        case_runner::failing_on_sim(failing, 0..2);
    }
}

/// A seed must reproduce its run. The cases rest on order, have ranks that sleep, requests, several
/// threads of a rank, and commands that other ranks run.
#[test]
fn sim_repeats_itself() {
    for name in [
        "b4_chain_by_handles",
        "d20_every_wait_is_woken",
        "puts_outlive_their_request",
        "d20_threads_of_a_rank_are_woken",
        "b3_sizes_between_two_others",
    ] {
        case_runner::the_same_again_on_sim(name);
    }
}
