//! What `tasuki ps`, `--timeout` and SIGQUIT say about ranks that wait: the program's call, the
//! awaited rank, and ranks that wait for each other for ever.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{Running, TASUKI, ranks_that_block_program, tasuki_run};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn ps(args: &[&str]) -> Output {
    Command::new(TASUKI).arg("ps").args(args).output().expect("tasuki ps")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// The job of that launcher; `None` until it has one.
fn job(launcher: u32) -> Option<Value> {
    let all: Value = serde_json::from_slice(&ps(&["--json"]).stdout).ok()?;
    all.as_array()?.iter().find(|job| job["launcher"] == launcher).cloned()
}

/// The calls in which ranks of a job wait, without ranks that do not wait.
fn calls(job: &Value) -> Vec<String> {
    let ranks = job["ranks"].as_array().into_iter().flatten();
    ranks.map(|rank| rank["waits_in"].as_str().unwrap_or_default().to_string()).collect()
}

fn start(options: &[&str], what: &str, folder: &TempDir) -> Running {
    let folder = folder.path().to_str().expect("a path in Unicode");
    Running::start(tasuki_run(&[options, &[ranks_that_block_program(), what, folder]].concat()))
}

fn open(folder: &TempDir, gate: impl ToString) {
    std::fs::write(folder.path().join(gate.to_string()), "").expect("a file");
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The waits of the program `ranks_that_block calls`, in order, as at least one of the ranks shows them.
const CALLS: [&str; 20] = [
    "job.barrier()",
    "barrier(world)",
    "allreduce(8 bytes, world)",
    "allreduce(8 bytes, world)",
    "allreduce(8 KiB, world)",
    "bcast(8 KiB from rank 3, world)",
    "gather(8 bytes to rank 0, world)",
    "ibarrier(world)",
    "iallreduce(8 KiB, world)",
    "recv(slot 5 from rank 3)",
    "irecv(slot 5 from rank 3)",
    "send(slot 6 to rank 3)",
    "await(irecv(slot 5 from rank 3))",
    "plan(allreduce 8 KiB, world, start 4)",
    "fuzzy_barrier(world, instance 1)",
    "split(colour 2, world)",
    "allreduce(8 bytes, split(colour 1) of world)",
    "allgather(uneven, 1 value, world)",
    "wait(signal ",
    "alloc(7 x u64)",
];

fn names_each_call(options: &[&str]) {
    let folder = folder();
    let mut running = start(&[&["-n", "4"], options].concat(), "calls", &folder);
    let launcher = running.pid();
    for (number, expected) in CALLS.iter().enumerate() {
        running.until(&format!("a rank in {expected} (call {number})"), |_| {
            let calls = job(launcher).map_or(Vec::new(), |job| calls(&job));
            calls.iter().any(|call| call.starts_with(expected))
        });
        open(&folder, number);
    }
    running.wait().expect(0);
}

#[test]
fn ps_names_the_programs_call_in_processes() {
    names_each_call(&[]);
}

#[test]
fn ps_names_the_programs_call_in_threads() {
    names_each_call(&["--threads"]);
}

#[test]
fn ps_names_the_programs_call_beside_a_helper() {
    names_each_call(&["--helper", "node"]);
}

/// Traced ranks make collective calls with messages; their waits are shown as the program's calls.
#[test]
fn traces_name_the_programs_call() {
    let folder = folder();
    (0..CALLS.len()).for_each(|number| open(&folder, number));
    let file = folder.path().join("run.json");
    let trace = ["-n", "4", "--trace", file.to_str().expect("a path in Unicode")];
    start(&trace, "calls", &folder).wait().expect(0);
    let trace = std::fs::read_to_string(&file).expect("a trace");
    let waits = ["allreduce(8 bytes, world)", "bcast(8 KiB from rank 3, world)", "iallreduce(8 KiB, world)"];
    for call in waits {
        assert!(trace.contains(call), "{call}");
    }
    // The program sends and receives on slots 5 and 6 only.
    let is_step =
        |name: &str| name.contains("(slot ") && !name.contains("slot 5 ") && !name.contains("slot 6 ");
    let names = trace.split("\"name\"").filter_map(|rest| rest.split('"').nth(1));
    let steps: Vec<&str> = names.filter(|name| is_step(name)).collect();
    assert!(steps.is_empty(), "{steps:?}");
}

/// The deadlocks of a job: the ranks of each, and whether it is certain.
fn deadlocks(job: &Value) -> Vec<(Vec<u64>, bool)> {
    let all = job["deadlocks"].as_array().into_iter().flatten();
    let ranks = |deadlock: &Value| {
        deadlock["ranks"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    };
    all.map(|deadlock| (ranks(deadlock), deadlock["is_certain"] == true)).collect()
}

fn is_found(options: &[&str], what: &str, count: u64) {
    let count_text = count.to_string();
    let mut running = start(&[&["-n", &count_text], options].concat(), what, &folder());
    let launcher = running.pid();
    running.until("a deadlock of all ranks", |_| {
        job(launcher).is_some_and(|job| deadlocks(&job) == [((0..count).collect(), true)])
    });
    running.signal(Signal::QUIT);
    let begin = "  deadlock: rank 0 waits for rank 1 (recv(slot 5 from rank 1)), rank 1 waits for rank ";
    running.until("SIGQUIT says so", |running| running.err().contains(begin));
    assert!(text(&ps(&[]).stdout).contains(begin));
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn ranks_that_wait_for_each_other_are_in_a_deadlock() {
    is_found(&[], "circle", 2);
    is_found(&[], "circle", 3);
    is_found(&["--threads"], "circle", 2);
    is_found(&[], "crossed", 2);
}

#[test]
fn a_time_out_says_who_is_in_a_deadlock() {
    let ended = start(&["-n", "5", "--timeout", "3s"], "circle", &folder()).wait().expect(124);
    let all: Vec<String> = (0..5)
        .map(|rank| {
            let next = (rank + 1) % 5;
            format!("rank {rank} waits for rank {next} (recv(slot 5 from rank {next}))")
        })
        .collect();
    assert!(ended.err.contains(&format!("  deadlock: {}\n", all.join(", "))), "{}", ended.err);
}

/// Messages that were buffered and that nobody receives are shown: no rank waits in a call for them.
#[test]
fn messages_that_nobody_receives_are_shown() {
    for options in [&["-n", "3"][..], &["-n", "3", "--threads"]] {
        let mut running = start(&[options, &["--timeout", "3s"]].concat(), "unreceived", &folder());
        let launcher = running.pid();
        let first = serde_json::json!({ "messages": 2, "to": 0, "slot": 6, "bytes": 16 });
        running.until("two ranks with buffered messages", |_| {
            let Some(job) = job(launcher) else { return false };
            (job["ranks"][1]["send_buffer"] == first && job["ranks"][2]["send_buffer"] == first)
                && job["ranks"][0]["send_buffer"].is_null()
        });
        let line = "send buffer: 2 messages, not received; the oldest for rank 0 on slot 6, 16 bytes";
        assert!(text(&ps(&[]).stdout).contains(line));
        let ended = running.wait().expect(124);
        assert!(ended.err.contains(&format!("\n  ranks 1, 2: {line}\n")), "{}", ended.err);
    }
}

/// Checks for a while that no certain deadlock is shown for a job in which two ranks wait for each
/// other.
fn is_not_said(what: &str) {
    let folder = folder();
    let mut running = start(&["-n", "2"], what, &folder);
    let launcher = running.pid();
    running.until("both wait", |_| {
        job(launcher)
            .is_some_and(|job| calls(&job).iter().filter(|call| call.starts_with("recv")).count() == 2)
    });
    for _ in 0..30 {
        let found = job(launcher).map_or(Vec::new(), |job| deadlocks(&job));
        assert!(found.iter().all(|(_, is_certain)| !is_certain), "{found:?}");
    }
    open(&folder, 0);
    running.wait().expect(0);
}

#[test]
fn who_may_still_go_on_is_in_no_deadlock() {
    is_not_said("threads");
}

/// A message from rank 1 may be all that another rank needs, so the rank counts as able to go on.
#[test]
fn who_still_sends_is_in_no_deadlock() {
    let mut running = start(&["-n", "3"], "sending", &folder());
    let launcher = running.pid();
    let wait = |job: &Value| calls(job).iter().filter(|call| call.starts_with("recv(slot 5 ")).count() == 2;
    running.until("two wait", |_| job(launcher).is_some_and(|job| wait(&job)));
    for _ in 0..10 {
        let found = job(launcher).map_or(Vec::new(), |job| deadlocks(&job));
        assert!(found.is_empty(), "{found:?}");
    }
    running.signal(Signal::TERM);
    running.wait();
}

/// These waits end without another rank.
#[test]
fn waits_with_a_limit_are_no_deadlock() {
    let folder = folder();
    let mut running = start(&["-n", "2"], "limit", &folder);
    let launcher = running.pid();
    running.until("one waits", |_| {
        job(launcher).is_some_and(|job| calls(&job).iter().any(|call| call.starts_with("recv(")))
    });
    for _ in 0..30 {
        assert!(job(launcher).is_none_or(|job| deadlocks(&job).is_empty()));
    }
    open(&folder, 0);
    running.wait().expect(0);
}

/// `--call-timeout` and the variable limit each call of each rank; the error names the call and the limit.
#[test]
fn calls_end_by_the_limit_of_the_job() {
    let folder = folder();
    let program = [ranks_that_block_program(), "circle", folder.path().to_str().expect("a path in Unicode")];
    for (options, by_variable) in [
        (&["-n", "2", "--call-timeout", "200ms"][..], None),
        (&["-n", "2", "--threads", "--call-timeout", "0.2s"], None),
        (&["-n", "2", "--call-timeout", "200ms"], Some("1h")), // the option counts
        (&["-n", "2"], Some("200ms")),
    ] {
        let mut command = tasuki_run(&[options, &program].concat());
        command.envs(by_variable.map(|limit| ("TASUKI_CALL_TIMEOUT", limit)));
        let ended = Running::start(command).wait().expect(1);
        let late = |rank: usize| {
            format!("rank {rank}: recv(slot 5 from rank {}): timed out after 200.0ms", 1 - rank)
        };
        // The other one may learn of the end of the first.
        assert!((0..2).any(|rank| ended.err.contains(&late(rank))), "{options:?}: {}", ended.err);
    }
    for (value, text) in
        [("0s", "must be positive"), ("-1s", "-1s"), ("soon", "soon"), ("", "--call-timeout")]
    {
        let ended =
            Running::start(tasuki_run(&[&["-n", "2", "--call-timeout", value], &program[..]].concat()));
        let ended = ended.wait().expect(2);
        assert!(
            ended.err.contains("--call-timeout <TIME>") && ended.err.contains(text),
            "{value}: {}",
            ended.err
        );
    }
    for value in ["0", "-1s", "soon"] {
        let mut command = tasuki_run(&[&["-n", "2"], &program[..]].concat());
        command.env("TASUKI_CALL_TIMEOUT", value);
        let ended = Running::start(command).wait().expect(2);
        let text = format!("TASUKI_CALL_TIMEOUT={value}: allowed is a time: 30, 30s, 1.5m, 500ms");
        assert!(ended.err.contains(&text), "{value}: {}", ended.err);
    }
}

/// A rank that runs a handler is not in the call that waits, though it may be shown in it. So the handler is named,
/// too.
fn is_in_a_handler(options: &[&str]) {
    let folder = folder();
    let mut running = start(&[&["-n", "2"], options].concat(), "handler", &folder);
    let launcher = running.pid();
    running.until("rank 0 runs a handler", |_| {
        job(launcher).is_some_and(|job| job["ranks"][0]["handles_for"] == 1)
    });
    let shown = text(&ps(&[]).stdout);
    assert!(shown.contains("a handler that rank 1 has called\n"), "{shown}");
    assert_eq!(shown.matches("a handler that rank").count(), 1, "{shown}");
    open(&folder, 0);
    running.wait().expect(0);
}

#[test]
fn ps_says_that_a_rank_runs_a_handler() {
    is_in_a_handler(&[]);
    is_in_a_handler(&["--threads"]);
}

/// Returns true if all threads of a process sleep.
fn sleeps(pid: u64) -> bool {
    let tasks = std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
    let mut stats = tasks.into_iter().flatten().flatten().map(|task| task.path().join("stat"));
    stats.all(|stat| {
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
    })
}

/// Ranks that sleep in a receive until the test lets them go on. If they share processors, they
/// sleep before a wait counts as long.
#[test]
fn a_rank_that_sleeps_is_never_running() {
    const RANKS: usize = 8;
    let folder = folder();
    let program = [ranks_that_block_program(), "rounds", folder.path().to_str().expect("a path in Unicode")];
    let mut command = tasuki_run(&[&["-n", "8"], &program[..]].concat());
    command.env("TASUKI_WAKE", "fence");
    let mut running = Running::start(command);
    let launcher = running.pid();
    let (mut looks, mut silent) = (0, 0);
    for round in 0..20 {
        open(&folder, round);
        running.until("all had the message", |running| {
            running.out().lines().filter(|line| line.ends_with(&format!(" round {round}"))).count()
                == RANKS - 1
        });
        let pids = |job: &Value| -> Vec<u64> {
            let ranks = job["ranks"].as_array().into_iter().flatten();
            ranks.filter_map(|rank| rank["pid"].as_u64()).skip(1).collect()
        };
        let pids = pids(&job(launcher).expect("it runs"));
        running.until("all sleep", |_| pids.iter().all(|&pid| sleeps(pid)));
        for _ in 0..3 {
            let job = job(launcher).expect("it runs");
            let stages = job["ranks"].as_array().into_iter().flatten().map(|rank| &rank["stage"]);
            let stages: Vec<&Value> = stages.skip(1).collect();
            assert!(stages.iter().all(|stage| **stage == "waiting"), "round {round}: {stages:?}");
            let calls = calls(&job);
            looks += RANKS - 1;
            silent += calls.iter().skip(1).filter(|call| *call != "recv(slot 5 from rank 0)").count();
        }
    }
    // A rank publishes its wait soon even if its processors are busy, and not only when it next
    // looks around.
    assert!(2 * silent < looks, "{silent} of {looks} times a rank did not say what it waits for");
    open(&folder, "end");
    running.wait().expect(0);
}

#[test]
fn a_rank_in_a_system_call_of_its_own_sleeps() {
    let mut running =
        Running::start(tasuki_run(&["-n", "1", launcher::rank_program(), "join", "sleep:600000"]));
    let launcher = running.pid();
    running.until("it sleeps", |_| job(launcher).is_some_and(|job| job["ranks"][0]["stage"] == "sleeping"));
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn one_job_is_shown_by_its_name() {
    let folders = [folder(), folder()];
    let mut both = folders.each_ref().map(|folder| start(&["-n", "2"], "limit", folder));
    let launchers = both.each_mut().map(Running::pid);
    let mut names = Vec::new();
    for (running, launcher) in both.iter_mut().zip(launchers) {
        running.until("it is shown", |_| job(launcher).is_some());
        names.push(job(launcher).expect("it is shown")["job"].as_str().expect("a name").to_string());
    }
    let shown = text(&ps(&[&names[0]]).stdout);
    assert!(shown.starts_with(&format!("job {}: ", names[0])) && !shown.contains(&names[1]), "{shown}");
    let shown: Value = serde_json::from_slice(&ps(&[&names[1], "--json"]).stdout).expect("JSON");
    assert_eq!(
        shown.as_array().map(|jobs| jobs.iter().map(|job| &job["job"]).collect::<Vec<_>>()),
        Some(vec![&Value::from(names[1].as_str())])
    );
    let unknown = ps(&["nothing"]);
    let said = text(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(2), "{said}");
    assert!(
        said.contains("there is no job nothing") && names.iter().all(|name| said.contains(name)),
        "{said}"
    );
    folders.iter().for_each(|folder| open(folder, 0));
    both.into_iter().for_each(|running| drop(running.wait().expect(0)));
}
