//! What the user reads when a rank fails: one report that names the rank even without `--label`,
//! and one line of the launcher that adds only what the report lacks.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{Ended, ranks_that_fail_program, run};

/// Three ranks; rank 1 fails in the given way.
fn fails(options: &[&str], way: &str, code: i32) -> Ended {
    let args = [&["-n", "3"], options, &[ranks_that_fail_program(), way]].concat();
    let ended = run(&args).expect(code);
    assert_eq!(ended.messages().len(), 1, "the launcher says one thing: {}", ended.err);
    ended
}

/// The lines that ranks wrote.
fn of_ranks(ended: &Ended) -> Vec<&str> {
    ended.err.lines().filter(|line| line.starts_with("error: ")).collect()
}

const WAYS: [&[&str]; 3] = [&[], &["--threads"], &["--fabric", "sim"]];

#[test]
fn an_error_of_the_program_is_printed_once_with_its_rank() {
    for options in WAYS {
        let ended = fails(options, "error", 1);
        assert_eq!(ended.err.matches("no bread").count(), 1, "{options:?}: {}", ended.err);
        assert!(ended.err.starts_with("error: rank 1: no bread\n"), "{options:?}: {}", ended.err);
        let line = ended.messages()[0].lines().next().map(str::to_string);
        assert_eq!(line.as_deref(), Some("tasuki: rank 1 failed"), "{options:?}: {}", ended.err);
    }
}

#[test]
fn an_error_of_a_call_is_printed_once_with_its_rank_and_a_hint() {
    for options in WAYS {
        let ended = fails(options, "call", 1);
        let first =
            "error: rank 1: load(null, 8 bytes): the global address is null\n  hint: take addresses from ";
        assert!(ended.err.starts_with(first), "{options:?}: {}", ended.err);
        assert_eq!(ended.err.matches("is null").count(), 1, "{options:?}: {}", ended.err);
        assert!(ended.messages()[0].starts_with("tasuki: rank 1 failed"), "{options:?}: {}", ended.err);
    }
}

#[test]
fn a_panic_is_printed_once_with_its_rank() {
    for options in WAYS {
        let ended = fails(options, "panic", 1);
        assert_eq!(ended.err.matches("no bread").count(), 1, "{options:?}: {}", ended.err);
        assert!(ended.err.contains("rank 1"), "{options:?}: {}", ended.err);
        assert!(ended.messages()[0].starts_with("tasuki: rank 1 failed"), "{options:?}: {}", ended.err);
    }
    let ended = fails(&[], "panic", 1);
    assert!(ended.err.starts_with("error: rank 1 panicked:\n"), "{}", ended.err);
}

/// The panic is the handler's: its rank goes on, and its caller fails.
#[test]
fn a_panic_of_a_handler_names_the_handler_and_its_caller() {
    let ended = fails(&[], "handler", 1);
    let first = "error: handler \"bakery\" of rank 2, called by rank 1, panicked:\n";
    assert!(ended.err.starts_with(first), "{}", ended.err);
    let error = "error: rank 1: wait(reply of rank 2): failed on rank 2: handler \"bakery\" failed: panicked: no bread";
    assert!(ended.err.contains(error), "{}", ended.err);
    assert!(ended.messages()[0].starts_with("tasuki: rank 1 failed"), "{}", ended.err);
}

/// Nobody waits for the handler, so its panic ends nothing.
#[test]
fn a_panic_of_a_posted_handler_is_printed_once() {
    let ended = run(&["-n", "3", ranks_that_fail_program(), "post"]).expect(0);
    assert_eq!(ended.err.matches("no bread").count(), 1, "{}", ended.err);
    assert!(
        ended.err.starts_with("error: handler \"bakery\" of rank 2, called by rank 1, panicked:\n"),
        "{}",
        ended.err
    );
}

/// The simulator ends all ranks of a deadlock. Only the report of the whole run is printed, and none of its ranks'.
#[test]
fn a_simulated_deadlock_is_reported_once_with_all_waits() {
    let ended = fails(&["--fabric", "sim"], "wait", 1);
    assert!(ended.err.starts_with("error: deadlock: 3 ranks wait"), "{}", ended.err);
    assert_eq!(of_ranks(&ended).len(), 1, "{}", ended.err);
    for wait in
        ["rank 0 waits in job.barrier()", "rank 1 waits in wait(signal", "rank 2 waits in job.barrier()"]
    {
        assert_eq!(ended.err.matches(wait).count(), 1, "{wait}: {}", ended.err);
    }
}

/// The ranks have connected, and the others wait for rank 1, which finds the error in its own environment.
#[test]
fn an_error_that_keeps_a_rank_from_joining_is_printed_once_with_its_rank() {
    let script = format!(
        "if [ $TASUKI_RANK = 1 ]; then export TASUKI_COLLECTIVES=no-bread; fi; exec {} leave",
        ranks_that_fail_program()
    );
    let ended = run(&["-n", "3", "sh", "-c", &script]).expect(1);
    assert!(ended.err.starts_with("error: rank 1: TASUKI_COLLECTIVES=no-bread: "), "{}", ended.err);
    assert_eq!(ended.err.matches("=no-bread").count(), 1, "{}", ended.err);
    assert_eq!(of_ranks(&ended).len(), 1, "the others only follow: {}", ended.err);
    assert!(
        matches!(ended.messages()[..], [line] if line.starts_with("tasuki: rank 1 failed")),
        "{}",
        ended.err
    );
}

/// Only the launcher can report these failures, and it reports them in full; the errors of other
/// ranks only follow.
#[test]
fn a_process_that_ends_is_reported_by_the_launcher_alone() {
    for (way, code, how) in
        [("exit", 3, "exit code 3"), ("abort", 134, "signal 6, SIGABRT"), ("kill", 137, "signal 9, SIGKILL")]
    {
        let ended = fails(&[], way, code);
        let expected = format!("tasuki: rank 1 died: {how}");
        assert!(ended.messages()[0].starts_with(&expected), "{way}: {}", ended.err);
        assert!(of_ranks(&ended).is_empty(), "{way}: {}", ended.err);
    }
}

#[test]
fn two_ranks_that_fail_at_once_print_one_error_each() {
    let ended = fails(&[], "both", 1);
    let mut said = of_ranks(&ended);
    said.sort_unstable();
    assert!(matches!(said[..], [.., "error: rank 2: no butter"]) && said.len() <= 2, "{}", ended.err);
}

/// The crate anyhow hides the errors that it carries.
#[test]
fn errors_that_hide_what_follows_from_a_failure_are_not_printed() {
    for options in WAYS {
        let ended = fails(options, "hide", 1);
        assert_eq!(of_ranks(&ended), ["error: rank 1: no bread"], "{options:?}: {}", ended.err);
    }
}

/// An error of the program that quotes a failure is its own.
#[test]
fn errors_that_quote_what_follows_from_a_failure_are_printed() {
    let ended = fails(&[], "quote", 1);
    let quotes = of_ranks(&ended).iter().filter(|line| line.contains("no butter (rank ")).count();
    assert_eq!(quotes, 2, "{}", ended.err);
}

#[test]
fn a_rank_that_left_too_early_is_named_by_those_that_needed_it() {
    let ended = fails(&[], "leave", 1);
    let said = of_ranks(&ended);
    assert!(
        !said.is_empty() && said.iter().all(|line| line.contains("rank 1 has left the job")),
        "{}",
        ended.err
    );
}
