//! The launcher on a system that lacks or refuses something: the job runs if possible, and one
//! message names what is missing and why.
#![allow(unsafe_code)]
//! Unsafe: a seccomp filter, installed between fork and exec by two system calls on values made
//! before.

#[path = "../launcher/mod.rs"]
mod launcher;

use launcher::{Ended, Running, TASUKI, rank_program, tasuki_run};
use rustix::process::Signal;
use std::ffi::{c_int, c_ulong};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A job of two ranks that succeeds.
fn goes_well(mut command: Command) -> Ended {
    command.args([rank_program(), "join", "meet", "leave"]);
    Running::start(command).wait().expect(0)
}

fn with_home(home: &Path) -> Ended {
    let mut command = tasuki_run(&["-n", "2"]);
    command.env_remove("XDG_CONFIG_HOME").env("HOME", home);
    goes_well(command)
}

#[test]
fn a_home_that_is_no_folder_is_no_home() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for home in [Path::new("/dev/null"), Path::new("/nonexistent"), file.path()] {
        assert_eq!(with_home(home).err, "", "{}", home.display());
    }
}

#[test]
fn a_home_that_cannot_be_read_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    // Even root cannot follow this symbolic link.
    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    let ended = with_home(&circle);
    assert_eq!((ended.messages().len(), ended.err.lines().count()), (1, 1), "{}", ended.err);
    assert!(ended.err.starts_with("tasuki: warning: built-in values are used, because "), "{}", ended.err);
    assert!(ended.err.contains("circle/.config/tasuki/tune.json: "), "{}", ended.err);
    assert!(!ended.err.contains("TASUKI_TUNE_FILE"), "nobody has set it: {}", ended.err);
}

#[test]
fn measured_values_that_make_no_sense_are_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".config/tasuki")).unwrap();
    std::fs::write(folder.path().join(".config/tasuki/tune.json"), "{").unwrap();
    let ended = with_home(folder.path());
    assert_eq!(ended.messages().len(), 1, "{}", ended.err);
    assert!(ended.err.contains("warning") && ended.err.contains("tune.json"), "{}", ended.err);
}

/// Runs `tasuki run` in a mount namespace without /proc and /dev; `None` if the system does not
/// allow that.
fn without_proc_and_dev() -> Option<Command> {
    let hide = "umount -l /proc && mount -t tmpfs none /dev && test ! -e /dev/null -a ! -e /proc/self";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, TASUKI]).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    };
    if !unshare(hide).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a mount namespace cannot be made here");
        return None;
    }
    let mut command = unshare(&format!("{hide} && exec $0 run -n 2 \"$@\""));
    command.env_remove("XDG_CONFIG_HOME");
    Some(command)
}

#[test]
fn without_proc_and_dev_a_job_runs_as_ever() {
    let Some(command) = without_proc_and_dev() else { return };
    assert_eq!(goes_well(command).err, "");
}

#[test]
fn without_proc_and_dev_a_killed_launcher_leaves_nothing() {
    let Some(mut command) = without_proc_and_dev() else { return };
    command.args([rank_program(), "child", "hold"]);
    let mut running = Running::start(command);
    running.until("ranks and their descendants", |running| running.marked().len() >= 6);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None);
}

/// A system call by its number.
struct Call(u32);

#[cfg(target_arch = "x86_64")]
const SCHED_SETAFFINITY: Call = Call(203);
#[cfg(target_arch = "x86_64")]
const SETSID: Call = Call(112);
#[cfg(target_arch = "aarch64")]
const SCHED_SETAFFINITY: Call = Call(122);
#[cfg(target_arch = "aarch64")]
const SETSID: Call = Call(157);

/// An instruction of a packet filter, and a program of such instructions (linux/filter.h).
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

#[repr(C)]
struct Filter {
    length: u16,
    instructions: *const Instruction,
}

// SAFETY: this is the declaration of prctl(2) in the C library.
unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
}

/// Makes the kernel answer one system call with EPERM, for the command and everything that it
/// starts.
fn refuse(command: &mut Command, call: &Call) {
    const NO_NEW_PRIVILEGES: c_int = 38;
    const SECCOMP: c_int = 22;
    const WITH_FILTER: c_ulong = 2;
    const EPERM: u32 = 1;
    let step = |code, if_true, value| Instruction { code, if_true, if_false: 0, value };
    let instructions = [
        step(0x20, 0, 0),                   // load the number of the call
        step(0x15, 1, call.0),              // skip one instruction if it is this one
        step(0x06, 0, 0x7fff_0000),         // allow
        step(0x06, 0, 0x0005_0000 | EPERM), // answer with an error
    ];
    let install = move || {
        let filter = Filter { length: instructions.len() as u16, instructions: instructions.as_ptr() };
        // SAFETY: the filter lies on the stack, its instructions in the closure; the kernel copies
        // both.
        let refused = unsafe {
            let (one, none): (c_ulong, c_ulong) = (1, 0);
            prctl(NO_NEW_PRIVILEGES, one, none, none, none) != 0
                || prctl(SECCOMP, WITH_FILTER, &raw const filter, none, none) != 0
        };
        if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: system calls on captured values only.
    unsafe { command.pre_exec(install) };
}

#[test]
fn where_processors_cannot_be_chosen_ranks_run_anywhere() {
    let run = |options: &[&str]| {
        let mut command = tasuki_run(&[&["-n", "2"], options].concat());
        refuse(&mut command, &SCHED_SETAFFINITY);
        goes_well(command)
    };
    assert_eq!(run(&[]).err, "", "nothing was asked for");
    let ended = run(&["--bind", "core"]);
    let expected = "tasuki: warning: --bind has no effect, ranks run anywhere: sched_setaffinity: ";
    assert!(ended.err.starts_with(expected) && ended.err.lines().count() == 1, "{}", ended.err);
}

#[test]
fn without_a_keeper_the_job_runs_and_the_user_is_warned_once() {
    let mut command = tasuki_run(&["-n", "2"]);
    refuse(&mut command, &SETSID);
    let ended = goes_well(command);
    let expected = "descendants of ranks may outlive a kill -9 of tasuki run\n";
    assert!(ended.err.ends_with(expected) && ended.err.lines().count() == 1, "{}", ended.err);
}
