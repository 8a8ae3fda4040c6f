//! `tasuki bench` on the command line and its rank programs as processes, with few repetitions. No
//! test asserts a time.

mod launcher;

use launcher::{Ended, Running, TASUKI, tasuki_run};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

fn bench(args: &[&str]) -> Ended {
    let mut command = Command::new(TASUKI);
    command.arg("bench").args(args).stdin(Stdio::null());
    Running::start(command).wait()
}

/// Runs ranks as a part of the bench and returns the lines that they print.
fn play(ranks: &str, part: &Value) -> Vec<Value> {
    let part = part.to_string();
    let ended =
        Running::start(tasuki_run(&["-n", ranks, "--", TASUKI, "__bench-part", &part])).wait().expect(0);
    ended.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn the_list_names_every_case_in_100_columns() {
    let ended = bench(&["--list"]).expect(0);
    let names: Vec<&str> = ended.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let all = "limit put_near put message posted oversubscribed rate get atomic post chain \
               handler bandwidth_put \
               bandwidth_job bandwidth_own bandwidth_stream shared_copy barrier bcast reduce allreduce gather \
               allgather alltoall scatter reduce_scatter persistent single_driver fuzzy \
               fuzzy_hidden queue_contention overlap_copy thirdparty overlap_coll startup idle death memory";
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
        (&["memory", "--ranks", "0"][..], "1 to 4096"),
        (&["barrier", "--ranks", "4,1"][..], "two ranks"),
        (&["memory", "--sizes", "64K"][..], "bandwidths"),
        (&["put", "--against", "ucx"][..], "handlers"),
        (&["message", "--against", "mpi"][..], "openmpi"),
        (&["limit", "--sizes", "7"][..], "multiple of 8"),
        (&["memory", "--plot", "a.svg"][..], "latencies"),
    ] {
        let ended = bench(args).expect(2);
        assert!(ended.err.contains(right), "{args:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_reported_before_anything_is_measured() {
    for file in ["/dev/full", "/nowhere/figures.json"] {
        let ended = bench(&["memory", "--json", file]).expect(2);
        assert!(ended.err.contains(file) && ended.err.contains("cannot be written"), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn memory_is_what_the_formula_says_and_json_has_a_row_for_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.json");
    let ended = bench(&["memory", "--ranks", "3", "--json", file.to_str().unwrap()]).expect(0);
    assert!(!ended.out.contains("missed") && ended.out.contains("met"), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100));
    let rows = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 7 + 5);
    for row in rows {
        assert_eq!(
            (&row["case"], &row["library"], &row["ranks"]),
            (&json!("memory"), &json!("tasuki"), &json!(3))
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

/// Settings that make ranks measure very little.
fn plan(cases: &[&str], sizes: &[u64], shared: &Path) -> Value {
    json!({
        "cases": cases,
        "sizes": sizes,
        "shared": shared,
        "limit_first": false,
        "has_peers": false,
        "effort": {
            "hand_over": { "search": 5, "measure": 5 }, "rounds": 10, "words": 100, "passes": 1,
            "posted_rounds": 10, "gap_windows": 2, "rate_windows": 2, "command_rounds": 2, "commands": 5000,
            "overlaps": 1, "points": 1000, "calls": 10,
            "moved_bytes": 16384, "blocks_max": 2, "cold_bytes": 65536,
            "patience": { "wanted": 1, "repetitions_max": 1, "time_max": { "secs": 5, "nanos": 0 } },
        },
    })
}

#[test]
fn two_processes_take_every_figure_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limit");
    // Words, and four areas of buffers. An area holds the rotation through cold buffers, or two of
    // the largest buffers.
    File::create(&file).unwrap().set_len((16 << 20) + 4 * (64 << 10)).unwrap();
    let cases = [
        "limit",
        "put_near",
        "put",
        "message",
        "posted",
        "rate",
        "get",
        "atomic",
        "post",
        "chain",
        "handler",
        "bandwidth_put",
        "bandwidth_job",
        "bandwidth_own",
        "bandwidth_stream",
        "shared_copy",
    ];
    let said = play("2", &json!({ "Pair": plan(&cases, &[4096, 8192], &file) }));
    let figures: Vec<&Value> = said.iter().filter_map(|event| event.get("figure")).collect();
    let names: Vec<String> = figures
        .iter()
        .map(|figure| format!("{} {}", figure["key"]["case"], figure["key"]["variant"]))
        .collect();
    for name in ["put_near", "put", "message", "posted", "rate", "get", "atomic"] {
        assert!(names.contains(&format!("\"{name}\" \"\"")), "{names:?}");
    }
    // Four words and their two limits; messages on two paths, and the postings between them;
    // commands in two forms each; a handler; the hand-over; and for each size and state five
    // transfers of Tasuki, one copier and two copiers.
    assert_eq!(figures.len(), 4 + 2 + (2 + 2 + 1 + 2) + (2 + 2) + 1 + 1 + 2 * 4 * (5 + 2), "{names:?}");
}

#[test]
fn processes_with_parts_of_their_own_take_their_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limit");
    File::create(&file).unwrap().set_len(16 << 20).unwrap();
    // Six plans stand beside calls, and two are also those of a rank that comes last.
    let persistent = 6 + 6 + 2;
    for (case, ranks, figures) in [
        ("queue_contention", "5", 1),
        ("overlap_copy", "2", 6),
        ("thirdparty", "3", 6),
        ("alltoall", "3", 1),
        ("scatter", "3", 1),
        ("reduce_scatter", "3", 1),
        ("persistent", "3", persistent),
        ("single_driver", "3", 4),
    ] {
        let said = play(ranks, &json!({ "Group": plan(&[case], &[8], &file) }));
        let events = said.iter().filter(|event| event["figure"]["key"]["case"] == case);
        assert_eq!(events.count(), figures, "{case}: {said:?}");
    }
}
