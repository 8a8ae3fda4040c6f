//! ScaLAPACK of Debian, not compiled again, on BLACS over Tasuki: its own tests, with the library preloaded, and the
//! examples.

use super::c_programs::Bindings;
use super::{examples, scalapack_examples};
use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// Where Debian's package puts the tests that are linked with the BLACS of Open MPI.
const TESTS: &str = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests";
const PACKAGES: &[&str] = &["gfortran", "libscalapack-openmpi2.2", "scalapack-mpi-test"];
/// LU, LLT, QR, least squares, inverses and eigenvalues, in several types.
const DRIVERS: &[&str] = &["xdlu", "xdllt", "xdqr", "xsls", "xdinv", "xcsep", "xzlu"];

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    if !Path::new(TESTS).exists() && !installed(shell) {
        let line = format!("apt-get install --no-install-recommends {}", PACKAGES.join(" "));
        return Ok(Outcome::Skipped(format!("ScaLAPACK's tests are not installed; as root: {line}")));
    }
    let (tool, bindings) = (examples::build(shell)?, Bindings::build(shell)?);
    let (preload, mut tests) = (bindings.folder.join("libtasuki_blacs.so.0"), 0);
    for driver in DRIVERS {
        let mut command = Command::new(&tool);
        command.args(["run", "-n", "4", "env"]).arg(format!("LD_PRELOAD={}", preload.display()));
        command.arg(format!("./{driver}")).current_dir(TESTS).env("OPENBLAS_NUM_THREADS", "1");
        tests += passed(&shell.expect(&mut command)?)?;
    }
    let runs = scalapack_examples::run(shell, &tool, &bindings)?;
    Ok(Outcome::Passed(format!("{tests} tests of {}; {runs} runs of the examples", DRIVERS.join(", "))))
}

/// Installs the packages where that is possible without asking: as root of a machine for tests.
fn installed(shell: &Shell) -> bool {
    let get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        shell.expect(&mut command).is_ok()
    };
    let install = [&["install", "-y", "--no-install-recommends"], PACKAGES].concat();
    std::env::var_os("CI").is_some() && get(&["update"]) && get(&install)
}

/// Returns how many tests passed. A driver prints how many tests it has run, passed and failed.
fn passed(printed: &str) -> Result<usize> {
    let number = |text: &str| {
        let line = printed.lines().find(|line| line.contains(text))?;
        line.split_whitespace().next()?.parse::<usize>().ok()
    };
    match (number("tests completed and passed"), number("tests completed and failed")) {
        (Some(passed @ 1..), Some(0)) => Ok(passed),
        counts => bail!("passed and failed: {counts:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_seen() {
        let of = |failed| {
            format!(
                "Finished 5 tests\n  4 tests completed and passed residual checks.\n \
                                   {failed} tests completed and failed residual checks.\n"
            )
        };
        assert_eq!(passed(&of(0)).expect("none failed"), 4);
        assert!(passed(&of(1)).is_err() && passed("").is_err());
    }
}
