//! `tasuki demo`: what it prints, which files it leaves, what it refuses.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn demo(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("demo").args(arguments).current_dir(self.0.path()).output().unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn it_shows_processes_progress_outcome_and_a_table_that_fits() {
    let folder = Folder::new();
    let demo = folder.demo(&["--ranks", "3", "--size", "32"]);
    assert!(demo.status.success(), "{demo:?}");
    let (out, err) = (text(&demo.stdout), text(&demo.stderr));
    let pids = out.lines().find_map(|line| line.strip_prefix("processes of ranks 0 to 2: ")).unwrap();
    let mut pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    pids.dedup();
    assert_eq!(pids.len(), 3, "three processes: {out}");
    assert!(out.contains("difference to a serial run: none, every bit is the same"), "{out}");
    assert!(out.contains("picture: heat.png, 1024 x 1024"), "{out}");
    let puts = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    let table: Vec<_> =
        out.lines().skip_while(|line| !line.starts_with("---")).skip(1).take(3).map(puts).collect();
    assert_eq!(table.into_iter().flatten().collect::<Vec<_>>(), ["19999", "39998", "19999"], "{out}");
    assert!(out.lines().chain(err.lines()).all(|line| line.chars().count() <= 100), "{out}{err}");
    assert!(!out.contains('\x1b') && !err.contains('\x1b'), "no terminal, no control sequences: {out}{err}");
    assert_eq!(err.lines().count(), 2, "one line for each stage: {err}");
    assert_eq!(folder.files(), ["heat.png"]);
}

#[test]
fn the_picture_goes_to_the_given_file_even_if_its_name_looks_like_an_option() {
    let folder = Folder::new();
    let demo = folder.demo(&["--ranks", "1", "--size", "16", "--output=--size"]);
    assert!(demo.status.success(), "{demo:?}");
    assert_eq!(folder.files(), ["--size"]);
}

#[test]
fn misuse_is_reported_before_anything_is_started() {
    let folder = Folder::new();
    for arguments in [["--ranks", "0"], ["--ranks", "many"], ["--size", "1"], ["--sizes", "32"]] {
        let demo = folder.demo(&arguments);
        assert_eq!(demo.status.code(), Some(2), "{arguments:?}: {demo:?}");
        assert_eq!(text(&demo.stdout), "");
        assert!(text(&demo.stderr).contains("--"), "{demo:?}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_reported_before_any_work() {
    let folder = Folder::new();
    let demo = folder.demo(&["--output", "no/heat.png"]);
    assert_eq!(demo.status.code(), Some(1), "{demo:?}");
    assert_eq!(text(&demo.stdout), "");
    assert!(
        text(&demo.stderr).starts_with("tasuki: error: the picture no/heat.png cannot be written: No such")
    );
}
