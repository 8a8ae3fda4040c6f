//! Cases that run on processes with test switches set, because processes and threads differ in
//! them. A rank's own memory is in another address space, and sleeping ranks are found with the
//! help of all processes of the node.

use tasuki_tests::case_runner::Switches;
use tasuki_tests::failing_jobs::FAILING;
use tasuki_tests::processes::{failing_on_processes, on_processes};

const PROGRAM: &str = env!("CARGO_BIN_EXE_conformance");

/// One number of ranks that fits the processors of a small machine, and one that does not.
const COUNTS: [usize; 2] = [2, 4];

const FENCE: Switches = &[("TASUKI_WAKE", "fence")];
const BARRIER: Switches = &[("TASUKI_WAKE", "membarrier")];
const ASKED: Switches = &[("TASUKI_OWN_MEMORY", "request")];
const VIA: Switches = &[("TASUKI_DIRECT_SIGNALS", "off")];
const DENIED: Switches = &[("TASUKI_DISABLE", "membarrier,pidfd,process_vm")];
const HELPER_NODE: Switches = &[("TASUKI_HELPER", "node")];
const HELPER_RANK: Switches = &[("TASUKI_HELPER", "rank")];
const SEND_BUFFER: Switches = &[("TASUKI_SEND_BUFFER", "100000")];

/// Cases in which ranks sleep and are woken.
const SLEEP: &[&str] = &[
    "d20_random_sleeps_and_wakes",
    "d20_all_are_woken_at_once",
    "d20_every_wait_is_woken",
    "d20_threads_of_a_rank_are_woken",
];
/// Cases that access registered memory of other ranks.
const OWN: &[&str] = &[
    "puts_and_gets_of_every_size",
    "many_requests_at_one_owner",
    "signals_follow_their_bytes",
    "addresses_travel",
    "puts_outlive_their_request",
    "gets_outlive_their_request",
    "slow_requests_may_be_left",
    "unregister_waits_for_accesses_under_way",
    "b1_any_rank_to_any_rank",
    "b4_chain_by_handles",
    "d1_bytes_are_there_when_the_signal_is_seen",
];
/// Cases of signals and payload signals.
const SIGNALS: &[&str] =
    &["signals_count", "signals_wrap", "lines_carry_their_payload", "payload_signals_detect_overruns"];

/// Cases of commands, and of messages that make progress while the threads of their rank do not.
const COMMANDS: &[&str] = &[
    "b3_between_two_who_compute",
    "b5_after_a_stream_or_after_one",
    "b11_followers_of_a_failed_copy",
    "d8_takes_back_while_it_fires",
    "d14_everybody_posts_at_once",
    "d16_segments_are_forwarded_in_order",
    "d17_failures_travel",
    "d17_poisoned_credits_and_joins",
    "d19_calls_fire_in_queues",
    "d19_follow_ups_do_not_lock_up",
    "long_copies_are_whole",
    "i2_members_compute",
    "i2_two_in_flight",
    "i4_over_means_that_all_have_started",
    "d3_counted_arrivals",
    "i1_sync_covers_all",
    "g6_the_send_buffer_is_full",
    "g6_a_helper_makes_progress_with_buffered_sends",
    "g6_helpers_are_succeeded",
    "d12_posts_while_a_rank_goes_away",
    "d12_effects_beside_a_second_queue",
    "d13_waits_with_the_most_commands_in_flight",
    "g6_space_for_buffered_sends_comes_back",
    "g6_buffered_sends_to_a_rank_that_left",
    "g6_messages_of_a_rank_that_left_are_received",
];

fn all(names: &[&str], switches: Switches) {
    for name in names {
        on_processes(PROGRAM, name, &COUNTS, switches);
    }
}

#[test]
fn shm_processes_wake_by_fences() {
    all(SLEEP, FENCE);
}

#[test]
fn shm_processes_wake_by_barriers() {
    all(SLEEP, BARRIER);
    all(SIGNALS, BARRIER);
}

#[test]
fn shm_processes_ask_for_own_memory() {
    all(OWN, ASKED);
}

#[test]
fn shm_processes_send_lines_through_the_fabric() {
    all(SIGNALS, VIA);
    all(&SLEEP[2..3], VIA);
}

#[test]
fn shm_processes_do_without_what_is_denied() {
    all(SLEEP, DENIED);
    all(OWN, DENIED);
}

#[test]
fn shm_processes_have_a_helper_of_the_node() {
    all(COMMANDS, HELPER_NODE);
}

#[test]
fn shm_processes_have_a_helper_each() {
    all(COMMANDS, HELPER_RANK);
    failing_on_processes(PROGRAM, "calling_what_panics_beyond_its_call_of_2", HELPER_RANK);
}

#[test]
fn shm_processes_have_a_send_buffer() {
    all(&["g3_short_sends_return"], SEND_BUFFER);
}

#[test]
fn shm_processes_fail_as_they_should_without_what_is_denied() {
    for failing in FAILING {
        failing_on_processes(PROGRAM, failing.name, DENIED);
        failing_on_processes(PROGRAM, failing.name, ASKED);
    }
}
