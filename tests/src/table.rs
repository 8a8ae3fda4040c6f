//! The one list of all cases.

use crate::cases::*;
use crate::{Case, Ways};

/// Hands the list to the macro `$with`, as lines `ways "id" least..=most module::name;`.
#[macro_export]
macro_rules! each_case {
    ($with:ident) => {
        $with! {
            Everywhere "A1" 1..=8 memory::a1_addresses_differ_and_name_their_rank;
            Everywhere "A2" 1..=8 memory::a2_memory_is_zero_at_first;
            Everywhere "A3" 1..=8 memory::a3_starter_memory_ends;
            Everywhere "A3" 1..=8 memory::a3_bounds_of_registrations;
            Everywhere "A3" 1..=8 registrations::a3_addresses_of_pointers;
            Everywhere "A4" 1..=5 registrations::a4_stale_addresses_are_refused;
            Everywhere "A4" 1..=3 registrations::a4_meeting_gives_addresses_back;
            Everywhere "A4" 2..=3 registrations::a4_unfinished_operations_keep_addresses;
            Everywhere "A4" 1..=3 registrations::a4_used_again_beside_the_living;
            Real "A4" 1..=2 registrations::a4_registering_never_ends;
            Everywhere "A5" 1..=8 registrations::a5_one_buffer_registered_twice;
            Everywhere "A6" 1..=8 memory::a6_zero_size_is_refused;
            Everywhere "A6 A7" 1..=3 registrations::a6_a7_senseless_ranges_are_refused;
            Everywhere "A7" 1..=8 memory::a7_null_is_refused;
            Processes "A8" 2..=2 large::a8_transfers_beyond_31_bits;
            Processes "A8" 2..=2 large::a8_transfers_beyond_32_bits;
            Everywhere "P22-23" 1..=8 promises::after_the_free_every_access_fails;
            Everywhere "P22-23" 1..=8 promises::a_signal_orders_the_free_before_the_access;
            Everywhere "P22-23" 2..=4 promises::late_puts_never_reach_memory_given_to_others;
            Everywhere "P22-23" 2..=3 promises::unregister_waits_for_accesses_under_way;
            Everywhere "P22-23" 2..=3 promises::unregister_waits_for_what_another_thread_serves;
            Everywhere "P22-23" 1..=8 promises::freed_memory_is_given_back;
            Everywhere "B1" 1..=8 copies::b1_any_rank_to_any_rank;
            Everywhere "B2" 1..=2 copies::b2_sizes_and_guards;
            Everywhere "B2" 1..=3 copies::b2_too_long_moves_nothing;
            Everywhere "B2" 1..=8 copies::b2_counts_are_values;
            Real "B3" 3..=8 copies::b3_ends_that_make_no_call;
            Everywhere "B4" 2..=8 order::b4_chain_by_handles;
            Everywhere "B4" 2..=8 order::b4_chain_waits_for_its_head;
            Everywhere "B5" 2..=8 order::b5_prefix_and_exact;
            Everywhere "B6" 2..=8 order::b6_all;
            Everywhere "B7" 2..=8 order::b7_cont_on_another_path;
            Everywhere "B7" 2..=8 order::b7_cont_on_one_path;
            Everywhere "B8" 2..=8 handles::b8_completion_implies_what_came_before;
            Everywhere "B8" 2..=8 handles::b8_null_and_finished_handles;
            Everywhere "B8" 2..=8 handles::b8_any_order_and_again;
            Everywhere "B8" 2..=8 handles::b8_handles_never_issued;
            Everywhere "B8" 2..=8 handles::b8_order_after_handles_never_issued;
            Everywhere "B9" 2..=2 flood::b9_a_million_copies;
            Everywhere "B9" 2..=2 flood::b9_copies_to_own_memory;
            Everywhere "B9" 2..=2 flood::b9_a_chain_of_copies;
            Everywhere "B10" 2..=8 order::b10_unmet_order_delays_nobody;
            Everywhere "B10" 3..=8 order::b10_refusals_delay_nobody;
            Everywhere "B11" 2..=8 failures::b11_successors_do_not_start;
            Everywhere "B11" 2..=8 failures::b11_told_once_by_complete;
            Everywhere "B11" 2..=8 failures::b11_failed_atomics_leave_the_result;
            Everywhere "B11" 2..=8 failures::b11_others_do_not_inherit_a_failure;
            Everywhere "B11" 2..=8 failures::b11_a_failure_that_was_told_stays_one;
            Everywhere "B11" 2..=3 failures::b11_many_failures;
            Everywhere "B12" 1..=3 copies::b12_overlap_moves_as_memmove;
            Everywhere "C1" 1..=3 atomics::c1_add;
            Everywhere "C2" 1..=3 atomics::c2_compare_swap;
            Everywhere "C3" 1..=3 atomics::c3_swap_and_bits;
            Everywhere "C4" 1..=3 atomics::c4_wraps;
            Everywhere "C5" 1..=8 atomics::c5_results_go_to_own_memory;
            Everywhere "C6" 1..=3 atomics::c6_misaligned_words;
            Everywhere "C7" 1..=8 contention::c7_fetch_adds_are_exact;
            Everywhere "C7" 1..=8 contention::c7_nonblocking_adds_are_exact;
            Everywhere "C7" 1..=8 contention::c7_bits_of_one_word;
            Everywhere "C8" 1..=8 owner_atomics::c8_owner_and_remote_atomics_agree;
            Everywhere "C9" 1..=8 contention::c9_lock_excludes_and_starves_nobody;
            Everywhere "C10" 1..=8 order::c10_result_before_dependent_copy;
            Everywhere "D1" 1..=8 signals::d1_bytes_are_there_when_the_signal_is_seen;
            Everywhere "D1" 1..=8 signals::d1_one_signal_counts_many_writers;
            Everywhere "D2" 1..=8 signals::d2_store_after_copy;
            Everywhere "D" 1..=8 signals::signals_count;
            Everywhere "D" 1..=8 signals::signals_wrap;
            Everywhere "D" 1..=8 signals::empty_puts_raise;
            Everywhere "D" 1..=8 signals::lines_carry_their_payload;
            Everywhere "D" 1..=8 signals::lines_tell_an_overrun;
            Everywhere "D" 1..=8 signals::signal_memory_is_not_memory;
            Everywhere "D" 1..=4 signals::time_outs_are_not_early;
            Everywhere "D4" 1..=4 queues::d4_triggers_that_are_met_fire;
            Everywhere "D9" 1..=3 queues::d9_queues_that_move_themselves_on;
            Everywhere "D5" 1..=4 queues::d5_lower_thresholds_fire_first;
            Everywhere "D6" 1..=4 queues::d6_sources_are_read_when_it_fires;
            Everywhere "D8" 1..=4 queues::d8_commands_are_taken_back;
            Everywhere "D8" 1..=4 queues::d8_takes_back_while_it_fires;
            Everywhere "D9" 1..=4 queues::d9_effects_and_chains;
            Everywhere "D10" 1..=5 queues::d10_joins;
            Everywhere "D11" 1..=4 queues::d11_sessions_begin_anew;
            Everywhere "D11" 1..=2 queues::d11_thresholds_wrap;
            Everywhere "D10" 1..=4 queues::d10_two_triggers;
            Everywhere "D12" 1..=4 queues::d12_arrivals_let_commands_go_on;
            Everywhere "D13" 1..=4 queues::d13_full_is_an_ordinary_answer;
            Everywhere "D14" 1..=4 queues::d14_everybody_posts_at_once;
            Everywhere "D16" 2..=5 carrying::d16_segments_are_forwarded_in_order;
            Everywhere "D17" 2..=4 poisoned::d17_failures_travel;
            Everywhere "D18" 2..=4 carrying::d18_somebody_runs_it;
            Everywhere "B3" 3..=4 carrying::b3_between_two_who_compute;
            Everywhere "B3" 3..=5 carrying::b3_bound_to_a_third;
            Everywhere "B3 D18" 3..=5 travelling::b3_sizes_between_two_others;
            Everywhere "D18" 3..=5 travelling::d18_bound_ones_are_run_by_who_they_are_bound_to;
            Everywhere "D18" 2..=5 travelling::d18_more_than_an_inbox_has_places;
            Everywhere "B10" 1..=4 queues::b10_independent_commands_do_not_wait;
            Everywhere "D" 1..=4 carrying::long_copies_are_whole;
            Everywhere "D" 1..=8 carrying::reductions_of_one_queue_all_count;
            Everywhere "D" 1..=8 carrying::reductions_on_arrival;
            Everywhere "D" 1..=4 poisoned::dropped_queues_tell;
            Everywhere "D" 1..=4 poisoned::dropped_queues_finish_what_they_can;
            Everywhere "D" 1..=3 poisoned::dropped_queues_tell_in_any_case;
            Everywhere "D" 2..=3 poisoned::posts_beside_a_drop_run_or_are_refused;
            Everywhere "D" 1..=4 poisoned::wrong_commands_are_refused;
            Everywhere "D17" 1..=4 poisoned::d17_poisoned_credits_and_joins;
            Everywhere "D17" 1..=4 poisoned::later_successes_hide_no_failure;
            Everywhere "D" 1..=3 poisoned::foreign_signals_and_queues_are_refused;
            Everywhere "B5" 1..=4 successors::b5_after_a_stream_or_after_one;
            Everywhere "B6 B8" 1..=4 successors::b6_b8_after_all_that_was_posted;
            Everywhere "B7" 1..=4 successors::b7_copies_in_a_row;
            Everywhere "B9" 1..=3 successors::b9_a_million_copies_by_commands;
            Everywhere "B11" 1..=4 successors::b11_followers_of_a_failed_copy;
            Everywhere "D19" 1..=5 calls::d19_calls_are_answered;
            Everywhere "D19" 1..=4 calls::d19_calls_bring_buffers;
            Everywhere "D19" 1..=5 calls::d19_calls_keep_their_order;
            Everywhere "D19" 2..=3 calls::d19_full_at_the_poster;
            Everywhere "D19" 1..=5 calls::d19_follow_ups_do_not_lock_up;
            Everywhere "D19" 1..=4 calls::d19_failures_are_told;
            Everywhere "D19" 1..=4 calls::d19_calls_fire_in_queues;
            Everywhere "D19" 1..=4 calls::d19_handlers_post_commands;
            Everywhere "D19" 1..=3 calls::d19_answers_are_dropped;
            Everywhere "D19" 3..=3 calls::d19_late_answers;
            Everywhere "D19" 1..=4 calls::d19_eight_threads_ask;
            Everywhere "D19" 2..=4 calls::d19_taken_calls_are_run;
            Everywhere "D20" 4..=4 sleep::d20_random_sleeps_and_wakes;
            Everywhere "D20" 2..=8 sleep::d20_all_are_woken_at_once;
            Everywhere "D20" 2..=8 sleep::d20_every_wait_is_woken;
            Everywhere "D20" 2..=4 sleep::d20_threads_of_a_rank_are_woken;
            Everywhere "G18" 1..=4 threads::g18_eight_threads_move_bytes;
            Everywhere "G18" 1..=4 threads::g18_eight_threads_wait;
            Everywhere "G18" 1..=4 threads::g18_eight_threads_order;
            Everywhere "G18" 1..=4 threads::g18_eight_threads_number_their_own;
            Everywhere "G18" 2..=4 threads::g18_one_collective_call_at_a_time;
            Everywhere "G1" 1..=5 messages::g1_messages_of_all_lengths_arrive;
            Everywhere "G3-5" 2..=3 messages::g3_the_spool_takes_what_waits;
            Everywhere "G1" 2..=3 pending::g1_a_slot_is_busy_until_it_is_waited_for;
            Everywhere "G2" 2..=3 messages::g2_a_send_waits_for_its_receive;
            Everywhere "G3" 2..=2 messages::g3_in_time_is_not_spooled;
            Everywhere "G4" 2..=2 messages::g4_job_memory_is_spooled;
            Everywhere "G5" 2..=2 messages::g5_the_spool_is_pushed;
            Everywhere "G6" 2..=2 messages::g6_a_full_spool;
            Everywhere "G7" 2..=2 messages::g7_any_slot_beside_a_slot;
            Everywhere "G8" 1..=3 messages::g8_slots_and_ranks_that_are_none;
            Everywhere "G9" 2..=2 messages::g9_six_hundred_receives;
            Everywhere "G11" 1..=4 pending::g11_waits_by_peer_and_slot;
            Everywhere "G11" 1..=4 pending::g11_scopes_of_job_memory;
            Everywhere "G11" 2..=3 pending::g11_long_job_messages_are_whole;
            Everywhere "G14" 2..=2 messages::g14_head_to_head;
            Everywhere "G17" 2..=3 pending::g17_sends_outlive_their_request;
            Everywhere "G17" 2..=3 pending::g17_receives_outlive_their_request;
            Everywhere "G17" 2..=3 pending::g17_receives_are_dropped_while_messages_come;
            Everywhere "G18" 2..=4 messages::g18_eight_threads_exchange;
            Everywhere "G" 1..=4 messages::messages_of_job_memory;
            Everywhere "G" 2..=3 pending::a_scope_that_fails_takes_all_back;
            Everywhere "G" 1..=4 pending::messages_are_awaited;
            Everywhere "G" 2..=3 pending::awaiting_may_be_given_up;
            Everywhere "G7" 2..=2 messages::g7_any_slot;
            Everywhere "G11b" 2..=2 messages::g11b_a_slot_is_used_again_at_once;
            Everywhere "G15" 2..=3 messages::g15_too_large_is_told_on_both_sides;
            Everywhere "G9" 1..=2 midway::g9_six_hundred_long_receives;
            Everywhere "G15" 2..=2 midway::g15_freed_memory_is_told_on_both_sides;
            Everywhere "G16" 2..=2 midway::g16_withdrawn_receives_keep_no_ring;
            Everywhere "G16" 2..=2 midway::g16_awaited_after_one_that_was_dropped;
            Everywhere "G16" 2..=2 midway::g16_any_after_a_short_one_that_was_withdrawn;
            Everywhere "G16" 2..=2 midway::g16_any_takes_what_met_a_dropped_receive;
            Everywhere "G16" 2..=2 midway::g16_any_beside_receives_that_time_out;
            Everywhere "G16" 2..=2 midway::g16_a_small_one_leaves_a_long_message;
            Everywhere "G5" 2..=2 midway::g5_awaited_sends_are_spooled;
            Everywhere "G6" 2..=2 midway::g6_the_spool_of_a_rank_that_left;
            Everywhere "G6" 2..=2 midway::g6_what_a_rank_that_left_owes;
            Everywhere "G6" 2..=2 midway::g6_what_met_a_dropped_receive_of_a_rank_that_left;
            Everywhere "G6" 2..=2 midway::g6_a_helper_pushes_the_spool;
            Everywhere "G6" 2..=2 midway::g6_room_in_the_spool_comes_back;
            Everywhere "G8" 1..=3 midway::g8_sends_name_their_slot;
            Everywhere "G12" 2..=5 midway::g12_collective_calls_beside_a_spool;
            Everywhere "G12" 2..=3 midway::g12_members_disagree_about_slots;
            Everywhere "G16" 2..=2 messages::g16_receives_that_time_out;
            Real "G16" 2..=2 messages::g16_owing_each_other_they_leave;
            Everywhere "G12" 1..=8 collectives::g12_reductions_of_every_type;
            Everywhere "G12" 1..=8 collectives::g12_operations_by_name;
            Everywhere "G12" 1..=8 collectives::g12_order_of_ranks;
            Everywhere "G12" 1..=9 collectives::g12_values_that_look_like_announcements;
            Everywhere "G12" 1..=8 collectives::values_reach_everybody;
            Everywhere "G12" 1..=8 collectives::collective_calls_in_a_row;
            Everywhere "G13" 1..=8 collectives::g13_communicators_keep_apart;
            Everywhere "D2" 1..=5 transfers::d2_flags_follow_their_copies;
            Everywhere "D2" 1..=4 transfers::d2_flags_count_up;
            Everywhere "D3" 1..=5 transfers::d3_counted_arrivals;
            Everywhere "D3" 1..=3 transfers::d3_not_before_the_last;
            Everywhere "I1" 1..=5 transfers::i1_sync_covers_all;
            Everywhere "I1" 1..=5 transfers::i1_a_word_follows_copies;
            Everywhere "I6" 1..=4 transfers::i6_rendezvous;
            Everywhere "I6" 2..=3 transfers::i6_sides_that_differ;
            Everywhere "I7" 2..=5 transfers::i7_broadcasts;
            Everywhere "I8" 1..=3 transfers::i8_threads_transfer;
            Everywhere "D17" 1..=3 transfers::d17_failed_transfers_tell;
            Everywhere "I" 1..=3 transfers::wrong_transfers_are_refused;
            Everywhere "I2" 2..=8 fuzzy::i2_two_in_flight;
            Everywhere "I2" 2..=8 fuzzy::i2_members_compute;
            Everywhere "I3" 2..=5 fuzzy::i3_a_hundred_in_flight;
            Everywhere "I4" 1..=8 fuzzy::i4_over_means_that_all_have_started;
            Everywhere "I4" 2..=5 fuzzy::i4_communicators_keep_apart;
            Everywhere "I5" 2..=8 fuzzy::i5_reset_at_start_set_once;
            Everywhere "I8" 1..=5 fuzzy::i8_threads_start_barriers;
            Everywhere "I" 2..=8 fuzzy::i_leaving_with_barriers_under_way;
            Everywhere "P20" 2..=3 closing::p20_close_in_every_order;
            Everywhere "P20" 2..=2 closing::p20_numbers_go_on;
            Everywhere "P20" 2..=2 closing::p20_nothing_comes_late;
            Everywhere "P20" 2..=4 closing::p20_closed_memory_serves_others;
            Everywhere "P20" 2..=3 closing::p20_close_in_use_is_refused;
            Everywhere "P20" 2..=2 closing::p20_close_before_the_spool_is_refused;
            Everywhere "P20" 1..=3 closing::p20_close_with_itself;
            Everywhere "P20" 3..=3 closing::p20_threads_close;
            Everywhere "P20" 2..=2 closing::p20_close_before_a_message_is_taken;
            Everywhere "P20" 2..=2 closing::p20_any_finds_what_lies_in_a_closed_page;
            Everywhere "P20" 2..=2 closing::p20_close_for_a_message_that_nobody_takes;
            Everywhere "own memory" 1..=8 own_memory::puts_and_gets_of_every_size;
            Everywhere "own memory" 1..=8 own_memory::many_requests_at_one_owner;
            Everywhere "own memory" 1..=8 own_memory::signals_follow_their_bytes;
            Everywhere "own memory" 1..=8 own_memory::addresses_travel;
            Everywhere "requests" 2..=3 requests::puts_outlive_their_request;
            Everywhere "requests" 2..=3 requests::gets_outlive_their_request;
            Everywhere "requests" 2..=3 requests::slow_requests_may_be_left;
            Everywhere "requests" 2..=3 requests::requests_give_their_vector_back;
            Everywhere "bad input" 1..=8 misuse::no_such_rank;
            Everywhere "bad input" 1..=8 misuse::addresses_of_nothing;
            Everywhere "bad input" 1..=8 misuse::ranges_that_end_outside;
            Everywhere "bad input" 1..=8 misuse::signals_that_are_none;
            Everywhere "bad input" 1..=8 misuse::no_room;
            Everywhere "bad input" 2..=8 misuse::ranks_that_disagree;
            Everywhere "bad input" 2..=8 misuse::one_rank_asks_for_nothing;
            Everywhere "bad input" 1..=8 misuse::indexes_outside_of_an_array;
            Everywhere "bad input" 1..=8 misuse::zero_counts_move_nothing;
            Real "L6" 1..=8 footprint::l6_memory_agrees_with_the_formula;
            Processes "L6" 1..=8 footprint::l6_mappings_and_files_agree_with_the_formula;
            Processes "L7" 2..=3 idle::l7_who_waits_for_a_message_sleeps;
            Real "children" 1..=4 children::other_programs_inherit_nothing;
            Processes "fork" 1..=4 children::calls_from_a_forked_child_fail;
            Real "jobs" 1..=4 jobs::jobs_in_jobs;
            Real "jobs" 1..=4 jobs::one_thread_in_two_jobs;
            Real "jobs" 1..=4 jobs::a_failing_job_harms_no_other;
        }
    };
}

macro_rules! as_table {
    ($($ways:ident $id:literal $least:literal..=$most:literal $module:ident::$name:ident;)*) => {
        /// All cases, by area.
        pub const CASES: &[Case] = &[$(Case {
            name: stringify!($name),
            id: $id,
            ranks: $least..=$most,
            ways: Ways::$ways,
            body: $module::$name,
        }),*];
    };
}

each_case!(as_table);

/// The case of that name.
pub fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}
