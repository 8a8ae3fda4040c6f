//! Ranks that another launcher starts and that find each other by PMI-1. They must run cases as
//! ranks of `tasuki run` do, detect a death without that launcher, and report an error if the
//! process manager is wrong.

use tasuki_tests::failing_jobs;
use tasuki_tests::pmi_manager::{Ended, Manager, Manners, orderly};
use tasuki_tests::watchdog::Watchdog;

const CASES: &str = env!("CARGO_BIN_EXE_conformance");
const WAITING: &str = env!("CARGO_BIN_EXE_ranks_that_wait");

/// Runs a case on 2, 4 and 8 ranks.
fn runs(name: &str) {
    for size in [2, 4, 8] {
        let _watched = Watchdog::over(format!("{name} on {size} ranks by PMI"));
        let mut manager = Manager::start(CASES, &[name], size, &[], orderly);
        for (rank, Ended { status, said }) in manager.wait().into_iter().enumerate() {
            assert!(status.success() && said.is_empty(), "{name}, rank {rank} of {size}: {status}\n{said}");
        }
        assert_eq!(manager.finalized(), size, "every rank has sent finalize");
    }
}

#[test]
fn addresses_and_memory() {
    runs("a1_addresses_differ_and_name_their_rank");
    runs("b1_any_rank_to_any_rank");
}

#[test]
fn atomics_and_signals() {
    runs("c7_fetch_adds_are_exact");
    runs("d1_bytes_are_there_when_the_signal_is_seen");
}

#[test]
fn threads_of_a_rank() {
    runs("g18_eight_threads_wait");
}

#[test]
fn jobs_fail_as_they_should() {
    for failing in failing_jobs::FAILING.iter().filter(|failing| failing.ranks > 1) {
        let _watched = Watchdog::over(format!("{} by PMI", failing.name));
        let ended = Manager::start(CASES, &[failing.name], failing.ranks, &[], orderly).wait();
        let said: String = ended.iter().map(|rank| rank.said.as_str()).collect();
        assert!(ended.iter().any(|rank| rank.status.code() == Some(1)), "{}: {said}", failing.name);
        for wanted in failing.says {
            assert!(said.contains(wanted), "{}: {wanted:?} is not in: {said}", failing.name);
        }
    }
}

/// Kills one of four ranks that wait, and returns how the others ended.
fn kill(victim: usize, variables: &[(&str, &str)]) -> Vec<Ended> {
    let _watched = Watchdog::over(format!("rank {victim} is killed under PMI, {variables:?}"));
    let mut manager = Manager::start(WAITING, &[], 4, variables, orderly);
    manager.read_lines();
    manager.kill(victim);
    let mut ended = manager.wait();
    assert_eq!(ended.remove(victim).status.code(), None, "the victim was killed");
    ended
}

#[test]
fn a_death_ends_the_others_calls_and_is_named() {
    for (victim, variables) in
        [(2, &[][..]), (0, &[]), (2, &[("TASUKI_DISABLE", "pidfd")]), (0, &[("TASUKI_DISABLE", "pidfd")])]
    {
        for Ended { status, said } in kill(victim, variables) {
            let named = said.contains(&format!("rank {victim} died (process "));
            assert!(status.code() == Some(1) && named && said.contains("wait(signal"), "{status}: {said}");
        }
    }
}

#[test]
fn a_death_is_noticed_after_rank_0_has_left() {
    let _watched = Watchdog::over("rank 2 is killed after rank 0 has left");
    let mut manager = Manager::start(WAITING, &["first-leaves"], 3, &[], orderly);
    manager.read_lines();
    manager.kill(2);
    let ended = manager.wait();
    assert_eq!((ended[0].status.code(), ended[0].said.as_str()), (Some(0), ""), "rank 0 left in order");
    assert!(ended[1].said.contains("rank 2 died (process "), "{}", ended[1].said);
}

/// Asserts that with this manager all ranks fail to join the job, with an error that contains
/// `wanted`.
fn refused(manners: Manners, wanted: &[&str]) {
    let _watched = Watchdog::over(format!("a manager that leads to {wanted:?}"));
    let ended = Manager::start(WAITING, &[], 3, &[], manners).wait();
    for (rank, Ended { status, said }) in ended.into_iter().enumerate() {
        assert_eq!(status.code(), Some(1), "rank {rank}: {said}");
        assert!(said.starts_with(&format!("error: rank {rank}: join: ")), "{said}");
        wanted.iter().for_each(|wanted| assert!(said.contains(wanted), "{wanted:?} is not in: {said}"));
    }
}

#[test]
fn a_manager_that_talks_nonsense_is_shown() {
    refused(
        |_, _, _| Some("220 smtp.example.org ready\n".into()),
        &["is malformed", "220 smtp", "unset them"],
    );
    refused(|_, _, answer| Some(answer.replace("pmi_version=1", "pmi_version=2")), &["not of version 1"]);
    refused(
        |_, _, answer| Some(answer.replace("put_result rc=0", "put_result rc=-1")),
        &["refused `cmd=put"],
    );
    refused(|_, _, answer| Some(answer.replace("1024", "16")), &["values of 15 bytes"]);
    refused(
        |_, request, answer| {
            Some(if request.contains("get_maxes") { "\u{0}\u{fffd}\n".into() } else { answer })
        },
        &["`cmd=get_maxes` is malformed"],
    );
}

#[test]
fn a_manager_that_goes_away_is_an_error() {
    refused(|_, _, _| None, &["does not answer `cmd=init", "unset them"]);
    refused(
        |_, request, answer| (!request.contains("barrier_in")).then_some(answer),
        &["does not answer `cmd=barrier_in`"],
    );
}

#[test]
fn ranks_on_two_hosts_get_an_error_that_names_the_hosts() {
    /// Makes the card of rank 2 say that it runs on another host.
    fn elsewhere(_: usize, request: &str, answer: String) -> Option<String> {
        let card = request.contains("cmd=get ") && request.ends_with("key=tasuki-2");
        let moved = || answer.replacen("tasuki-card-1,", "tasuki-card-1,1,far-away,", 1);
        // The new fields push the rest of the real card behind; cut it off, or the card would have
        // too many fields.
        let cut = |card: String| card.trim_end().split(',').take(5).collect::<Vec<_>>().join(",") + "\n";
        Some(if card { cut(moved()) } else { answer })
    }
    refused(elsewhere, &["rank 0 runs on host ", "and rank 2 on host far-away", "no fabric between hosts"]);
}

#[test]
fn ranks_of_another_version_get_an_error_that_says_so() {
    refused(
        |_, _, answer| Some(answer.replace("value=tasuki-card-1", "value=tasuki-card-9")),
        &["the card of rank 0", "from the same version"],
    );
}

#[test]
fn a_descriptor_that_is_no_manager_s_is_an_error() {
    for (descriptor, wanted) in
        [("77", "PMI_FD=77 is not a connection"), ("1", "PMI_FD=1 is not a connection"), ("x", "PMI_FD")]
    {
        let _watched = Watchdog::over(format!("PMI_FD={descriptor}"));
        let ended = Manager::start(WAITING, &[], 2, &[("PMI_FD", descriptor)], orderly).wait();
        for Ended { status, said } in ended {
            assert!(status.code() == Some(1) && said.contains(wanted) && said.contains("unset"), "{said}");
        }
    }
}
