//! Wrong options and programs: exit code 2, one clear message, and a suggestion of the nearest
//! correct word.

mod launcher;

use launcher::{Ended, Running, TASUKI, run, tasuki_run};
use std::process::Command;

fn tasuki(args: &[&str]) -> Ended {
    let mut command = Command::new(TASUKI);
    command.args(args);
    Running::start(command).wait()
}

fn misuse(args: &[&str]) -> String {
    let ended = run(args).expect(2);
    assert_eq!(ended.out, "");
    ended.err
}

#[test]
fn wrong_options_and_values_are_reported() {
    assert!(misuse(&["-n", "0", "true"]).contains("a job has 1 to 16777215 ranks"));
    assert!(misuse(&["-n", "two", "true"]).contains("'two'"));
    assert!(misuse(&["true"]).contains("-n") || misuse(&["true"]).contains("--ranks"));
    assert!(misuse(&["-n", "2"]).contains("PROGRAM"));
    assert!(misuse(&["-n", "2", "--lable", "true"]).contains("'--label'"));
    assert!(misuse(&["-n", "2", "--fabric", "simm", "true"]).contains("sim"));
    assert!(misuse(&["-n", "2", "--seed", "1", "true"]).contains("--fabric sim"));
    let both = misuse(&["-n", "2", "--threads", "--fabric", "sim", "true"]);
    assert!(
        both.contains("exclude each other: choose --threads for ") && both.contains("--fabric sim for "),
        "{both}"
    );
    assert!(misuse(&["-n", "2", "--timeout", "soon", "true"]).contains("unit of time"));
    assert!(misuse(&["-n", "2", "--env", "NAME", "true"]).contains("NAME=VALUE"));
    assert!(misuse(&["-n", "2", "--env", "TASUKI_RANK=1", "true"]).contains("set by `tasuki run` itself"));
    assert!(misuse(&["-n", "2", "--bind", "0", "true"]).contains("there are 2 ranks"));
    assert!(
        misuse(&["-n", "2", "--bind", "0,999", "true"]).contains("processor 999 is none of those allowed")
    );
    assert!(misuse(&["-n", "2", "--threads", "--bind", "core", "true"]).contains("threads"));
    assert!(misuse(&["-n", "16777215", "true"]).contains("too many"));
}

#[test]
fn missing_programs_are_reported_with_the_nearest() {
    assert!(misuse(&["-n", "2", "/bin/shh"]).contains("did you mean /bin/sh?"));
    assert!(misuse(&["-n", "2", "/bin"]).contains("is a folder"));
    assert!(misuse(&["-n", "2", "/etc/passwd"]).contains("may not be executed"));
    assert!(misuse(&["-n", "2", "no-such-program-anywhere"]).contains("there is no program"));
}

#[test]
fn a_file_that_is_no_program_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program");
    std::fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = misuse(&["-n", "2", file.to_str().unwrap()]);
    assert!(said.contains("could not be started"), "{said}");
}

#[test]
fn wrong_variables_are_reported_once() {
    for (name, value) in [("TASUKI_LOG", "loud"), ("TASUKI_WAKE", "never"), ("TASUKI_DISABLE", "sleep")] {
        let mut command = tasuki_run(&["-n", "4", "true"]);
        command.env(name, value);
        let ended = Running::start(command).wait().expect(2);
        assert!(ended.err.contains(&format!("{name}={value}: allowed is ")), "{}", ended.err);
    }
    let mut command = tasuki_run(&["-n", "4", "true"]);
    command.env("TASUKI_LGO", "info");
    let ended = Running::start(command).wait().expect(0);
    let expected = "tasuki: warning: TASUKI_LGO is not a variable of Tasuki; did you mean TASUKI_LOG?\n";
    assert_eq!(ended.err, expected);
}

#[test]
fn wrong_subcommands_are_reported_with_the_nearest() {
    let ended = tasuki(&["rnu"]).expect(2);
    assert!(ended.err.contains("'run'"), "{}", ended.err);
}

#[test]
fn every_subcommand_explains_itself_with_an_example() {
    for subcommand in ["run", "ps", "plan", "info"] {
        let ended = tasuki(&[subcommand, "--help"]).expect(0);
        assert!(ended.out.contains("Examples:") && ended.out.contains(&format!("tasuki {subcommand}")));
        assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{}", ended.out);
        assert!(!ended.out.contains('\x1b'), "no colour where nobody sees it");
    }
}

#[test]
fn info_shows_machine_and_variables() {
    let ended = tasuki(&["info"]).expect(0);
    for word in ["membarrier", "pidfd", "process_vm", "processors", "memory"] {
        assert!(ended.out.contains(word), "{}", ended.out);
    }
    let mut command = Command::new(TASUKI);
    command.args(["info", "--env"]).env("TASUKI_LOG", "debug");
    let table = Running::start(command).wait().expect(0).out;
    let row = table.lines().find(|line| line.starts_with("TASUKI_LOG")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["TASUKI_LOG", "warn", "debug", "environment"]);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    for args in [&["info", "--json"][..], &["info", "--env", "--json"]] {
        serde_json::from_str::<serde_json::Value>(&tasuki(args).expect(0).out).unwrap();
    }
}

#[test]
fn denied_facilities_show() {
    let mut command = Command::new(TASUKI);
    command.arg("info").env("TASUKI_DISABLE", "membarrier,pidfd,process_vm");
    let table = Running::start(command).wait().expect(0).out;
    assert_eq!(
        table.lines().filter(|line| line.contains("no: ") || line.contains(" no")).count(),
        3,
        "{table}"
    );
}
