//! The example programs as a newcomer starts them: alone, with right and wrong options.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Output};
use tasuki_examples::heat::check_writable;
use tempfile::TempDir;

/// A temporary folder for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn run(&self, program: &str, arguments: &[impl AsRef<OsStr>]) -> Output {
        Command::new(program).args(arguments).current_dir(self.0.path()).output().unwrap()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

const HEAT: &str = env!("CARGO_BIN_EXE_heat");
const NOTHING: &[&str] = &[];

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn hello_and_ring_run_alone_as_jobs_of_one_rank() {
    let folder = Folder::new();
    let hello = folder.run(env!("CARGO_BIN_EXE_hello"), NOTHING);
    assert_eq!((text(&hello.stdout), text(&hello.stderr)), ("rank 0 of 1\n", ""));
    let ring = folder.run(env!("CARGO_BIN_EXE_ring"), NOTHING);
    assert_eq!((text(&ring.stdout), text(&ring.stderr)), ("rank 0: the token comes with hop 1\n", ""));
}

#[test]
fn heat_writes_a_png_with_the_plate_s_proportions() {
    let folder = Folder::new();
    let heat = folder.run(HEAT, &["--rows", "30", "--columns", "40", "--iterations", "50"]);
    assert!(heat.status.success(), "{heat:?}");
    assert_eq!(text(&heat.stderr), "");
    assert!(text(&heat.stdout).contains("bit for bit as the serial run; see heat.png"));
    let file = std::io::BufReader::new(fs::File::open(folder.0.path().join("heat.png")).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (1024, 768));
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let colors: std::collections::BTreeSet<&[u8]> = pixels.chunks_exact(3).collect();
    assert!(colors.len() > 100, "only {} colours", colors.len());
}

#[test]
fn heat_writes_the_same_picture_with_all_exchange_methods() {
    let folder = Folder::new();
    let picture = |method| {
        let heat =
            folder.run(HEAT, &["--rows", "30", "--iterations", "50", "--by", method, "--output", "heat.png"]);
        assert!(text(&heat.stdout).contains("bit for bit as the serial run; see heat.png"), "{heat:?}");
        fs::read(folder.0.path().join("heat.png")).unwrap()
    };
    let puts = picture("puts");
    assert_eq!(picture("messages"), puts);
    assert_eq!(picture("commands"), puts);
}

#[test]
fn heat_without_a_check_says_that_it_was_not_compared() {
    let folder = Folder::new();
    let heat = folder.run(HEAT, &["--rows", "9", "--iterations", "2", "--no-check", "--output", "a.png"]);
    assert!(text(&heat.stdout).contains("not compared with the serial run; see a.png"), "{heat:?}");
    assert_eq!(folder.files(), ["a.png"]);
}

#[test]
fn wrong_options_are_named_and_end_with_code_2() {
    let folder = Folder::new();
    let cases = [
        (["--rows", "0"], "at least one row"),
        (["--rows", "1000000000"], "3 GiB"),
        (["--columns", "many"], "--columns"),
        (["--iteration", "5"], "--iterations"),
        (["--by", "post"], "puts, messages"),
    ];
    for (arguments, named) in cases {
        let heat = folder.run(HEAT, &arguments);
        assert_eq!(heat.status.code(), Some(2), "{arguments:?}: {heat:?}");
        assert!(text(&heat.stderr).contains(named), "{arguments:?}: {heat:?}");
    }
    assert!(folder.files().is_empty(), "{:?}", folder.files());
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_before_any_work() {
    let folder = Folder::new();
    // The number of iterations is so large that the test would not end if the work came first.
    let heat = folder.run(HEAT, &["--output", "no/heat.png", "--iterations", "1000000000000"]);
    assert_eq!(heat.status.code(), Some(1), "{heat:?}");
    assert!(text(&heat.stderr).contains("cannot write no/heat.png: No such file or directory"), "{heat:?}");
}

#[test]
fn check_writable_changes_no_file() {
    let folder = Folder::new();
    let (old, new) = (folder.0.path().join("old.png"), folder.0.path().join("new.png"));
    fs::write(&old, "a picture").unwrap();
    check_writable(&old).unwrap();
    check_writable(&new).unwrap();
    assert_eq!(fs::read_to_string(&old).unwrap(), "a picture");
    assert_eq!(folder.files(), ["old.png"]);
}
