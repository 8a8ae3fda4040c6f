//! How jobs end: deaths, time-outs, signals; L2 and L3 with single faults.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{
    Running, rank_program, ranks_that_exit_wrongly_program, run, run_ranks, send, start_ranks, tasuki_run,
};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tempfile::TempDir;

/// Asks the launcher for its three ranks' states until the answer contains `what`.
fn until_said(running: &mut Running, what: &str) {
    running.until_ranks_run(3);
    running.until(what, |running| {
        running.signal(Signal::QUIT);
        running.err().contains(what)
    });
}

/// Ranks that have met and wait until a file appears in the folder.
fn start_held(count: usize) -> (Running, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let go = folder.path().join("go");
    (start_ranks(count, &format!("join meet until:{} leave", go.display())), folder)
}

fn let_go(folder: &TempDir) {
    std::fs::write(folder.path().join("go"), "").expect("a file");
}

#[test]
fn a_killed_rank_ends_the_job_with_one_message() {
    let mut running = start_ranks(3, "join meet wait leave");
    until_said(&mut running, "ranks 0-2: waiting");
    let victim = running.ranks()[1];
    send(victim, Signal::KILL);
    let ended = running.wait().expect(137);
    let died: Vec<&str> = ended.messages().into_iter().filter(|line| line.contains("died")).collect();
    assert_eq!(died, ["tasuki: rank 1 died: signal 9, SIGKILL"]);
    let rest = ended.err.split("died").nth(1).unwrap();
    assert!(rest.contains("ranks 0, 2: waiting for"), "what the others waited for: {rest}");
    assert!(rest.contains("in wait(signal 7 >= 4)"), "{rest}");
    for other in [0, 2] {
        let own = format!("rank {other}: wait(signal 7 >= 4): rank 1 died");
        assert!(ended.err.contains(&own), "the others end by themselves: {}", ended.err);
    }
}

#[test]
fn without_pidfd_it_is_the_same() {
    let mut command = tasuki_run(&["-n", "3", rank_program(), "join", "meet", "wait"]);
    command.env("TASUKI_DISABLE", "pidfd,membarrier");
    let mut running = Running::start(command);
    until_said(&mut running, "ranks 0-2: waiting");
    send(running.ranks()[2], Signal::KILL);
    let ended = running.wait().expect(137);
    assert!(ended.err.contains("rank 2 died: signal 9, SIGKILL"), "{}", ended.err);
}

#[test]
fn a_code_of_a_joined_rank_ends_the_job() {
    let ended = run_ranks(3, "join meet @1:exit:3 wait").expect(3);
    assert!(ended.err.contains("rank 1 died: exit code 3"), "{}", ended.err);
    let ended = run_ranks(3, "join meet @0:abort wait").expect(134);
    assert!(ended.err.contains("rank 0 died: signal 6, SIGABRT"), "{}", ended.err);
}

#[test]
fn an_end_in_peace_without_leaving_is_a_death() {
    let ended = run_ranks(3, "join meet @2:exit:0 wait").expect(1);
    assert!(ended.err.contains("rank 2 died: exit code 0 without leaving the job"), "{}", ended.err);
}

#[test]
fn the_death_of_a_program_inside_a_shell_is_detected_by_its_connection() {
    let script = format!("{} join meet @1:exit:0 wait; sleep 3600", rank_program());
    let ended = run(&["-n", "2", "sh", "-c", &script]).expect(1);
    assert!(ended.err.contains("rank 1 died: its program (process "), "{}", ended.err);
    assert_eq!(ended.messages().len(), 1);
}

#[test]
fn the_rank_that_failed_first_is_named_whoever_ends_first() {
    let ended = run_ranks(3, "join meet @1:sleep:50 @1:fail:no_bread @1:sleep:200 @1:exit:7 wait").expect(7);
    assert!(ended.err.contains("rank 1 died: no_bread"), "{}", ended.err);
    assert_eq!(ended.messages().len(), 1);
}

#[test]
fn ranks_that_wait_for_one_that_never_joins_get_an_error() {
    for steps in ["@1:exit:0 join wait", "@1:sleep:100 @1:exit:0 join wait", "@1:exit:0 sleep:100 join wait"]
    {
        let ended = run_ranks(3, steps).expect(1);
        assert!(ended.err.contains("rank 1 died: exit code 0 without ever joining the job"), "{}", ended.err);
        assert!(ended.err.contains(": join: rank 1 died"), "the others' own words: {}", ended.err);
        assert_eq!(ended.messages().len(), 1);
    }
}

#[test]
fn descendants_end_with_their_rank() {
    let ended = run(&["-n", "2", "sh", "-c", "sleep 3600 & (sleep 3600 & sleep 3600) & echo done"]).expect(0);
    assert_eq!(ended.out, "done\ndone\n");
    run_ranks(2, "join child leave").expect(0);
}

#[test]
fn ranks_that_ignore_sigterm_are_killed() {
    // Rank 0 fails when the others ignore the signal that will be sent to them.
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display();
    let ready = format!("[ -e {place}/1 ] && [ -e {place}/2 ]");
    let first = format!("until {ready}; do sleep 0.01; done; exit 5");
    let others = format!("trap '' TERM INT HUP; : > {place}/$TASUKI_RANK; while :; do sleep 0.1; done");
    let script = format!("if [ $TASUKI_RANK = 0 ]; then {first}; else {others}; fi");
    let ended = run(&["-n", "3", "--grace", "200ms", "sh", "-c", &script]).expect(5);
    let killed = ended.messages().into_iter().find(|line| line.contains("killed"));
    let killed = killed.unwrap_or_else(|| panic!("no message names the rank that was killed: {}", ended.err));
    assert!(killed.starts_with("tasuki: killed ranks 1, 2, which had not ended "), "{killed}");
    assert!(
        killed.ends_with(" s after SIGTERM") && ended.err.contains("hint: `--grace TIME`"),
        "{}",
        ended.err
    );
}

#[test]
fn without_grace_ranks_are_killed_right_after_the_signal() {
    let script = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.1; done";
    let mut running = Running::start(tasuki_run(&["-n", "2", "--grace", "0", "sh", "-c", script]));
    running.until("ready", |running| running.out().matches("ready").count() == 2);
    running.signal(Signal::TERM);
    let ended = running.wait().expect(143);
    assert_eq!(
        ended.messages(),
        ["tasuki: killed ranks 0, 1 right after SIGTERM (--grace 0)"],
        "{}",
        ended.err
    );
}

/// A rank that needs some time to end after it is asked to, like one that writes a checkpoint.
const SAVING: &str =
    "trap 'sleep 1.5; echo saved; exit 0' TERM INT; echo ready; while :; do sleep 0.01; done";

fn start_saving(options: &[&str]) -> Running {
    let mut running = Running::start(tasuki_run(&[&["-n", "2"], options, &["sh", "-c", SAVING]].concat()));
    running.until("ready", |running| running.out().matches("ready").count() == 2);
    running
}

#[test]
fn ranks_that_are_asked_to_end_have_time_for_a_checkpoint() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut running = start_saving(&[]);
        running.signal(signal);
        let ended = running.wait().expect(code);
        assert_eq!(ended.out.matches("saved").count(), 2, "{ended:?}");
        let said = "tasuki: waiting for ranks 0, 1 to end; SIGKILL follows in ";
        assert!(matches!(ended.messages()[..], [one] if one.starts_with(said)), "{ended:?}");
    }
    let ended = start_saving(&["--timeout", "1s"]).wait().expect(124);
    assert_eq!(ended.out.matches("saved").count(), 2, "{ended:?}");
}

/// GNU `timeout` signals its child and then the child's group.
#[test]
fn a_signal_that_comes_twice_at_once_is_one_request() {
    let mut running = start_saving(&[]);
    running.signal(Signal::TERM);
    std::thread::sleep(std::time::Duration::from_millis(20));
    running.signal(Signal::TERM);
    let ended = running.wait().expect(143);
    assert_eq!(ended.out.matches("saved").count(), 2, "{ended:?}");
}

#[test]
fn a_stopped_rank_can_end_when_it_is_asked_to() {
    let mut running = start_ranks(2, "hold");
    running.until_ranks_run(2);
    send(running.ranks()[1], Signal::STOP);
    running.signal(Signal::TERM);
    let ended = running.wait().expect(143);
    assert!(!ended.err.contains("killed"), "{}", ended.err);
}

#[test]
fn sighup_and_the_user_s_signals_are_handed_on_and_the_job_goes_on() {
    let traps = "trap 'echo one' USR1; trap 'echo two' USR2; trap 'echo hup' HUP; trap 'exit 0' TERM";
    let script = format!("{traps}; echo ready; while :; do sleep 0.01; done");
    let mut running = Running::start(tasuki_run(&["-n", "2", "sh", "-c", &script]));
    running.until("ready", |running| running.out().matches("ready").count() == 2);
    for (signal, word) in [(Signal::USR1, "one"), (Signal::USR2, "two"), (Signal::HUP, "hup")] {
        running.signal(signal);
        running.until("forwarded", |running| running.out().matches(word).count() == 2);
    }
    running.signal(Signal::TERM);
    let ended = running.wait().expect(143);
    assert!(ended.messages().is_empty(), "{}", ended.err);
}

#[test]
fn a_rank_killed_by_a_forwarded_signal_is_reported_with_the_reason() {
    let mut running = start_ranks(1, "hold");
    running.until_ranks_run(1);
    running.signal(Signal::USR1);
    let ended = running.wait().expect(138);
    assert!(
        ended.err.contains("rank 0 died: signal 10, SIGUSR1, which was forwarded to it"),
        "{}",
        ended.err
    );
}

#[test]
fn a_stopped_rank_is_alive() {
    let (mut running, folder) = start_held(3);
    running.until_ranks_run(3);
    let stopped = running.ranks()[1];
    send(stopped, Signal::STOP);
    until_said(&mut running, "rank 1: stopped");
    send(stopped, Signal::CONT);
    let_go(&folder);
    running.wait().expect(0);
}

#[test]
fn a_timeout_shows_what_all_wait_for() {
    let mut command = tasuki_run(&["-n", "3", "--timeout", "1s", rank_program(), "join", "meet"]);
    command.args(["@1:hold", "wait"]);
    let ended = Running::start(command).wait().expect(124);
    assert!(ended.err.starts_with("tasuki: the job has not ended within 1s (--timeout)\n"), "{}", ended.err);
    assert!(ended.err.contains("  ranks 0, 2: waiting for "), "{}", ended.err);
    assert!(ended.err.contains("  rank 1: sleeping\n"), "{}", ended.err);
}

#[test]
fn ctrl_c_and_sigterm_end_all_and_are_handed_on() {
    for (signal, name, code) in [(Signal::INT, "INT", 130), (Signal::TERM, "TERM", 143)] {
        let script = format!("trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.01; done");
        let mut running = Running::start(tasuki_run(&["-n", "2", "sh", "-c", &script]));
        running.until("ready", |running| running.out().matches("ready").count() == 2);
        running.signal(signal);
        let ended = running.wait().expect(code);
        assert_eq!(ended.out.matches("got").count(), 2, "{}", ended.out);
        assert!(ended.messages().is_empty(), "{}", ended.err);
    }
}

#[test]
fn a_second_ctrl_c_leaves_a_second() {
    let script = "trap 'echo got' INT TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = Running::start(tasuki_run(&["-n", "2", "--grace", "1h", "sh", "-c", script]));
    running.until("ready", |running| running.out().matches("ready").count() == 2);
    running.signal(Signal::INT);
    running.until("forwarded", |running| running.out().matches("got").count() >= 2);
    std::thread::sleep(std::time::Duration::from_millis(600));
    running.signal(Signal::INT);
    let ended = running.wait().expect(130);
    assert_eq!(ended.out.matches("got").count(), 4, "both are forwarded: {}", ended.out);
    let last = ended.messages().last().copied().unwrap_or_default();
    assert!(last.starts_with("tasuki: killed ranks 0, 1, which had not ended "), "{}", ended.err);
    assert!(!ended.err.contains("hint:"), "the user wanted it so: {}", ended.err);
}

#[test]
fn nohup_is_respected() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("trap '' HUP; exec {} run -n 1 sh -c 'echo ready; sleep 0.3'", launcher::TASUKI),
    ]);
    let mut running = Running::start(command);
    running.until("ready", |running| running.out().contains("ready"));
    running.signal(Signal::HUP);
    running.wait().expect(0);
}

#[test]
fn ctrl_z_stops_the_ranks_too() {
    let (mut running, folder) = start_held(2);
    running.until_ranks_run(2);
    let ranks = running.ranks();
    running.signal(Signal::TSTP);
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().unwrap_or_default().chars().next()
    };
    running.until("all stopped", |running| {
        let pid = running.pid();
        ranks.iter().chain([&pid]).all(|pid| state(*pid) == Some('T'))
    });
    running.signal(Signal::CONT);
    let_go(&folder);
    running.wait().expect(0);
}

#[test]
fn sigquit_shows_the_waits_and_goes_on() {
    let mut running = start_ranks(3, "join meet @0:hold wait");
    until_said(&mut running, "rank 0: sleeping\n  ranks 1, 2: waiting for");
    running.signal(Signal::TERM);
    running.wait().expect(143);
}

#[test]
fn a_killed_launcher_leaves_nothing() {
    for steps in ["join meet child wait", "child hold"] {
        let mut running = start_ranks(3, steps);
        running.until("ranks and their descendants", |running| running.marked().len() >= 8);
        running.signal(Signal::KILL);
        assert_eq!(running.wait().status.code(), None);
    }
}

#[test]
fn a_killed_launcher_s_keeper_survives_the_terminal_s_signals() {
    let mut command =
        tasuki_run(&["-n", "2", "sh", "-c", "trap '' INT TERM HUP; echo ready; sleep 3600; sleep 3600"]);
    command.process_group(0);
    let mut running = Running::start(command);
    running.until("ready", |running| running.out().matches("ready").count() == 2);
    let group = Pid::from_raw(running.pid() as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None);
}

#[test]
fn a_killed_launcher_s_stopped_ranks_end_too() {
    let mut running = start_ranks(2, "child hold");
    running.until("ranks and their descendants", |running| running.marked().len() >= 6);
    running.ranks().into_iter().for_each(|pid| send(pid, Signal::STOP));
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None);
}

/// Commands that start a rank in another session or group than that of the process that the
/// launcher started.
const APART: [&[&str]; 3] = [
    &["setsid", "--wait"],
    &["sh", "-c", "setsid --wait \"$@\"; true", "sh"],
    &["sh", "-mc", "\"$@\" & wait $!", "sh"],
];

fn start_apart(starter: &[&str], steps: &[&str]) -> Running {
    let mut command = tasuki_run(&["-n", "2"]);
    command.args(starter).arg(rank_program()).args(steps);
    Running::start(command)
}

#[test]
fn ranks_in_sessions_of_their_own_end_with_a_killed_launcher() {
    for starter in APART {
        let mut running = start_apart(starter, &["join", "meet", "child", "say:ready", "wait"]);
        running.until("ready", |running| running.out().matches("ready").count() == 2);
        running.signal(Signal::KILL);
        assert_eq!(running.wait().status.code(), None);
    }
}

#[test]
fn ranks_in_sessions_of_their_own_are_known_to_a_new_keeper() {
    let mut running = start_apart(APART[0], &["join", "meet", "say:ready", "wait"]);
    running.until("ready", |running| running.out().matches("ready").count() == 2);
    let keeper = running.children()[0];
    send(keeper, Signal::KILL);
    running.until("another keeper", |running| {
        let is_new = |pid: &u32| *pid != keeper && launcher::command_line(*pid).contains("__keeper");
        running.children().iter().any(is_new)
    });
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None);
}

#[test]
fn ranks_in_sessions_of_their_own_end_with_their_job() {
    for (starter, denied) in APART.into_iter().flat_map(|starter| [(starter, ""), (starter, "pidfd")]) {
        let mut command = tasuki_run(&["-n", "2"]);
        command.args(starter).arg(rank_program()).args(["join", "meet", "child", "@1:exit:3", "hold"]);
        command.env("TASUKI_DISABLE", denied);
        let ended = Running::start(command).wait();
        assert!(ended.err.contains("rank 1 died: "), "{starter:?} without {denied:?}: {ended:?}");
    }
}

/// Runs the program that ends wrongly, on two ranks.
fn ending(args: &[&str], what: &str) -> launcher::Ended {
    let mut command = tasuki_run(&["-n", "2"]);
    command.args(args).args([ranks_that_exit_wrongly_program(), what]);
    Running::start(command).wait()
}

#[test]
fn a_rank_that_ends_the_process_of_all_is_named() {
    for args in [&["--threads"][..], &["--fabric", "sim"]] {
        let ended = ending(args, "exit").expect(1);
        let said = "rank 1 died: its program called exit, which ended all ranks of the process (exit code 0 before ranks 0, 1 left";
        assert!(ended.err.contains(said), "{args:?}: {}", ended.err);
        let ended = ending(args, "exit_1").expect(1);
        let said = "rank 1 died: its program called exit, which ended all ranks of the process (exit code 1)";
        assert!(ended.err.contains(said), "{args:?}: {}", ended.err);
        let ended = ending(args, "exit_from_a_thread").expect(1);
        let said = "the process of ranks 0, 1 died: exit code 0 before ranks 0, 1 left the job";
        assert!(ended.err.contains(said), "{args:?}: {}", ended.err);
    }
}

#[test]
fn forked_children_that_return_from_the_program_end_and_disturb_nothing() {
    let ways: [&[&str]; 6] = [
        &["--helper", "off"],
        &["--helper", "node"],
        &["--helper", "rank"],
        &["--threads", "--helper", "off"],
        &["--threads", "--helper", "rank"],
        &["--fabric", "sim"],
    ];
    for way in ways {
        for what in ["fork_returns", "fork_fails", "fork_panics"] {
            let ended = ending(way, what);
            assert_eq!(ended.status.code(), Some(0), "{way:?} {what}: {ended:?}");
            let is_process = !way.contains(&"--threads") && !way.contains(&"sim");
            if is_process && what != "fork_returns" {
                assert!(ended.err.contains("error: a forked child of rank 0"), "{way:?} {what}: {ended:?}");
                assert!(!ended.err.contains("error: rank"), "{way:?} {what}: {ended:?}");
            }
        }
    }
}

/// The kernel's score for killing a process when memory runs out.
fn oom_score(pid: u32) -> i32 {
    let score = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("it runs");
    score.trim().parse().expect("a number")
}

#[test]
fn where_memory_runs_out_ranks_go_before_the_launcher() {
    for args in [&[][..], &["--threads"]] {
        let mut command = tasuki_run(&["-n", "2"]);
        command.args(args).args(["sh", "-c", "echo ready; sleep 3600"]);
        let mut running = Running::start(command);
        let count = if args.is_empty() { 2 } else { 1 };
        running.until("ready", |running| running.out().matches("ready").count() == count);
        let ours = oom_score(running.pid());
        let children = running.children();
        assert_eq!(oom_score(children[0]), ours, "the keeper");
        for &rank in &children[1..] {
            assert!(oom_score(rank) > ours || ours == 1000, "{} beside {ours}", oom_score(rank));
        }
        running.signal(Signal::TERM);
        running.wait().expect(143);
    }
}
