//! `tasuki bench` on the command line and its rank programs as processes, with few repetitions. No
//! test asserts a time.

mod launcher;

use launcher::{Ended, Running, TASUKI, tasuki_run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

fn bench(args: &[&str]) -> Ended {
    let mut command = Command::new(TASUKI);
    command.arg("bench").args(args).stdin(Stdio::null());
    Running::start(command).wait()
}

#[test]
fn the_list_names_every_case_in_100_columns() {
    let ended = bench(&["--list"]).expect(0);
    let names: Vec<&str> = ended.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let all = "limit put_near put message anysource posted oversubscribed await rate channel outstanding \
               incast flood get atomic post chain handler handler_idle bandwidth_put \
               bandwidth_job bandwidth_own bandwidth_stream shared_copy barrier bcast reduce allreduce gather \
               allgather alltoall scatter reduce_scatter nonblocking persistent single_driver fuzzy \
               fuzzy_hidden queue_contention overlap_copy thirdparty overlap_coll startup idle blacs death footprint";
    assert_eq!(names.join(" "), all);
    assert!(ended.out.lines().all(|line| line.len() <= 100));
}

#[test]
fn misuse_is_reported_with_the_nearest_right_word() {
    for (args, right) in [
        (&["put_naer"][..], "put_near"),
        (&["bandwidth"][..], "bandwidth_put"),
        (&["put", "--ranks", "3"][..], "startup"),
        (&["queue_contention", "--ranks", "3"][..], "collective"),
        (&["overlap_coll", "--ranks", "3"][..], "collective"),
        (&["barrier", "--sizes", "8"][..], "bandwidths"),
        (&["footprint", "--ranks", "0"][..], "1 to 4096"),
        (&["barrier", "--ranks", "4,1"][..], "two ranks"),
        (&["footprint", "--sizes", "64K"][..], "bandwidths"),
        (&["put", "--against", "ucx"][..], "handlers"),
        (&["message", "--against", "mpi"][..], "openmpi"),
        (&["limit", "--sizes", "7"][..], "multiple of 8"),
        (&["footprint", "--plot", "a.svg"][..], "latencies"),
    ] {
        let ended = bench(args).expect(2);
        assert!(ended.err.contains(right), "{args:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported_before_anything_is_measured() {
    for file in ["/dev/full", "/nowhere/figures.json"] {
        let ended = bench(&["footprint", "--json", file]).expect(2);
        assert!(ended.err.contains(file) && ended.err.contains("cannot be written"), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn memory_is_what_the_formula_says_and_json_has_a_row_for_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.json");
    let ended = bench(&["footprint", "--ranks", "3", "--json", file.to_str().unwrap()]).expect(0);
    assert!(!ended.out.contains("missed") && ended.out.contains("met"), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100));
    let rows = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 7 + 5);
    for row in rows {
        assert_eq!(
            (&row["case"], &row["library"], &row["ranks"]),
            (&json!("footprint"), &json!("tasuki"), &json!(3))
        );
        assert_eq!((&row["metric"], &row["unit"]), (&json!("bytes"), &json!("B")));
        let each = row["variant"] == "messages_each";
        let formula = format!("by formula {:.0}", row["median"].as_f64().unwrap());
        assert_eq!(row["setting"], if each { json!("a peer beyond the first") } else { json!(formula) });
    }
}

#[test]
fn a_library_that_is_not_there_is_off_and_what_it_decides_is_missed() {
    // Copies the tool to a folder in which nothing else is installed.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("target/debug/tasuki");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(TASUKI, &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["bench", "barrier", "--ranks", "2", "--against", "mpich"]).stdin(Stdio::null());
    let ended = Running::start(command).wait().expect(0);
    assert!(
        ended.out.contains("peer off: mpich") && ended.out.contains("cargo xtask peers mpich"),
        "{}",
        ended.out
    );
    let line = ended
        .out
        .lines()
        .find(|line| line.trim_start().starts_with("barrier") && line.contains("<="))
        .unwrap();
    assert!(line.ends_with("peer off"), "{}", ended.out);
}

/// Runs ranks as a part of the bench that are told these lines, and returns what the first one answers.
fn play(ranks: &str, role: &Value, orders: &str) -> Vec<Value> {
    let mut command = tasuki_run(&["-n", ranks, "--", TASUKI, "__bench-part", &role.to_string()]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.feed(orders);
    let ended = running.wait().expect(0);
    ended.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// What ranks need to measure these groups with very few repetitions.
fn plan(groups: &Value, limits: &Path) -> Value {
    json!({ "Measure": {
        "groups": groups,
        "effort": {
            "hand_over": { "search": 5, "measure": 5 }, "is_long": false, "shorter": 5000, "commands": 5000, "rounds_beside": 2,
            "moved_bytes": 16384, "blocks_max": 4, "cold_bytes": 65536,
        },
        "limits_file": limits, "limits_first": false, "way": null,
    } })
}

fn group(cases: &[&str], operation: &str, bytes: u64, state: Value) -> Value {
    json!({ "cases": cases, "operation": operation, "bytes": bytes, "state": state })
}

#[test]
fn ranks_measure_what_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits");
    // Words, and four areas of blocks.
    File::create(&limits).unwrap().set_len((16 << 20) + 4 * (64 << 10)).unwrap();
    let state = json!({ "cold": true, "fresh": true });
    for (ranks, group, figures) in [
        // Three words and two limits.
        ("2", group(&["limit", "put_near", "put", "get"], "", 8, Value::Null), 5),
        // Messages on two paths, alone and among many receives, and the time between postings.
        ("2", group(&["message", "posted"], "", 8, Value::Null), 5),
        ("2", group(&["outstanding"], "", 400, Value::Null), 9),
        ("2", group(&["handler"], "", 8, Value::Null), 1),
        // Two cases, one copier, two copiers.
        ("2", group(&["bandwidth_put", "shared_copy"], "", 4096, state.clone()), 4),
        ("3", group(&["persistent"], "bcast", 8, Value::Null), 3),
        ("3", group(&["nonblocking"], "ibarrier", 8, Value::Null), 2),
        ("3", group(&["thirdparty"], "", 1 << 20, Value::Null), 6),
        ("5", group(&["queue_contention"], "", 8, Value::Null), 1),
    ] {
        let orders =
            (0..figures).fold("group 0\nhand\n".to_string(), |all, number| format!("{all}go {number}\n"));
        let answers = play(ranks, &plan(&json!([group]), &limits), &(orders + "end\n"));
        assert_eq!(answers.len(), 3 + figures, "{group}: {answers:?}");
        assert_eq!(answers[1]["figures"].as_array().unwrap().len(), figures, "{group}: {answers:?}");
        assert!(
            answers[3..].iter().all(|answer| answer["value"].as_f64().unwrap() > 0.0),
            "{group}: {answers:?}"
        );
    }
}

#[test]
fn a_run_that_is_ended_keeps_its_rows() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.json");
        std::fs::write(&file, "what an earlier run wrote\n").unwrap();
        let mut command = Command::new(TASUKI);
        // After the memory of four ranks, that of very many, which takes long.
        command.args(["bench", "footprint", "--ranks", "3,200", "--json"]).arg(&file).stdin(Stdio::null());
        let mut running = Running::start(command);
        let rows = || std::fs::read_to_string(&file).unwrap();
        let begun = std::time::Instant::now();
        while rows().lines().count() < 12 && begun.elapsed() < launcher::WATCHDOG {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        running.signal(signal);
        let ended = running.wait();
        let rows: Vec<Value> = rows().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(rows.len() >= 12, "{rows:?}");
        assert!(ended.out.contains("messages_1_peer") && ended.out.contains("plans_freed"), "{}", ended.out);
    }
}
