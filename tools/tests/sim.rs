//! `tasuki sim`: what it prints and writes, and how it answers misuse.

mod launcher;

use launcher::{Ended, Running, TASUKI};
use serde_json::{Value, json};
use std::process::Command;

fn sim(args: &[&str]) -> Ended {
    let mut command = Command::new(TASUKI);
    command.arg("sim").args(args);
    Running::start(command).wait()
}

fn misuse(args: &[&str]) -> String {
    let ended = sim(args).expect(2);
    assert_eq!(ended.out, "");
    ended.err
}

/// The figures of a simulation.
fn figures(args: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("figures.json");
    sim(&[args, &["--json", file.to_str().expect("a path in Unicode")]].concat()).expect(0);
    let text = std::fs::read_to_string(file).expect("what was written");
    assert_eq!(text.lines().count(), 1);
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn what_takes_longer_than_times_can_count_is_refused() {
    let error = misuse(&["bcast", "--ranks", "2", "--bytes", "1G", "--byte-time", "1ms"]);
    assert!(error.contains("longer than 5 h of simulated time"), "{error}");
    let error = misuse(&["bcast", "--ranks", "2", "--compute", "36000s"]);
    assert!(error.contains("36000s is more than 1000 s"), "{error}");
}

#[test]
fn json_on_standard_output_stands_alone() {
    let ended = sim(&["bcast", "--ranks", "4", "--json", "-"]).expect(0);
    let line: Value = serde_json::from_str(&ended.out).expect("one object and nothing else");
    assert_eq!(line["ranks"], json!(4));
}

#[test]
fn a_simulation_is_shown_within_the_width() {
    let ended = sim(&["bcast", "--ranks", "33", "--bytes", "1M", "--topology", "torus"]).expect(0);
    for word in ["time", "bandwidth", "busiest link", "memory", "steps", "delivered", "what plans take"] {
        assert!(ended.out.contains(word), "{word}: {}", ended.out);
    }
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
    assert_eq!(ended.err, "", "no bar where nobody sees it");
    for topology in ["crossbar", "fat-tree:4", "mesh:6x6", "torus:4x3x2x2", "dragonfly:3x4x4"] {
        for collective in ["barrier", "bcast", "allgather"] {
            let args = [collective, "--ranks", "33", "--bytes", "1000", "--topology", topology];
            let shown = sim(&args).expect(0).out;
            assert!(shown.contains(topology), "{shown}");
        }
    }
}

#[test]
fn figures_are_written_and_equal_questions_get_equal_answers() {
    let args = ["bcast", "-n", "24", "--per-node", "2", "--bytes", "64K", "--topology", "torus:2x2x3"];
    let bucket = [&args[..], &["--algorithm", "trinaryx3 bucket", "--root", "5"]].concat();
    let figures_of = figures(&bucket);
    assert_eq!(figures_of, figures(&bucket));
    assert_eq!(figures_of["algorithm"], "trinaryx3 bucket");
    assert_eq!(figures_of["bytes_delivered"], 23 * 65536);
    assert_eq!(figures_of["bytes_between_nodes"], 11 * 65536);
    assert!(figures_of["seconds"].as_f64().unwrap() > 0.0);
    let ten = figures(&[&bucket[..], &["--starts", "10"]].concat());
    assert_eq!(ten["steps"].as_u64(), figures_of["steps"].as_u64().map(|steps| steps * 10));
}

#[test]
fn computing_hides_what_is_offloaded_and_delays_what_is_not() {
    let args = ["bcast", "-n", "8", "--bytes", "1M", "--algorithm", "pipelined", "--compute", "10ms"];
    let seconds = |args: &[&str]| figures(args)["seconds"].as_f64().unwrap();
    let (offloaded, in_calls) = (seconds(&args), seconds(&[&args[..], &["--in-calls"]].concat()));
    assert!(offloaded < 0.0101 && in_calls > 0.0101, "{offloaded} {in_calls}");
}

#[test]
fn many_ranks_are_simulated() {
    let ended = sim(&["bcast", "--ranks", "100000", "--bytes", "8192", "--topology", "torus"]).expect(0);
    assert!(ended.out.contains("binomial: what plans take"), "{}", ended.out);
    assert!(ended.out.contains("torus:40x50x50"), "{}", ended.out);
}

/// The choice of `Algorithm::choose`, if it comes soon.
#[test]
fn the_algorithm_is_the_one_that_plans_take() {
    for (args, algorithm) in [
        (["bcast", "-n", "8", "--bytes", "64"], "eager"),
        (["bcast", "-n", "8", "--bytes", "64K"], "staged"),
        (["bcast", "-n", "64", "--bytes", "1K"], "binomial"),
        (["bcast", "-n", "64", "--bytes", "4M"], "scatter+allgather"),
        (["barrier", "-n", "8", "--bytes", "0"], "dissemination"),
        (["allreduce", "-n", "64", "--bytes", "8"], "recursive doubling"),
        (["allgather", "-n", "64", "--bytes", "8K"], "recursive doubling"),
    ] {
        assert_eq!(figures(&args)["algorithm"], algorithm, "{args:?}");
    }
    // The number of steps grows with the square of the ranks, so the algorithms are not tried
    // against each other.
    let ended = sim(&["bcast", "-n", "20000", "--bytes", "4M", "--segments", "2"]).expect(0);
    assert!(ended.out.contains("pipelined: the usual one; scatter+allgather"), "{}", ended.out);
    let ended = sim(&["bcast", "-n", "64", "--bytes", "1K", "--topology", "torus"]).expect(0);
    let shown = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("binomial: what plans take on a network"), "{shown}");
    assert!(shown.contains(", the quickest of all, takes "), "{shown}");
}

#[test]
fn one_rank_runs_the_steps_of_all() {
    let args = ["bcast", "-n", "33", "--bytes", "8192", "--algorithm", "binary"];
    let one_driver = [&args[..], &["--driven-by", "32"]].concat();
    let (spread, by_one) = (figures(&args), figures(&one_driver));
    assert_eq!((&spread["run_by"], &by_one["run_by"]), (&json!(null), &json!(32)));
    assert_eq!(by_one["bytes_delivered"], spread["bytes_delivered"]);
    assert!(by_one["seconds"].as_f64() > spread["seconds"].as_f64());
    assert!(by_one["steps_max"].as_u64().unwrap() >= 32 && spread["steps_max"] == 3);
    assert!(sim(&one_driver).expect(0).out.contains("rank 32, which has the steps of all"));
    assert!(misuse(&[&args[..], &["--driven-by", "33"]].concat()).contains("the last of 33 ranks is 32"));
}

#[test]
fn the_plan_of_a_file_is_simulated_as_the_collective_that_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let file = file.to_str().unwrap();
    for collective in [
        &["bcast", "-n", "9", "--bytes", "64K", "--algorithm", "pipelined", "--segments", "3"][..],
        &["allgather", "-n", "6", "--bytes", "1000", "--algorithm", "bruck", "--segments", "1"],
        &["reduce", "-n", "5", "--root", "2", "--bytes", "800", "--algorithm", "tree", "--segments", "1"],
    ] {
        let mut export = Command::new(TASUKI);
        export.args(["plan", "export", "--format", "json", "-o", file]).args(collective);
        Running::start(export).wait().expect(0);
        for network in
            [&["--topology", "torus"][..], &["--topology", "crossbar", "--per-node", "2", "--starts", "3"]]
        {
            let mut was = figures(&[collective, network].concat());
            let is = figures(&[&[file][..], network].concat());
            assert_eq!(
                (&is["collective"], &is["root"], &is["segments"]),
                (&json!("plan"), &json!(null), &json!(null))
            );
            for said_by_the_file in ["collective", "root", "segments"] {
                was[said_by_the_file] = is[said_by_the_file].clone();
            }
            assert_eq!(is, was, "{collective:?}");
        }
    }
    let Ended { out: shown, err, .. } = sim(&[file, "--per-node", "5"]).expect(0);
    assert_eq!(err, "", "what is proven needs no word");
    assert!(shown.contains("the plan of ") && shown.contains("tree: as the file says"), "{shown}");
    assert!(misuse(&[file, "--ranks", "5"]).contains("the file decides --ranks"));
    assert!(misuse(&[file, "--algorithm", "tree"]).contains("the file decides --algorithm"));
    assert!(misuse(&["nowhere.json"]).contains("nowhere.json: No such file"));
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, text.replace("\"version\":1", "\"version\":7")).unwrap();
    assert!(misuse(&[file]).contains("version"), "{}", misuse(&[file]));
    // A wait that never ends gets stuck, and the command says so.
    std::fs::write(file, text.replacen("\"count\":1", "\"count\":4", 9)).unwrap();
    let stuck = sim(&[file]).expect(1);
    assert!(stuck.err.contains("cannot be simulated"), "{}", stuck.err);
    assert!(stuck.err.contains(" is wrong: ") && stuck.err.contains("`tasuki plan check "), "{}", stuck.err);
}

#[test]
fn blocks_that_differ_are_simulated() {
    let figures_of = figures(&["gatherv", "-n", "4", "--counts", "8K,0,1M,64", "--topology", "crossbar"]);
    assert_eq!((&figures_of["collective"], &figures_of["ranks"]), (&json!("gather"), &json!(4)));
    assert_eq!(figures_of["bytes"], (8 << 10) + (1 << 20) + 64);
    assert_eq!(figures_of["bytes_delivered"], (1 << 20) + 64, "the root has its own, and one has none");
    let pairs = ["alltoallv", "-n", "2", "--counts", "1,2,3,4"];
    let ended = sim(&pairs).expect(0);
    assert!(ended.out.contains("alltoall of blocks that differ, 10 B of all"), "{}", ended.out);
    assert_eq!(figures(&pairs)["bytes_between_nodes"], 2 + 3);
    assert!(misuse(&["gatherv", "-n", "4"]).contains("--counts 8,0,16"));
    assert!(misuse(&["gather", "-n", "4", "--counts", "1,2"]).contains("needs 4 here"));
    assert!(misuse(&["gather", "-n", "4", "--counts", "1,2,3,4", "--bytes", "8"]).contains("--counts"));
}

#[test]
fn neighbours_are_simulated() {
    let args = ["neighbours", "-n", "2048", "--grid", "64x32", "--bytes", "1K", "--topology", "torus:64x32"];
    let (open, around) = (figures(&args), figures(&[&args[..], &["--periodic"]].concat()));
    assert_eq!(around["bytes_delivered"], 2048 * 4 * 1024);
    assert_eq!(open["bytes_delivered"], (2048 * 4 - 2 * (64 + 32)) * 1024);
    assert_eq!(around["bytes"], 1024);
    let shown = sim(&args).expect(0).out;
    assert!(shown.contains("neighbours of 1 KiB") && !shown.contains("from rank"), "{shown}");
    assert_eq!(
        (&around["root"], &figures(&["bcast", "-n", "2", "--bytes", "8"])["root"]),
        (&json!(null), &json!(0))
    );
    let row = figures(&["neighbours", "-n", "5", "--bytes", "8"]);
    assert_eq!(row["bytes_delivered"], 8 * 8);
    assert!(misuse(&["neighbours", "-n", "6", "--grid", "4x2"]).contains("does not have 6 ranks"));
    assert!(misuse(&["bcast", "-n", "4", "--grid", "2x2"]).contains("neighbour"));
}

/// A file with an exported plan.
fn exported(folder: &tempfile::TempDir, name: &str, args: &[&str]) -> String {
    let file = folder.path().join(name);
    let format = if name.ends_with(".goal") { "goal" } else { "json" };
    let mut export = Command::new(TASUKI);
    export.args(["plan", "export", "--format", format, "-o"]).arg(&file).args(args);
    Running::start(export).wait().expect(0);
    file.to_str().expect("a path in Unicode").to_string()
}

#[test]
fn goal_text_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let bcast = ["bcast", "-n", "8", "--bytes", "64K", "--algorithm", "chain", "--segments", "1"];
    let file = exported(&folder, "plan.goal", &bcast);
    let figures_of = figures(&[&file, "--topology", "crossbar"]);
    assert_eq!((&figures_of["collective"], &figures_of["ranks"]), (&json!("goal"), &json!(8)));
    // Seven copies, and a byte for each time that a rank signals readiness.
    assert_eq!(figures_of["bytes_delivered"], 7 * 65536 + 7);
    let seconds = |more: &[&str]| {
        figures(&[&[&file[..], "--topology", "crossbar"], more].concat())["seconds"].as_f64().unwrap()
    };
    assert!(
        seconds(&["--overhead", "1us"]) > seconds(&[]) + 10e-6,
        "o is spent at both ends of each message"
    );
    assert!(sim(&[&file]).expect(0).out.contains("the messages of "));
    assert!(misuse(&[&file, "--ranks", "8"]).contains("--ranks is not for GOAL text"));
    assert!(misuse(&[&file, "--driven-by", "0"]).contains("--driven-by is not for GOAL text"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen(" 65536b ", " 65535b ", 1)).unwrap();
    assert!(sim(&[&file]).expect(1).err.contains("receives 65"), "{}", sim(&[&file]).err);
    std::fs::write(&file, text.replacen(": calc", ": calk", 1)).unwrap();
    assert!(misuse(&[&file]).contains("line "));
}

#[test]
fn costs_can_be_given_with_their_units() {
    // One transfer of 1,000,000 bytes over two hops, and its signal: 2 L + m G, and back 2 L.
    let args = ["bcast", "-n", "2", "--bytes", "1000000", "--algorithm", "binary", "--topology", "crossbar"];
    let run = |more: &[&str]| figures(&[&args[..], more].concat());
    let slow = run(&["--latency", "10us", "--byte-time", "1GB/s", "--gap", "0ns", "--overhead", "3us"]);
    // o, then the leaf's readiness 2 L, the copy, and its signal.
    assert!(
        (slow["seconds"].as_f64().unwrap() - (3e-6 + 20e-6 + 20e-6 + 1e-3 + 20e-6)).abs() < 1e-12,
        "{slow}"
    );
    assert_eq!(slow["latency_seconds"], 10e-6);
    assert_eq!((&slow["engines"], &slow["byte_seconds"]), (&json!(4), &json!(1e-9)));
    let narrow = run(&["--link-rate", "8Gbit/s", "--engines", "2"]);
    assert_eq!((&narrow["link_byte_seconds"], &narrow["engines"]), (&json!(1e-9), &json!(2)));
    let sum = ["reduce", "-n", "2", "--bytes", "1000000", "--algorithm", "tree", "--segments", "1"];
    let sum = |more: &[&str]| figures(&[&sum[..], more].concat())["seconds"].as_f64().unwrap();
    let longer = sum(&["--combine-time", "1ns"]) - sum(&["--combine-time", "20GB/s"]);
    assert!((longer - 0.95e-3).abs() < 1e-9, "{longer}");
    assert!(misuse(&["bcast", "-n", "2", "--latency", "10"]).contains("with its unit"));
    assert!(misuse(&["bcast", "-n", "2", "--link-rate", "12"]).contains("12.5GB/s"));
    let help = sim(&["--help"]).expect(0).out;
    for word in
        ["--latency", "--overhead", "--gap", "--byte-time", "--engines", "--link-rate", "--combine-time"]
    {
        assert!(help.contains(word), "{word}");
    }
    assert!(help.contains("0.05 ns"), "{help}");
}

/// LogGOPS: the first byte of each sender comes 2 L after it has learned that the root is ready.
/// The root's interface takes m G + g for each message except the last, and m G for that one.
#[test]
fn an_incast_is_serialised_at_the_receiver() {
    let (latency, byte, gap) = (100e-9, 0.104762e-9, 1e-9);
    for (ranks, bytes) in [(2_u32, 1 << 20), (9, 1 << 20), (33, 1 << 20), (33, 8192)] {
        let (count, size) = (ranks.to_string(), bytes.to_string());
        let args =
            ["gather", "-n", &count, "--bytes", &size, "--algorithm", "flat", "--topology", "crossbar"];
        let seconds = figures(&args)["seconds"].as_f64().unwrap();
        let (senders, body) = (f64::from(ranks - 1), f64::from(bytes) * byte);
        let incast = 2.0 * latency + (senders - 1.0) * (body + gap) + body;
        // Before this the root signals that it is ready, and after this the last sender learns that
        // it is done: at most 2 L each, and g for each signal.
        let notices = 4.0 * latency + 4.0 * f64::from(ranks) * gap;
        assert!(
            (incast..=incast + notices).contains(&seconds),
            "{ranks} ranks, {bytes} bytes: {incast} {seconds}"
        );
    }
}

/// A grid that is not periodic has fewer messages than a periodic one.
#[test]
fn neighbours_of_an_open_grid_are_not_slower_than_of_a_closed_one() {
    // In a fat tree, unrelated pairs share links in the middle. There, only a single row is
    // compared.
    let two_dimensions =
        [("256", "16x16", "crossbar"), ("256", "16x16", "torus"), ("256", "16x16", "torus:16x16")];
    let rows = ["33", "64"].into_iter().flat_map(|ranks| {
        ["crossbar", "fat-tree:8", "torus"].into_iter().map(move |topology| (ranks, ranks, topology))
    });
    for (ranks, grid, topology) in two_dimensions.into_iter().chain(rows) {
        let args = ["neighbours", "-n", ranks, "--grid", grid, "--bytes", "64K", "--topology", topology];
        let seconds = |args: &[&str]| figures(args)["seconds"].as_f64().unwrap();
        let (open, around) = (seconds(&args), seconds(&[&args[..], &["--periodic"]].concat()));
        assert!(open <= around, "{grid} on {topology}: {open} {around}");
    }
    // On a mesh the edge that closes a ring crosses the whole row, one L for each link.
    let ring = ["allgather", "-n", "33", "--bytes", "64K", "--algorithm", "ring", "--topology"];
    let seconds = |topology: &str| figures(&[&ring[..], &[topology]].concat())["seconds"].as_f64().unwrap();
    assert!(seconds("mesh:33") > seconds("torus:33") + 31.0 * 100e-9);
}

#[test]
fn files_without_end_are_refused() {
    for file in ["/dev/zero", "/dev/urandom"] {
        assert!(misuse(&[file]).contains("is not a text file"), "{file}");
        assert!(misuse(&["gatherv", "-n", "4", "--counts", file]).contains("is not a text file"), "{file}");
        let mut check = Command::new(TASUKI);
        check.args(["plan", "check", file]);
        assert!(Running::start(check).wait().expect(2).err.contains("is not a text file"), "{file}");
    }
}

#[test]
fn what_would_work_is_named_where_an_algorithm_is_refused() {
    let ring = misuse(&["allgather", "-n", "100000", "--bytes", "8", "--algorithm", "ring"]);
    assert!(ring.contains("of memory, and ") && ring.contains("--algorithm "), "{ring}");
    let pairs = misuse(&["alltoall", "-n", "100000", "--bytes", "8"]);
    assert!(pairs.contains("of memory, and ") && pairs.contains("--algorithm "), "{pairs}");
}

#[test]
fn misuse_is_reported_with_the_nearest() {
    assert!(misuse(&["bcats", "--ranks", "4"]).contains("did you mean 'bcast'?"));
    assert!(misuse(&["nothing", "--ranks", "4"]).contains("there are barrier, bcast"));
    assert!(misuse(&["bcast"]).contains("--ranks"));
    assert!(misuse(&["bcast", "--ranks", "0"]).contains("1 to 16777215"));
    assert!(misuse(&["bcast", "--ranks", "4", "--root", "4"]).contains("the last of 4 ranks is 3"));
    assert!(misuse(&["bcast", "--ranks", "4", "--bytes", "x"]).contains("64K"));
    assert!(misuse(&["bcast", "--ranks", "4", "--topology", "tours"]).contains("did you mean torus?"));
    assert!(misuse(&["bcast", "--ranks", "9", "--topology", "torus:2x2x2"]).contains("8 nodes, but 9 are"));
    assert!(misuse(&["bcast", "--ranks", "4", "--topology", "fat-tree"]).contains("fat-tree:ARITY"));
    assert!(misuse(&["bcast", "--ranks", "4", "--algorithm", "binray"]).contains("did you mean 'binary'?"));
    assert!(misuse(&["bcast", "--ranks", "4", "--in-calls"]).contains("--compute"));
    assert!(misuse(&["bcast", "--ranks", "4", "--segmets", "2"]).contains("--segments"));
    let unfit =
        misuse(&["bcast", "--ranks", "5", "--topology", "torus:2x3", "--algorithm", "trinaryx3 bucket"]);
    assert!(unfit.contains("fill a torus"), "{unfit}");
    assert!(misuse(&["scan", "--ranks", "16777215"]).contains("fewer ranks"));
    assert!(misuse(&["bcast", "--ranks", "4", "--json", "/nowhere/a.json"]).contains("cannot be written"));
    // The old content stays.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    std::fs::write(&file, "of yesterday").unwrap();
    misuse(&["bcast", "--ranks", "4", "--driven-by", "4", "--json", file.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "of yesterday");
}

#[test]
fn the_figure_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figure.svg");
    sim(&["--figure", file.to_str().unwrap()]).expect(0);
    let svg = std::fs::read_to_string(file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Bucket relay") && svg.contains("Two-phase"));
    assert!(misuse(&["--figure", "a.svg", "--ranks", "4"]).contains("--figure"));
}

#[test]
fn many_senders_to_one_are_simulated_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (json, svg) = (folder.path().join("incast.json"), folder.path().join("incast.svg"));
    let files = ["--json", json.to_str().unwrap(), "--plot", svg.to_str().unwrap()];
    let args = ["incast", "--senders", "50,3000", "--shares", "4", "--slots", "64", "--messages", "2"];
    let ended = sim(&[&args[..], &files].concat()).expect(0);
    assert_eq!(ended.err, "", "no bar where nobody sees it");
    for word in ["torus, 3000 senders, 6000 messages", "split 4 ways", "drained", "polls", "drops"] {
        assert!(ended.out.contains(word), "{word}: {}", ended.out);
    }
    let lines: Vec<Value> = std::fs::read_to_string(json)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    // Two networks and numbers of senders; three places of counters, two ways of waiting, three others.
    assert_eq!(lines.len(), 2 * 2 * (3 * 2 + 3));
    for line in &lines {
        assert!(line["is_drained"] == true && line["messages"] == 2 * line["senders"].as_u64().unwrap());
        assert!(line["seconds"].as_f64().unwrap() > 0.0, "{line}");
        let uses_tickets = line["protocol"].as_str().unwrap().starts_with("tickets");
        assert_eq!(uses_tickets, line["waiting"].is_string());
        let beside_slots = line["receiver_bytes_max"].as_u64().unwrap() - 64 * 128;
        assert!(beside_slots <= 128 || line["protocol"] == "rendezvous, answered by the host", "{line}");
    }
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("senders") && svg.contains("split 4 ways"));
    let cut = sim(&["incast", "--senders", "3000", "--polls-max", "100"]).expect(0).out;
    assert!(cut.contains("> "), "a lower bound where senders look too often: {cut}");
}

#[test]
fn misuse_of_many_senders_to_one_is_reported() {
    assert!(misuse(&["incast", "--shares", "3"]).contains("powers of two"));
    assert!(misuse(&["incast", "--shares", "64", "--slots", "32"]).contains("--slots 32"));
    assert!(misuse(&["incast", "--topology", "tours"]).contains("did you mean torus?"));
    assert!(misuse(&["incast", "--senders", "0"]).contains("--senders"));
    assert!(misuse(&["incast", "--polls", "5"]).contains("--polls-max"));
    let help = sim(&["incast", "--help"]).expect(0).out;
    assert!(help.contains("Examples:") && help.contains("--atomic-time"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn it_explains_itself_with_an_example() {
    let ended = sim(&["--help"]).expect(0);
    assert!(ended.out.contains("Examples:") && ended.out.contains("tasuki sim bcast"));
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
}
