//! What `tasuki ps` shows of command queues, including those of a rank that computes.

mod launcher;

use launcher::{Running, TASUKI, ranks_with_queued_commands_program, tasuki_run};
use serde_json::Value;
use std::process::Command;

fn ps(args: &[&str]) -> String {
    let output = Command::new(TASUKI).arg("ps").args(args).output().expect("tasuki ps");
    String::from_utf8(output.stdout).expect("text")
}

/// The queues of all ranks in that launcher's job.
fn queues(launcher: u32) -> Vec<Value> {
    let all: Value = serde_json::from_str(&ps(&["--json"])).unwrap_or_default();
    let jobs = all.as_array().into_iter().flatten();
    let ours = jobs.filter(|job| job["launcher"] == launcher).flat_map(|job| job["ranks"].as_array());
    let queues = ours.flatten().filter_map(|rank| rank["queues"].as_array().cloned());
    queues.flatten().collect()
}

fn shows_what_keeps_commands(options: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("go");
    let program = [ranks_with_queued_commands_program(), file.to_str().expect("a path in Unicode")];
    let mut running =
        Running::start(tasuki_run(&[&["-n", "2", "--helper", "off"], options, &program].concat()));
    let launcher = running.pid();
    running.until("four queues with something in them, and rank 0 waiting", |_| {
        queues(launcher).len() == 4 && ps(&[]).contains("wait(signal 4 >= 10)")
    });
    let [waiting, session, bound, calls] = queues(launcher).try_into().expect("four");
    assert_eq!((&waiting["waiting"], &waiting["capacity"]), (&3.into(), &64.into()), "{waiting}");
    let need = serde_json::json!({ "signal": 2, "value": 2, "wanted": 4, "is_credit": false });
    assert_eq!(waiting["awaits"], need);
    let need = serde_json::json!({ "signal": 3, "value": 0, "wanted": 1, "is_credit": true });
    assert_eq!((&session["unread"], &session["awaits"]), (&2.into(), &need), "{session}");
    let left = serde_json::json!([{ "rank": 1, "commands": 1, "computes": true }]);
    for queue in [waiting, bound] {
        assert_eq!((&queue["under_way"], &queue["left_to"]), (&1.into(), &left), "{queue}");
    }
    let left = serde_json::json!([{ "rank": 1, "commands": 3, "computes": true }]);
    assert_eq!((&calls["calls_of_level"], &calls["left_to"]), (&0.into(), &left), "{calls}");
    let table = ps(&[]);
    for line in [
        "queue 1 of 64 lines: 3 waiting (signal 2 at 2, wants 4); 1 under way; 1 waits for rank 1, which computes\n",
        "queue 2 of 8 lines: 2 unread, head needs signal 3 at 0, wants 1\n",
        "queue of calls of 256 lines: 3 unread; 3 wait for rank 1, which computes\n",
        "queue 0 of 4 lines: 1 under way; 1 waits for rank 1, which computes\n",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    std::fs::write(&file, "").expect("a file");
    running.wait().expect(0);
}

#[test]
fn ps_shows_what_keeps_commands_of_processes() {
    shows_what_keeps_commands(&[]);
}

#[test]
fn ps_shows_what_keeps_commands_of_threads() {
    shows_what_keeps_commands(&["--threads"]);
}
