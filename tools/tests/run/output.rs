//! L1: what ranks are given, what they write, and the exit code.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{Running, TASUKI, run, tasuki_run};
use std::process::{Command, Stdio};

#[test]
fn arguments_and_environment_arrive() {
    let script = r#"echo "$TASUKI_RANK of $TASUKI_SIZE: $ADDED, $1, $2""#;
    let args = ["-n", "2", "--env", "ADDED=a=b c", "sh", "-c", script, "sh", "-x", "two words"];
    let ended = run(&args).expect(0);
    assert_eq!(ended.lines(), ["0 of 2: a=b c, -x, two words", "1 of 2: a=b c, -x, two words"]);
    assert_eq!(ended.err, "", "nothing is said on success");
}

#[test]
fn variables_of_an_outer_job_do_not_reach_an_inner_one() {
    let mut command = tasuki_run(&["-n", "1", "sh", "-c", "echo $TASUKI_RANK $TASUKI_SIZE $TASUKI_THREADS."]);
    command.envs([("TASUKI_RANK", "7"), ("TASUKI_SIZE", "9"), ("TASUKI_THREADS", "3")]);
    assert_eq!(Running::start(command).wait().expect(0).out, "0 1 .\n");
}

#[test]
fn rank_0_alone_gets_standard_input() {
    let mut command = tasuki_run(&["-n", "3", "sh", "-c", "sed s/^/$TASUKI_RANK:/"]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.feed("a\nb\n");
    assert_eq!(running.wait().expect(0).out, "0:a\n0:b\n");
}

#[test]
fn lines_of_different_ranks_never_mix() {
    let script = "i=0; while [ $i -lt 300 ]; do printf 'rank %s ' $TASUKI_RANK; printf 'line %s end\\n' $i; \
                  i=$((i+1)); done";
    let ended = run(&["-n", "4", "sh", "-c", script]).expect(0);
    for rank in 0..4 {
        let mine: Vec<&str> =
            ended.out.lines().filter(|line| line.starts_with(&format!("rank {rank} "))).collect();
        let expected: Vec<String> = (0..300).map(|i| format!("rank {rank} line {i} end")).collect();
        assert_eq!(mine, expected, "each rank's lines are whole and in order");
    }
    assert_eq!(ended.out.lines().count(), 1200);
}

#[test]
fn a_prompt_is_shown_before_its_line_ends() {
    let script = "if [ $TASUKI_RANK = 0 ]; then printf 'name? '; read name; echo \"hello $name\"; fi";
    let mut command = tasuki_run(&["-n", "2", "sh", "-c", script]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.until("a prompt", |running| running.out() == "name? ");
    running.feed("you\n");
    assert_eq!(running.wait().expect(0).out, "name? hello you\n");
}

/// Rank 0 begins a line, rank 1 writes one, and rank 0 ends its own, in this order.
fn cut_in_two(options: &str, other: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (begun, written) = (folder.path().join("begun"), folder.path().join("written"));
    let until = |file: &std::path::Path| format!("until [ -e {} ]; do sleep 0.01; done", file.display());
    let first = format!("printf ha; {}; echo lf", until(&written));
    let second = format!("{}; {other}", until(&begun));
    let script = format!("if [ $TASUKI_RANK = 0 ]; then {first}; else {second}; fi");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {TASUKI} run -n 2 {options} sh -c '{script}' 2>&1")]);
    let mut running = Running::start(command);
    running.until("the beginning of a line", |running| running.out().contains("ha"));
    std::fs::write(&begun, "").expect("it can be written");
    running.until("the other line", |running| running.out().contains("other"));
    std::fs::write(&written, "").expect("it can be written");
    running.wait().expect(0).out
}

#[test]
fn a_line_that_is_cut_by_another_rank_s_shares_no_line_with_it() {
    assert_eq!(cut_in_two("", "echo other"), "ha\nother\nlf\n");
    assert_eq!(cut_in_two("--label", "echo other"), "[0] ha\n[1] other\n[0] lf\n");
}

#[test]
fn where_both_streams_are_one_they_share_no_line() {
    assert_eq!(cut_in_two("--label", "echo other >&2"), "[0] ha\n[1] other\n[0] lf\n");
}

#[test]
fn both_streams_are_labelled_on_request() {
    let script = "echo out; echo err >&2; printf last";
    let ended = run(&["-n", "2", "--label", "sh", "-c", script]).expect(0);
    let mut err: Vec<&str> = ended.err.lines().collect();
    err.sort_unstable();
    assert_eq!(err, ["[0] err", "[1] err"]);
    assert_eq!(ended.lines(), ["[0] last", "[0] out", "[1] last", "[1] out"]);
}

#[test]
fn a_last_line_without_end_is_printed() {
    assert_eq!(run(&["-n", "1", "printf", "no end"]).expect(0).out, "no end");
}

#[test]
fn an_endless_line_and_bytes_that_are_no_text_pass() {
    let ended =
        run(&["-n", "1", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\001\\n'"]).expect(0);
    assert_eq!(ended.out.len(), 3_000_002);
}

#[test]
fn much_output_passes_at_once_on_both_streams() {
    let script = "seq 1 200000; seq 1 200000 >&2";
    let ended = run(&["-n", "3", "sh", "-c", script]).expect(0);
    assert_eq!((ended.out.lines().count(), ended.err.lines().count()), (600_000, 600_000));
}

#[test]
fn the_exit_code_is_that_of_the_first_failure() {
    run(&["-n", "2", "true"]).expect(0);
    run(&["-n", "2", "sh", "-c", "exit $((TASUKI_RANK * 7))"]).expect(7);
    let script = "if [ $TASUKI_RANK = 1 ]; then exit 3; fi; trap 'exit 9' TERM; while :; do sleep 0.01; done";
    run(&["-n", "2", "sh", "-c", script]).expect(3);
}

#[test]
fn a_signal_s_code_is_128_and_its_number() {
    for (name, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15), ("40", 40)] {
        let ended =
            run(&["-n", "1", "sh", "-c", &format!("ulimit -c 0; kill -{name} $$")]).expect(128 + number);
        assert_eq!(ended.messages().len(), 1);
        assert!(ended.err.contains(&format!("rank 0 died: signal {number}")), "{}", ended.err);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_job() {
    let mut command = Command::new("bash");
    let script = format!("{TASUKI} run -n 2 yes | head -n 1; echo ${{PIPESTATUS[0]}}");
    command.args(["-c", &script]);
    let ended = Running::start(command).wait().expect(0);
    assert_eq!(ended.out, "y\n141\n");
}

#[test]
fn a_full_disk_is_reported() {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec {TASUKI} run -n 2 echo text > /dev/full")]);
    let ended = Running::start(command).wait().expect(1);
    assert!(ended.err.contains("standard output: No space left"), "{}", ended.err);
}

#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_ending_the_job() {
    let (unread, pipe) = std::io::pipe().unwrap();
    let mut command = tasuki_run(&["-n", "2", "--timeout", "300ms", "yes"]);
    command.stdout(pipe);
    Running::start_writing(command).wait().expect(124);
    drop(unread);
}

#[test]
fn a_terminal_s_lines_reach_rank_0() {
    // Ranks are not in the foreground group: if they read the terminal themselves, it would stop
    // them.
    let script = "sh -c 'test $TASUKI_RANK = 0 && read line && echo got $line; true'";
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{TASUKI} run -n 2 {script}"), "/dev/null"]).stdin(Stdio::piped());
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no script(1) to make a terminal");
        return;
    }
    let mut running = Running::start(command);
    running.feed("hello\n");
    assert!(running.wait().expect(0).out.contains("got hello"));
}

#[test]
fn a_pipeline_ends_with_the_job() {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{TASUKI} run -n 2 echo text 2>&1 3>&1 | cat")]);
    assert_eq!(Running::start(command).wait().expect(0).out, "text\ntext\n");
}
