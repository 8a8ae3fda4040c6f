//! Runs cases on ranks that are processes, with the `tasuki` command built from the current
//! sources.

use crate::case_runner::{Switches, says_what_it_should, the_case, the_failing, without_variables};
use crate::watchdog::Watchdog;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Runs a case as processes of `program`, on each of `counts` that the case allows.
pub fn on_processes(program: &str, name: &str, counts: &[usize], switches: Switches) {
    on_processes_within(&[], program, name, counts, switches);
}

/// Runs a case as `on_processes` does. Each rank is started by `wrapper`: a program and its
/// arguments, to which the command of the rank is appended.
pub fn on_processes_within(
    wrapper: &[&str],
    program: &str,
    name: &str,
    counts: &[usize],
    switches: Switches,
) {
    let case = the_case(name);
    launcher(Path::new(program)); // before the watchdog starts: the build may take a minute
    for &ranks in counts.iter().filter(|ranks| case.ranks.contains(ranks)) {
        let what = format!("{name} on {ranks} processes, {wrapper:?} {switches:?}");
        let _watched = Watchdog::over(what.clone());
        let (output, said) = launch(wrapper, program, name, ranks, switches);
        assert!(output.status.success(), "{what}: {}\n{said}", output.status);
        // Show it if a case skipped something because the machine lacks something.
        said.lines().filter(|line| line.contains(": skipped ")).for_each(|line| eprintln!("{line}"));
    }
}

/// Runs a failing job on processes. The launcher must end with code 1 and report the expected error
/// once.
pub fn failing_on_processes(program: &str, name: &str, switches: Switches) {
    let failing = the_failing(name);
    launcher(Path::new(program));
    let what = format!("{name} on processes, {switches:?}");
    let _watched = Watchdog::over(what.clone());
    let (output, said) = launch(&[], program, name, failing.ranks, switches);
    assert_eq!(output.status.code(), Some(1), "{what}: {said}");
    says_what_it_should(failing, &said);
    let reports = said.lines().filter(|line| line.starts_with("tasuki: ")).count();
    assert!(reports <= 1, "{what}: the launcher reported the error {reports} times: {said}");
}

/// Runs the program under `tasuki run`; also returns its standard error as text.
fn launch(wrapper: &[&str], program: &str, name: &str, ranks: usize, switches: Switches) -> (Output, String) {
    let mut command = without_variables(launcher(Path::new(program)));
    command.args(["run", "-n", &ranks.to_string()]).args(wrapper).args([program, name]).stdin(Stdio::null());
    let output = command.envs(switches.iter().copied()).output().expect("`tasuki` can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// The `tasuki` command in the folder of the program. Cargo builds only the binaries of the package
/// under test, and `tasuki` belongs to another package. So this function builds it, once in each
/// process.
fn launcher(program: &Path) -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let profile = program.parent().expect("the program lies in a folder");
        build(profile);
        let path = profile.join("tasuki");
        assert!(path.exists(), "{} is missing: cargo build --package tasuki-tools", path.display());
        path
    })
}

/// Builds with `--workspace`, like all tests of the workspace: with other features Cargo would
/// compile everything again. `cargo xtask test` has built it, so that not each test asks Cargo.
fn build(profile: &Path) {
    let Ok(cargo) = std::env::var("CARGO") else { return };
    if std::env::var_os("TEST_PROGRAMS_BUILT").is_some() {
        return;
    }
    let folder = profile.parent().expect("the profile's folder lies in the target's");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--offline", "--workspace", "--bin", "tasuki"]);
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let status = command.arg("--target-dir").arg(folder).status().expect("cargo can be started");
    assert!(status.success(), "`tasuki` does not build");
}
