//! What `tasuki run --trace` writes for jobs of all kinds, and what happens on errors.

mod launcher;

use flate2::read::GzDecoder;
use launcher::{Ended, Running, TASUKI, conformance_program, run, tasuki_run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// A case with short and long commands that fire at once and later, and release each other and
/// waits.
const CASE: &str = "d16_segments_are_forwarded_in_order";

/// A case that puts, gets and copies, and marks what it does.
const TRACED: &str = "transfers_between_marks";

fn trace(folder: &Path, options: &[&str], program: &[&str]) -> (Ended, Value) {
    let file = folder.join("run.json");
    let ended = run(&[&["--trace", file.to_str().expect("a path in Unicode")], options, program].concat());
    (ended, read(&file))
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).expect("a trace")).expect("JSON")
}

/// The events of a phase.
fn of<'v>(trace: &'v Value, phase: &str) -> Vec<&'v Value> {
    trace["traceEvents"].as_array().expect("an array").iter().filter(|event| event["ph"] == phase).collect()
}

/// Rank and thread of an event. Processes and threads count from 1, ranks from 0.
fn lane(event: &Value) -> (u64, u64) {
    let number = |name: &str| event[name].as_u64().filter(|number| *number > 0).expect("a number from 1 on");
    (number("pid") - 1, number("tid"))
}

/// A time in ns, as written.
fn time(event: &Value, name: &str) -> i64 {
    (event[name].as_f64().expect("a number") * 1000.0).round() as i64
}

/// Checks that times rise on each lane, that spans nest, and that each span has a length.
fn spans_are_sound(trace: &Value) {
    let mut lanes: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    for span in of(trace, "X") {
        let (begin, length) = (time(span, "ts"), time(span, "dur"));
        assert!(length > 0 && begin >= 0, "{span}");
        let around = lanes.entry(lane(span)).or_default();
        assert!(around.last().is_none_or(|last| begin > last.0), "time goes back: {span}");
        let last = around.last().copied();
        while around.last().is_some_and(|last| last.1 <= begin) {
            around.pop();
        }
        assert!(around.last().is_none_or(|last| begin + length <= last.1), "{span} ends outside of {last:?}");
        around.push((begin, begin + length));
    }
}

/// Checks that each arrow has both ends in order, each inside a span of its lane. Returns the
/// number of arrows of each kind.
fn arrows_are_sound(trace: &Value) -> BTreeMap<String, usize> {
    let mut spans: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    for span in of(trace, "X") {
        let begin = time(span, "ts");
        spans.entry(lane(span)).or_default().push((begin, begin + time(span, "dur")));
    }
    let inside = |end: &Value| {
        let at = time(end, "ts");
        spans[&lane(end)].iter().any(|&(begin, end)| (begin..end).contains(&at))
    };
    let ends: BTreeMap<u64, &Value> =
        of(trace, "f").into_iter().map(|end| (end["id"].as_u64().expect("a number"), end)).collect();
    let starts = of(trace, "s");
    assert_eq!(starts.len(), ends.len());
    let mut kinds = BTreeMap::new();
    for start in starts {
        let end = ends[&start["id"].as_u64().expect("a number")];
        assert!(time(start, "ts") <= time(end, "ts"), "{start} {end}");
        assert!(inside(start) && inside(end), "{start} {end}");
        *kinds.entry(start["name"].as_str().expect("a text").to_string()).or_default() += 1;
    }
    kinds
}

fn ranks_in(trace: &Value) -> BTreeSet<u64> {
    of(trace, "X").into_iter().map(|span| lane(span).0).collect()
}

/// The names of spans, marks and arrows.
fn names_in(trace: &Value) -> BTreeSet<&str> {
    let named = trace["traceEvents"].as_array().expect("an array").iter().filter(|event| event["ph"] != "M");
    named.map(|event| event["name"].as_str().expect("a text")).collect()
}

/// The names of the ranks in each kind of metadata.
fn metadata(trace: &Value, what: &str) -> BTreeMap<(u64, u64), String> {
    let metadata = of(trace, "M").into_iter().filter(|event| event["name"] == what);
    metadata.map(|event| (lane(event), event["args"]["name"].as_str().expect("a text").to_string())).collect()
}

fn kinds_in(trace: &Value) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    of(trace, "X")
        .into_iter()
        .for_each(|span| *kinds.entry(span["cat"].as_str().expect("a text")).or_default() += 1);
    kinds
}

#[test]
fn jobs_of_all_kinds_are_traced() {
    let folder = tempfile::tempdir().unwrap();
    for options in
        [&["-n", "3"][..], &["-n", "3", "--threads"], &["-n", "3", "--fabric", "sim", "--seed", "5"]]
    {
        let (ended, trace) = trace(folder.path(), options, &[conformance_program(), CASE]);
        assert_eq!(ended.expect(0).messages(), [""; 0], "{options:?}");
        spans_are_sound(&trace);
        let arrows = arrows_are_sound(&trace);
        assert_eq!(ranks_in(&trace), [0, 1, 2].into(), "{options:?}");
        let names = [0, 1, 2].map(|rank| ((rank, 1), format!("rank {rank}")));
        assert_eq!(metadata(&trace, "process_name"), names.into(), "{options:?}");
        assert_eq!(metadata(&trace, "thread_name")[&(2, 1)], "program");
        let kinds = kinds_in(&trace);
        assert!(kinds["wait"] > 0 && kinds["post"] > 0, "{kinds:?}");
        // Each posted command ran once, and something was released.
        let commands = arrows["post"];
        assert_eq!((commands % 16, kinds["run"]), (0, commands), "{options:?}: {kinds:?}, {arrows:?}");
        assert!(arrows["effect"] > 0, "{options:?}: {arrows:?}");
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.file_name()).collect();
        assert_eq!(left, ["run.json"], "parts were left");
    }
}

#[test]
fn transfers_have_arrows_to_where_their_bytes_arrive_and_names_are_few() {
    let folder = tempfile::tempdir().unwrap();
    for options in [&["-n", "3"][..], &["-n", "3", "--threads"], &["-n", "3", "--fabric", "sim"]] {
        let (ended, trace) = trace(folder.path(), options, &[conformance_program(), TRACED]);
        ended.expect(0);
        spans_are_sound(&trace);
        let arrows = arrows_are_sound(&trace);
        let spans = of(&trace, "X");
        let count = |name: &str, kind: &str| {
            spans.iter().filter(|span| span["name"] == name && span["cat"] == kind).count()
        };
        // Each rank does each of them ten times.
        for name in ["put", "put_signal", "get", "copy"] {
            assert!(count(name, "transfer") >= 30, "{options:?}: {name}");
        }
        assert_eq!(count("step", "program"), 30, "{options:?}");
        let (read, written) = (count("read", "access"), count("write", "access"));
        // Puts go to the next rank, gets come from it, copies go from one neighbour to the other.
        assert!(read >= 60 && written >= 90, "{options:?}: {read}, {written}");
        assert!(arrows["data"] >= 120 && arrows["copy"] >= 30, "{options:?}: {arrows:?}");
        assert!(arrows["effect"] >= 1, "{options:?}: {arrows:?}");
        let names = names_in(&trace);
        assert!(names.len() < 25 && names.iter().all(|name| !name.contains(char::is_numeric)), "{names:?}");
        assert!(names.contains("input is read"), "{names:?}");
    }
}

#[test]
fn a_file_whose_name_ends_in_gz_is_compressed_and_can_be_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (file, svg) = (folder.path().join("run.json.gz"), folder.path().join("run.svg"));
    let (name, svg_name) = (file.to_str().unwrap(), svg.to_str().unwrap());
    run(&["-n", "2", "--trace", name, conformance_program(), CASE]).expect(0);
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&file).unwrap()).read_to_string(&mut text).expect("a compressed file");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    spans_are_sound(&trace);
    assert!(fs::metadata(&file).unwrap().len() * 2 < text.len() as u64);
    let draw = || {
        let mut command = Command::new(TASUKI);
        command.args(["trace", "draw", name, "-o", svg_name]);
        Running::start(command).wait()
    };
    draw().expect(0);
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(draw().expect(2).err.contains("run.json.gz"));
}

#[test]
fn a_simulated_trace_is_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["5", "5", "6"].map(|seed| {
        let options = ["-n", "2", "--fabric", "sim", "--seed", seed];
        let (ended, trace) = trace(folder.path(), &options, &[conformance_program(), CASE]);
        ended.expect(0);
        trace.to_string()
    });
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
}

#[test]
fn a_full_buffer_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["-n", "2", "--env", "TASUKI_TRACE_EVENTS=20"];
    let (ended, trace) = trace(folder.path(), &options, &[conformance_program(), CASE]);
    let said = ended.expect(0).err;
    assert!(said.contains("the first") && said.contains("of ranks 0, 1 are not in the trace"), "{said}");
    assert!(said.contains("TASUKI_TRACE_EVENTS"), "{said}");
    assert!(trace["otherData"]["lost"]["0"].as_u64().unwrap() > 0, "{}", trace["otherData"]);
    let marks = of(&trace, "i");
    assert_eq!(marks.len(), 2);
    assert!(
        marks.iter().all(|mark| mark["name"] == "events lost" && mark["args"]["before"].as_u64() > Some(0))
    );
    spans_are_sound(&trace);
    // The last events are kept, among them the mark at the end of each rank's program.
    let (ended, trace) = self::trace(folder.path(), &options, &[conformance_program(), TRACED]);
    ended.expect(0);
    let ends = of(&trace, "i").into_iter().filter(|mark| mark["name"] == "end of the program").count();
    assert_eq!(ends, 2);
}

#[test]
fn ranks_that_fail_are_in_it_and_killed_ones_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let failing = [conformance_program(), "who_leaves_a_barrier_is_named_of_2"];
    let (ended, trace) = trace(folder.path(), &["-n", "2"], &failing);
    assert_ne!(ended.code(), 0);
    assert_eq!(trace["otherData"]["missing"], serde_json::json!([]), "{}", ended.err);
    assert!(of(&trace, "X").iter().any(|span| span["args"]["failed"] == true), "{}", ended.err);
    let script = "[ $TASUKI_RANK = 1 ] && kill -9 $$; exec \"$@\"";
    let program = ["sh", "-c", script, "sh", conformance_program(), CASE];
    let (ended, trace) = self::trace(folder.path(), &["-n", "3"], &program);
    assert_eq!(ended.code(), 137);
    assert!(trace["otherData"]["missing"].as_array().unwrap().contains(&1.into()), "{}", trace["otherData"]);
    assert!(ended.err.contains("the trace has no events of ranks"), "{}", ended.err);
}

#[test]
fn a_place_that_cannot_be_written_is_reported_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none").join("run.json");
    let ended = run(&["-n", "2", "--trace", file.to_str().unwrap(), "echo", "started"]).expect(2);
    assert!(
        ended.err.contains("the trace cannot be written to") && ended.err.contains("none"),
        "{}",
        ended.err
    );
    assert_eq!(ended.out, "");
    let mut command = tasuki_run(&["-n", "2", "echo", "started"]);
    command.env("TASUKI_TRACE", &file);
    assert_eq!(Running::start(command).wait().expect(2).out, "");
}

#[test]
fn a_job_within_a_job_leaves_its_trace_alone() {
    let folder = tempfile::tempdir().unwrap();
    let script = "\"$@\"; [ $TASUKI_RANK != 0 ] || \"$0\" run -n 2 \"$1\" d9_effects_and_chains";
    let program = ["sh", "-c", script, TASUKI, conformance_program(), CASE];
    let (ended, trace) = trace(folder.path(), &["-n", "3"], &program);
    ended.expect(0);
    assert_eq!(ranks_in(&trace), [0, 1, 2].into());
}

#[test]
fn parts_that_nobody_joined_are_joined_later() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let mut command = Command::new(conformance_program());
    command.arg(CASE).env("TASUKI_THREADS", "2").env("TASUKI_TRACE", &file);
    assert!(command.status().unwrap().success());
    assert!(!file.exists());
    let tool = |args: &[&str]| {
        let mut command = Command::new(TASUKI);
        command.arg("trace").args(args);
        Running::start(command).wait()
    };
    let name = file.to_str().unwrap();
    tool(&["join", name]).expect(0);
    spans_are_sound(&read(&file));
    assert_eq!(ranks_in(&read(&file)), [0, 1].into());
    assert!(tool(&["join", name]).expect(2).err.contains("there are no parts"));
    let svg = folder.path().join("run.svg");
    let svg_name = svg.to_str().unwrap();
    tool(&["draw", name, "-o", svg_name]).expect(0);
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    assert!(
        tool(&["draw", name, "-o", svg_name, "--from", "2ms", "--to", "1ms"])
            .expect(2)
            .err
            .contains("before")
    );
    assert!(tool(&["draw", svg_name, "-o", svg_name]).expect(2).err.contains("not a trace"));
    assert!(tool(&["draw", "/dev/zero", "-o", svg_name]).expect(2).err.contains("not a text file"));
    assert!(tool(&["draw", "/no/such/file", "-o", svg_name]).expect(2).err.contains("/no/such/file"));
}
