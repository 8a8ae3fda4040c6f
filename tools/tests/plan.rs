//! `tasuki plan`: shows, proves, draws and exports plans, and refuses wrong files.

mod launcher;

use launcher::{Ended, Running, TASUKI};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const COLLECTIVES: [&str; 12] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce_scatter",
    "scan",
    "exscan",
    "neighbours",
];

#[test]
fn output_that_cannot_be_written_is_no_verdict() {
    for what in ["check", "show", "export --format json"] {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {TASUKI} plan {what} bcast --ranks 3 > /dev/full")]);
        let ended = Running::start(command).wait().expect(2);
        assert!(ended.err.contains("standard output cannot be written"), "{what}: {}", ended.err);
    }
}

fn plan(args: &[&str]) -> Ended {
    let mut command = Command::new(TASUKI);
    command.arg("plan").args(args);
    Running::start(command).wait()
}

fn misuse(args: &[&str]) -> String {
    let ended = plan(args).expect(2);
    assert_eq!(ended.out, "");
    ended.err
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in Unicode")
}

/// The names of the algorithms for a collective.
fn algorithms(collective: &str, ranks: &str) -> Vec<String> {
    let ended = plan(&["check", collective, "--ranks", ranks, "--bytes", "64", "--json"]);
    if ended.code() == 2 {
        assert!(ended.err.contains("no algorithm"), "{}", ended.err);
        return Vec::new();
    }
    let report: Value = serde_json::from_str(&ended.expect(0).out).expect("JSON");
    let plans = report["plans"].as_array().expect("an array").clone();
    plans.iter().map(|plan| plan["name"].as_str().expect("a name").to_string()).collect()
}

/// A chain of three ranks and 64 bytes in two segments, as a file: readiness goes up the chain,
/// then the segments go down.
fn chain() -> Value {
    let effect = |rank: u64, signal: u64| json!({ "rank": rank, "signal": signal, "amount": 1 });
    let when = |signal: u64, count: u64| json!({ "signal": signal, "count": count });
    let nothing =
        |when: Value, then: Value| json!({ "queue": 0, "when": when, "do": "nothing", "then": then });
    let copy = |rank: u64, when: Value, offset: u64| {
        let place = |rank: u64| json!({ "rank": rank, "buffer": 0, "offset": offset });
        let action = json!({ "copy": { "from": place(rank), "to": place(rank + 1), "bytes": 32 } });
        json!({ "queue": 1, "when": when, "do": action, "then": [effect(rank + 1, 1), effect(rank, 3)] })
    };
    let part = |rank: u64, [arrived, ready, sent]: [u64; 3], steps: Value, finish: Value| {
        let signal = |name: &str, per_start: u64| json!({ "name": name, "per_start": per_start });
        let all = json!({ "buffer": 0, "offset": 0, "bytes": 64 });
        let mut gets = all.clone();
        gets["from"] = json!({ "ranks": [0], "buffer": 0, "offset": 0 });
        let gives = if rank == 0 { vec![all] } else { vec![] };
        json!({
            "rank": rank,
            "buffers": [{ "name": "data", "bytes": 64 }],
            "signals": [signal("start", 1), signal("arrived", arrived), signal("ready", ready), signal("sent", sent)],
            "steps": steps,
            "finish": finish,
            "contract": { "gives": gives, "gets": [gets], "in_order": false, "meets": false },
        })
    };
    let begin = nothing(when(0, 1), json!([]));
    let first = json!([begin, copy(0, when(2, 1), 0), copy(0, when(2, 1), 32)]);
    let raises = nothing(when(2, 1), json!([effect(0, 2)]));
    let second = json!([begin, raises, copy(1, when(1, 1), 0), copy(1, when(1, 2), 32)]);
    let third = json!([begin, nothing(when(2, 0), json!([effect(1, 2)]))]);
    json!({
        "format": "tasuki plan", "version": 1, "name": "chain", "ranks": 3,
        "parts": [
            part(0, [0, 1, 2], first, json!([when(3, 2)])),
            part(1, [2, 1, 2], second, json!([when(1, 2), when(3, 2)])),
            part(2, [2, 0, 0], third, json!([when(1, 2)])),
        ],
    })
}

fn written(folder: &TempDir, file: &Value) -> PathBuf {
    let path = folder.path().join("plan.json");
    fs::write(&path, format!("{file:#}")).expect("a file");
    path
}

#[test]
fn steps_are_shown_within_a_hundred_columns() {
    for collective in COLLECTIVES {
        for name in algorithms(collective, "8") {
            let ended = plan(&["show", collective, "--ranks", "8", "--algorithm", &name]).expect(0);
            assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
            assert_eq!(ended.out.matches("\nrank ").count(), 8, "{}", ended.out);
        }
    }
}

#[test]
fn one_of_a_million_ranks_is_shown() {
    let out =
        plan(&["show", "bcast", "--ranks", "1000000", "--rank", "7", "--algorithm", "binary"]).expect(0).out;
    assert!(out.contains("rank 7\n") && out.contains("copy data[0..8192] to rank 15"), "{out}");
    assert!(out.contains("ready >= 2") && out.contains("then rank 15 arrived +1, sent +1"), "{out}");
    assert!(!out.contains("rank 8\n"), "{out}");
}

#[test]
fn without_an_algorithm_what_a_job_would_run_is_shown_and_others_are_named() {
    let shown = |args: &[&str]| {
        let out = plan(&[&["show"], args].concat()).expect(0).out;
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Calling threads run plans among few ranks of one node, so not among 100 ranks, or on several nodes.
    let many = shown(&["bcast", "--ranks", "100", "--bytes", "8"]);
    assert!(many.contains("is what a job would run here, as commands"), "{many}");
    assert!(many.contains("--algorithm chooses another: ") && many.contains("chain"), "{many}");
    let nodes = shown(&["bcast", "--ranks", "32", "--per-node", "4", "--bytes", "8"]);
    assert!(nodes.contains("as commands that helpers"), "{nodes}");
    // Equals what `tasuki info --collectives` shows, where there is an algorithm that calling threads run.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors <= 32 {
        let ranks = processors.max(2).to_string();
        for (collective, bytes, name) in [
            ("bcast", "8", "copy-in-copy-out"),
            ("allreduce", "1M", "reduce-scatter-allgather"),
            ("barrier", "0", "all-to-all"),
            ("gather", "8", "copy-in-copy-out"),
        ] {
            let inline = shown(&[collective, "--ranks", &ranks, "--bytes", bytes]);
            assert!(inline.contains(&format!("{collective} by {name} among ")), "{inline}");
            assert!(inline.contains("on the calling threads of its ranks; --engine shows "), "{inline}");
            let engine = shown(&[collective, "--ranks", &ranks, "--bytes", bytes, "--engine"]);
            assert!(!engine.contains(&format!("{collective} by {name} among ")), "{engine}");
            assert!(engine.contains("as commands that helpers"), "{engine}");
        }
        let mut info = Command::new(TASUKI);
        info.args(["info", "--collectives", "--ranks", &ranks, "--json"]);
        let info = Running::start(info).wait().expect(0).out;
        assert!(info.contains("\"copy-in-copy-out\""), "{info}");
    }
    let two = shown(&["bcast", "--ranks", "2", "--bytes", "1M"]);
    assert!(two.contains("repeated blocking calls try put-and-get, too"), "{two}");
    assert!(
        misuse(&["show", "bcast", "--ranks", "4", "--engine", "--algorithm", "chain"]).contains("--engine")
    );
    let out = plan(&["show", "allgatherv", "--ranks", "3", "--counts", "8,0,16", "--algorithm", "Ring"])
        .expect(0)
        .out;
    assert!(out.contains("data 24 B") && out.contains("data[8..24]"), "{out}");
}

/// A job's calling threads may run another form. `plan show` names it and what helpers run; the others take
/// the form for a network, and say so.
#[test]
fn without_an_algorithm_what_is_exported_is_what_is_simulated() {
    let args = ["bcast", "--ranks", "5", "--bytes", "100"];
    let exported = plan(&[&["export"], &args[..], &["--format", "json"]].concat()).expect(0);
    let file: Value = serde_json::from_str(&exported.out).expect("JSON");
    let name = file["name"].as_str().expect("a name");
    assert!(
        exported.err.contains(&format!("note: {name} is what plans take on a network")),
        "{}",
        exported.err
    );
    assert!(exported.err.contains("--algorithm chooses another"), "{}", exported.err);
    let mut command = Command::new(TASUKI);
    command.arg("sim").args(args);
    let simulated = Running::start(command).wait().expect(0).out;
    assert!(simulated.contains(&format!("{name}: what plans take on a network")), "{simulated}");
    if std::thread::available_parallelism().map_or(1, usize::from) <= 5 {
        for said in [&exported.err, &simulated] {
            assert!(said.contains("a job here would run copy-in-copy-out"), "{said}");
        }
    }
    let named = plan(&[&["export"], &args[..], &["--algorithm", "binary", "--format", "json"]].concat());
    assert_eq!(named.expect(0).err, "");
}

#[test]
fn all_that_fit_are_proven() {
    let out = plan(&["check", "bcast", "--ranks", "33", "--bytes", "1000"]).expect(0).out;
    for name in ["binary", "binomial", "chain", "pipelined"] {
        let line = out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {out}"));
        assert!(line.ends_with("proven"), "{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    let out = plan(&["check", "bcast", "--ranks", "33", "--algorithm", "binomial", "--bytes", "1000"])
        .expect(0)
        .out;
    let grid = ["--ranks", "6", "--grid", "3x2", "--periodic", "--bytes", "24"];
    assert!(plan(&[&["check", "neighbours"], &grid[..]].concat()).expect(0).out.contains("proven"));
    assert!(out.contains("6000  bytes that the busiest rank") && out.contains("33  ranks"), "{out}");
}

#[test]
fn files_are_read_back_for_all_algorithms() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.json"), folder.path().join("second.json"));
    for collective in COLLECTIVES {
        for name in algorithms(collective, "4") {
            let shape = ["--ranks", "4", "--bytes", "64", "--algorithm", &name, "--format", "json"];
            plan(&[&["export", collective, "-o", text(&first)], &shape[..]].concat()).expect(0);
            let out = plan(&["check", text(&first)]).expect(0).out;
            assert!(out.contains(": proven"), "{out}");
            plan(&["export", text(&first), "--format", "json", "-o", text(&second)]).expect(0);
            assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap(), "{name}");
        }
    }
}

fn push(array: &mut Value, value: Value) {
    array.as_array_mut().expect("an array").push(value);
}

/// A change that makes a plan wrong, and the expected message.
type Fault = (&'static str, fn(&mut Value), &'static str);

const FAULTS: [Fault; 6] = [
    (
        "a missing copy",
        |plan| plan["parts"][0]["steps"][2]["do"] = json!("nothing"),
        "and should hold byte 32",
    ),
    (
        "a wrong origin",
        |plan| plan["parts"][0]["steps"][2]["do"]["copy"]["from"]["offset"] = json!(0),
        "holds byte 0 of buffer 0 of rank 0, and should hold byte 32",
    ),
    (
        "two unordered writes",
        |plan| {
            let rank = &mut plan["parts"][0];
            let mut again = rank["steps"][1].clone();
            again["queue"] = json!(7);
            again["then"] = json!([{ "rank": 0, "signal": 4, "amount": 1 }]);
            push(&mut rank["steps"], again);
            push(&mut rank["signals"], json!({ "name": "again", "per_start": 1 }));
            push(&mut rank["finish"], json!({ "signal": 4, "count": 1 }));
        },
        "without an order between them, and at least one of them writes",
    ),
    (
        "a trigger never met",
        |plan| plan["parts"][1]["steps"][3]["when"]["count"] = json!(100),
        "step 3 of rank 1 in start 0 waits until signal \"arrived\" has counted 100",
    ),
    (
        "a cycle",
        |plan| plan["parts"][2]["steps"][1]["when"] = json!({ "signal": 1, "count": 2 }),
        "steps wait for each other",
    ),
    (
        "a restart race",
        |plan| {
            for step in [1, 2] {
                plan["parts"][0]["steps"][step]["when"] = json!({ "signal": 0, "count": 1 });
            }
        },
        "without an order between them, and at least one of them writes",
    ),
];

#[test]
fn each_fault_is_reported_with_its_steps() {
    let folder = tempfile::tempdir().unwrap();
    plan(&["check", text(&written(&folder, &chain()))]).expect(0);
    for (what, change, said) in FAULTS {
        let mut file = chain();
        change(&mut file);
        let ended = plan(&["check", text(&written(&folder, &file))]).expect(1);
        let flat = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(": wrong") && flat.contains(said), "{what}: {}", ended.out);
        assert!(ended.out.contains("\nrank ") && ended.out.contains(" >= "), "{what}: {}", ended.out);
        assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
        let report: Value =
            serde_json::from_str(&plan(&["check", text(&written(&folder, &file)), "--json"]).expect(1).out)
                .unwrap();
        assert_eq!(report["plans"][0]["proven"], json!(false));
        assert!(report["plans"][0]["fault"].as_str().unwrap().contains(said));
    }
}

#[test]
fn a_join_that_the_next_start_overtakes_is_reported() {
    let start = json!({ "name": "start", "per_start": 1 });
    let contract = json!({ "gives": [], "gets": [], "in_order": false, "meets": false });
    let arriving = |rank: usize| {
        json!({
            "rank": rank, "buffers": [], "contract": contract,
            "signals": [start, { "name": "arrived", "per_start": 0 }],
            "steps": [{ "queue": 0, "when": { "signal": 0, "count": 1 }, "do": "nothing",
                        "then": [{ "rank": 0, "signal": 1, "amount": 1 }] }],
            "finish": [{ "signal": 0, "count": 1 }],
        })
    };
    let joining = json!({
        "rank": 0, "buffers": [], "contract": contract,
        "signals": [start, { "name": "arrived", "per_start": 2 }],
        "steps": [{ "queue": 0, "when": { "signal": 1, "count": 2 }, "do": "nothing", "then": [] }],
        "finish": [{ "signal": 1, "count": 2 }],
    });
    let file = json!({
        "format": "tasuki plan", "version": 1, "name": "join", "ranks": 3,
        "parts": [joining, arriving(1), arriving(2)],
    });
    let folder = tempfile::tempdir().unwrap();
    let out = plan(&["check", text(&written(&folder, &file))]).expect(1).out;
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("may happen before") && flat.contains("has added to signal \"arrived\""), "{out}");
}

/// Rank 0 copies into one of several places of rank 1, which takes it from there. Before a start
/// rank 0 waits until rank 1 has taken what it copied `lag` starts ago; without a lag it does not
/// wait.
fn relay(turns: u64, lag: Option<u64>) -> Value {
    let names = ["start", "arrived", "sent", "free", "taken"];
    let signals = |counts: [u64; 5]| -> Vec<Value> {
        names.iter().zip(counts).map(|(name, count)| json!({ "name": name, "per_start": count })).collect()
    };
    let place = |rank: u64, buffer: u64| json!({ "rank": rank, "buffer": buffer, "offset": 0 });
    let copy = |from: Value, to: Value| json!({ "copy": { "from": from, "to": to, "bytes": 24 } });
    let raises = |rank: u64, signal: u64| json!({ "rank": rank, "signal": signal, "amount": 1 });
    let when = match lag {
        Some(lag) => json!({ "signal": 3, "count": 1, "lag": lag }),
        None => json!({ "signal": 0, "count": 1 }),
    };
    let buffers = |bytes: u64| {
        let place = json!({ "name": "place", "bytes": bytes, "turns": turns });
        json!([{ "name": "data", "bytes": 24 }, place])
    };
    let all = json!({ "buffer": 0, "offset": 0, "bytes": 24 });
    let mut gets = all.clone();
    gets["from"] = json!({ "ranks": [0], "buffer": 0, "offset": 0 });
    json!({
        "format": "tasuki plan", "version": 1, "name": "relay", "ranks": 2, "parts": [
            { "rank": 0, "buffers": buffers(0), "signals": signals([1, 0, 1, 1, 0]),
              "steps": [{ "queue": 0, "when": when, "do": copy(place(0, 0), place(1, 1)),
                          "then": [raises(1, 1), raises(0, 2)] }],
              "finish": [{ "signal": 2, "count": 1 }],
              "contract": { "gives": [all], "gets": [], "in_order": false, "meets": false } },
            { "rank": 1, "buffers": buffers(24), "signals": signals([1, 1, 0, 0, 1]),
              "steps": [{ "queue": 0, "when": { "signal": 1, "count": 1 }, "do": copy(place(1, 1), place(1, 0)),
                          "then": [raises(0, 3), raises(1, 4)] }],
              "finish": [{ "signal": 4, "count": 1 }],
              "contract": { "gives": [], "gets": [gets], "in_order": false, "meets": false } },
        ],
    })
}

#[test]
fn starts_that_share_a_copy_of_a_buffer_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    for turns in 2..=6 {
        plan(&["check", text(&written(&folder, &relay(turns, Some(turns))))]).expect(0);
        plan(&["check", text(&written(&folder, &relay(turns, Some(1))))]).expect(0);
        for lag in [None, Some(turns + 1), Some(turns + 2)] {
            let out = plan(&["check", text(&written(&folder, &relay(turns, lag)))]).expect(1).out;
            let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
            let fault =
                format!("step 0 of rank 1 in start 0 and step 0 of rank 0 in start {turns} use byte 0");
            assert!(flat.contains(": wrong") && flat.contains(&fault), "{turns} turns, lag {lag:?}: {out}");
            assert!(out.contains("copy data[0..24] to rank 1 place[0..24]"), "{out}");
            assert!(out.contains("arrived >= 1  copy place[0..24] to data[0..24]"), "{out}");
        }
    }
}

#[test]
fn files_that_are_none_are_reported_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let whole = serde_json::to_string_pretty(&chain()).unwrap();
    let said = |content: &str| {
        fs::write(&path, content).unwrap();
        misuse(&["check", text(&path)])
    };
    assert!(said("").contains("it ends too early, at line 1"));
    assert!(said("garbage").contains("line 1 column 1"));
    assert!(said("{\"format\":\"tasuki plan\",\n\"version\":x}").contains("line 2 column"));
    assert!(said(&whole[..whole.len() / 2]).contains("it ends too early, at line"));
    assert!(said(&whole.replacen("\"version\": 1", "\"version\": 9", 1)).contains("reads version 1"));
    assert!(said(&whole.replacen("tasuki plan", "something", 1)).contains("should be \"tasuki plan\""));
    assert!(said(&whole.replacen("\"queue\"", "\"quue\"", 1)).contains("`quue`"));
    assert!(said(&whole.replacen("\"queue\": 0", "\"queue\": -1", 1)).contains("line"));
    assert!(said(&whole.replacen("\"ranks\": 3", "\"ranks\": 4", 1)).contains("parts of 3 ranks"));
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut file = chain();
        change(&mut file);
        misuse(&["check", text(&written(&folder, &file))])
    };
    let to = |field: &'static str, value: u64| {
        move |plan: &mut Value| plan["parts"][0]["steps"][1]["do"]["copy"]["to"][field] = json!(value)
    };
    assert!(wrong(&to("rank", 9)).contains("rank 0, step 1: there is no rank 9: the schedule has 3"));
    assert!(wrong(&to("buffer", 9)).contains("buffer 9 of rank 1 does not exist"));
    assert!(wrong(&to("buffer", 999)).contains("buffer 999 of rank 1 does not exist"));
    assert!(wrong(&to("offset", u64::MAX)).contains("end beyond"));
    assert!(wrong(&|plan| plan["parts"][0]["steps"][1]["when"]["signal"] = json!(77)).contains("signal 77"));
    assert!(misuse(&["check", text(&folder.path().join("none.json"))]).contains("No such file"));
    assert!(misuse(&["check", text(&path), "--ranks", "4"]).contains("the file decides --ranks"));
}

#[test]
fn an_export_that_does_not_fit_is_refused_and_one_that_is_ended_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.goal");
    let args = |ranks| {
        [
            "export",
            "allgather",
            "--ranks",
            ranks,
            "--bytes",
            "8",
            "--algorithm",
            "ring",
            "--format",
            "goal",
            "-o",
        ]
    };
    let refused = plan(&[&args("1000000")[..], &[text(&path)]].concat()).expect(2);
    assert!(refused.err.contains("GiB left: give fewer ranks"), "{}", refused.err);
    let mut command = Command::new(TASUKI);
    command.arg("plan").args(args("3000")).arg(&path);
    let mut running = Running::start(command);
    let files = || fs::read_dir(folder.path()).unwrap().count();
    let begun = std::time::Instant::now();
    while files() == 0 && begun.elapsed() < launcher::WATCHDOG {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    running.signal(Signal::TERM);
    running.wait();
    assert_eq!(files(), 0, "the unfinished file stayed");
}

#[test]
fn messages_are_exported_as_goal_and_read_back() {
    let ended = plan(&["export", "bcast", "--ranks", "4", "--bytes", "8", "--format", "goal"]).expect(0);
    assert!(ended.out.starts_with("num_ranks 4\n") && ended.out.contains("\nrank 3 {\n"), "{}", ended.out);
    assert_eq!(ended.out.matches(": send 8b to ").count(), 3, "{}", ended.out);
    assert_eq!(ended.out.matches(": recv 8b from ").count(), 3, "{}", ended.out);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.goal");
    fs::write(&path, &ended.out).unwrap();
    assert!(plan(&["check", text(&path)]).expect(0).out.contains("4  ranks"));
    let numbers: Value =
        serde_json::from_str(&plan(&["check", text(&path), "--json"]).expect(0).out).unwrap();
    assert_eq!(numbers["ranks"], json!(4));
    fs::write(&path, ended.out.replacen(" 8b ", " 9b ", 1)).unwrap();
    assert!(plan(&["check", text(&path)]).expect(1).out.contains("9"));
    fs::write(&path, ended.out.replacen("requires", "needs", 1)).unwrap();
    let line = ended.out.lines().position(|line| line.contains("requires")).unwrap() + 1;
    assert!(misuse(&["check", text(&path)]).contains(&format!("line {line}: ")));
}

#[test]
fn goal_text_of_many_ranks_is_written_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.goal");
    let args = ["--ranks", "20000", "--bytes", "8", "--algorithm", "binomial", "--format", "goal"];
    // A proof with this number of steps needs more memory than there is; 512 MiB of address space
    // are enough for all.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 524288; exec \"$@\"", "sh", TASUKI, "plan", "export", "bcast"]);
    Running::start({
        command.args(args).args(["-o", text(&path)]);
        command
    })
    .wait()
    .expect(0);
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("num_ranks 20000\n"));
    assert_eq!(written.matches(": send 8b to ").count(), 19_999);
    assert_eq!(written.matches(": recv 8b from ").count(), 19_999);
    assert!(written.ends_with("}\n") && written.contains("\nrank 19999 {\n"));
    let out = plan(&["check", text(&path)]).expect(0).out;
    assert!(out.contains("20000  ranks"), "{out}");
}

#[test]
fn a_schedule_without_goal_form_leaves_the_file_that_was_there() {
    let mut file = chain();
    // Rank 1 goes on after either of two additions.
    let rank = &mut file["parts"][0];
    let mut again = rank["steps"][1].clone();
    again["queue"] = json!(7);
    push(&mut rank["steps"], again);
    file["parts"][1]["signals"][1]["per_start"] = json!(3);
    rank_signal(&mut file, 0, 3, 3);
    file["parts"][0]["finish"][0]["count"] = json!(3);
    let folder = tempfile::tempdir().unwrap();
    let plan_file = written(&folder, &file);
    let goal = folder.path().join("plan.goal");
    fs::write(&goal, "of yesterday").unwrap();
    let args = ["export", text(&plan_file), "--format", "goal"];
    let said = misuse(&[&args[..], &["-o", text(&goal)]].concat());
    assert!(said.contains("step 2 of rank 1 waits until signal \"arrived\" has counted 1 of 3"), "{said}");
    assert_eq!(fs::read_to_string(&goal).unwrap(), "of yesterday");
    assert!(misuse(&args).contains("whichever steps add first"));
}

fn rank_signal(file: &mut Value, rank: usize, signal: usize, per_start: u64) {
    file["parts"][rank]["signals"][signal]["per_start"] = json!(per_start);
}

#[test]
fn plans_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svg");
    let args = ["draw", "bcast", "--ranks", "8", "--bytes", "8192", "--algorithm", "binary"];
    plan(&[&args[..], &["-o", text(&path)]].concat()).expect(0);
    let svg = fs::read_to_string(&path).unwrap();
    for word in ["<svg", "bcast by binary among 8 ranks", "rank 7", "8 KiB", "copies bytes", "rounds"] {
        assert!(svg.contains(word), "{word}");
    }
    for collective in COLLECTIVES {
        for name in algorithms(collective, "4") {
            for view in ["graph", "time"] {
                let options = ["--ranks", "4", "--algorithm", &name, "--as", view, "-o", text(&path)];
                plan(&[&["draw", collective], &options[..]].concat()).expect(0);
                assert!(fs::read_to_string(&path).unwrap().contains(">\nrank 3"), "{name} as {view}");
            }
        }
    }
    let mut file = chain();
    let quiet = plan(&["draw", text(&written(&folder, &file)), "-o", text(&path)]).expect(0);
    assert_eq!(quiet.err, "", "what is proven needs no word");
    let copy = file["parts"][0]["steps"][1]["do"]["copy"].clone();
    file["parts"][0]["steps"][1]["do"] = json!({ "reduce": copy });
    file["parts"][0]["steps"][1]["do"]["reduce"]["in_front"] = json!(true);
    let warned = plan(&["draw", text(&written(&folder, &file)), "-o", text(&path)]).expect(0).err;
    assert!(fs::read_to_string(&path).unwrap().contains("combines values"));
    assert!(warned.contains("is wrong: ") && warned.contains("`tasuki plan check "), "{warned}");
}

#[test]
fn what_is_too_large_is_refused_with_a_way_out() {
    let said = misuse(&["draw", "bcast", "--ranks", "1000", "-o", "never.svg"]);
    assert!(said.contains("the schedule has 1000 ranks") && said.contains("plan show"), "{said}");
    let chain = ["--algorithm", "chain", "--segments", "100", "-o", "never.svg"];
    assert!(
        misuse(&[&["draw", "bcast", "--ranks", "32"], &chain[..]].concat()).contains("steps, but a picture")
    );
    let said = misuse(&["check", "barrier", "--ranks", "1000000", "--algorithm", "dissemination"]);
    assert!(said.contains("square") && said.contains("fewer ranks"), "{said}");
}

#[test]
fn wrong_words_are_reported_with_the_nearest() {
    assert!(misuse(&["shwo", "bcast"]).contains("'show'"));
    assert!(misuse(&["show", "bcats", "--ranks", "4"]).contains("did you mean 'bcast'?"));
    assert!(misuse(&["show", "everything", "--ranks", "4"]).contains("alltoall"));
    assert!(
        misuse(&["show", "bcast", "--ranks", "4", "--algorithm", "chian"]).contains("did you mean 'chain'?")
    );
    assert!(misuse(&["show", "bcast", "--ranks", "4", "--algorithm", "x"]).contains("there are binary, "));
    assert!(misuse(&["export", "bcast", "--ranks", "4", "--format", "jsn"]).contains("json"));
    assert!(misuse(&["show", "bcast"]).contains("--ranks 4"));
    assert!(misuse(&["show", "bcast", "--ranks", "0"]).contains("1 to 16777215 ranks"));
    assert!(misuse(&["show", "bcast", "--ranks", "4", "--root", "4"]).contains("the last of 4 ranks is 3"));
    assert!(misuse(&["show", "bcast", "--ranks", "4", "--rank", "4"]).contains("the last of 4 ranks is 3"));
    assert!(misuse(&["show", "bcast", "--ranks", "4", "--bytes", "many"]).contains("as in 1000"));
    assert!(misuse(&["show", "allgatherv", "--ranks", "4"]).contains("--counts"));
    assert!(misuse(&["show", "allgather", "--ranks", "4", "--counts", "1,2"]).contains("needs 4 here"));
    assert!(misuse(&["show", "bcast", "--ranks", "4", "--counts", "1,2"]).contains("have one size"));
    assert!(
        misuse(&["show", "neighbours", "--ranks", "4", "--grid", "3x2"])
            .contains("--grid 3x2 does not have 4")
    );
    assert!(misuse(&["show", "bcast", "--ranks", "4", "--periodic"]).contains("neighbour"));
    let doubling = ["--ranks", "6", "--algorithm", "recursive doubling"];
    assert!(misuse(&[&["show", "allgather"], &doubling[..]].concat()).contains("does not fit"));
}

#[test]
fn every_form_explains_itself_with_an_example() {
    for form in ["", "show", "check", "draw", "export"] {
        let mut command = Command::new(TASUKI);
        command.arg("plan").args((!form.is_empty()).then_some(form)).arg("--help");
        let ended = Running::start(command).wait().expect(0);
        assert!(ended.out.contains("Examples:") && ended.out.contains("tasuki plan"), "{}", ended.out);
        assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
    }
}
