//! D15: a rank is killed while it does something for other ranks. Their calls return errors that
//! name it, and the launcher prints one message.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{Ended, ranks_that_die_program, run};

/// Runs `ranks_that_die` on three ranks. One of them dies in the given way.
fn dies(options: &[&str], way: &str, victim: usize) -> Ended {
    let victim_text = victim.to_string();
    let ended =
        run(&[&["-n", "3"], options, &[ranks_that_die_program(), way, &victim_text]].concat()).expect(137);
    let died = format!("tasuki: rank {victim} died: signal 9, SIGKILL");
    assert!(matches!(ended.messages()[..], [message] if message.starts_with(&died)), "{ended:?}");
    for other in (0..3).filter(|&other| other != victim) {
        let (said, names) = (format!("rank {other} got the error: "), format!("rank {victim} died"));
        let reports_it = |line: &str| line.starts_with(&said) && line.contains(&names);
        assert!(ended.err.lines().any(reports_it), "rank {other} did not report it: {ended:?}");
    }
    ended
}

const OFF: &[&str] = &["--helper", "off"];

#[test]
fn with_the_lease_of_a_queue_that_its_owner_looks_at() {
    dies(OFF, "ahead", 1);
}

#[test]
fn with_the_lease_of_a_queue_that_its_owner_wants() {
    dies(OFF, "lease", 1);
}

#[test]
fn with_a_command_of_another_under_way() {
    dies(OFF, "in_flight", 1);
    dies(OFF, "remote_note", 1);
}

#[test]
fn half_way_through_a_chunk_of_a_shared_copy() {
    dies(OFF, "chunk", 1);
}

#[test]
fn in_a_handler() {
    for helper in ["off", "rank"] {
        dies(&["--helper", helper], "handler", 1);
    }
}

/// What a rank's helper does can kill the rank even while its program computes.
#[test]
fn by_its_helper() {
    dies(&["--helper", "rank"], "helper", 1);
    dies(&["--helper", "node"], "helper", 0);
}

/// The receiver notices the loss of a sender before the launcher does, because it fetches a message from
/// it. The launcher names the signal all the same, and the errors name the calls.
#[test]
fn while_it_sends_to_one() {
    for _ in 0..10 {
        let ended = dies(OFF, "any_source", 1);
        for call in ["rank 0 got the error: rank 0: recv_any(", "rank 2 got the error: rank 2: send_any("] {
            assert!(ended.err.lines().any(|line| line.starts_with(call)), "{call}: {ended:?}");
        }
    }
}
