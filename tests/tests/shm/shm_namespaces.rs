//! Cases on processes that each run in a separate PID namespace, as in containers. There the
//! process id of a rank names a different process for its peers, so the library must not use it to
//! copy through the kernel.

use std::process::{Command, Stdio};
use tasuki_tests::case_runner::Switches;
use tasuki_tests::processes::on_processes_within;

const PROGRAM: &str = env!("CARGO_BIN_EXE_conformance");

/// With 2 ranks each has a namespace of its own; with 4, some wrappers let ranks share one.
const COUNTS: [usize; 2] = [2, 4];

/// Cases that would otherwise copy through the kernel: transfers of each kind, messages, and a
/// registration that ends during a transfer.
const CASES: &[&str] = &[
    "puts_and_gets_of_every_size",
    "addresses_travel",
    "messages_between_registered_memory",
    "unregister_waits_for_accesses_under_way",
    "b1_any_rank_to_any_rank",
];

/// Broadcasts between two ranks, which copy from each other's own buffers if they can.
const BROADCASTS: &[&str] =
    &["j_long_calls_of_two_try_other_variants", "j_long_calls_of_two_with_two_roots_get_errors"];
const COPIED_ONCE: Switches = &[("TASUKI_COLLECTIVES", "bcast=put-and-get")];

/// Starts a program as the first process of a new namespace.
const EACH: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc"];

/// Like `EACH`, but without mounting a new /proc. There a rank can find its namespace only in the
/// old /proc.
const WITHOUT_PROC: &[&str] = &["unshare", "--pid", "--fork"];

/// Like `EACH`, but only from rank 2 on. Ranks 0 and 1 stay in one namespace.
const SOME: &[&str] = &[
    "sh",
    "-c",
    r#"if [ "$TASUKI_RANK" -ge 2 ]; then exec unshare --pid --fork --mount-proc "$@"; else exec "$@"; fi"#,
    "sh",
];

/// Returns true if this user may create PID namespaces here; otherwise says why not.
fn may_make_namespaces() -> bool {
    let tried = Command::new(EACH[0]).args(&EACH[1..]).arg("true").stdin(Stdio::null()).output();
    let why = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
        Err(error) => error.to_string(),
    };
    eprintln!("skipped: this user may make no PID namespaces here: {why}");
    false
}

fn all(names: &[&str], wrapper: &[&str], switches: Switches) {
    if may_make_namespaces() {
        names.iter().for_each(|name| on_processes_within(wrapper, PROGRAM, name, &COUNTS, switches));
    }
}

#[test]
fn ranks_in_namespaces_of_their_own() {
    all(CASES, EACH, &[]);
}

#[test]
fn broadcasts_in_namespaces_of_their_own() {
    all(BROADCASTS, EACH, COPIED_ONCE);
}

#[test]
fn ranks_in_namespaces_without_a_proc_of_their_own() {
    all(&CASES[..1], WITHOUT_PROC, &[]);
}

#[test]
fn ranks_of_which_two_share_a_namespace() {
    all(CASES, SOME, &[]);
}
