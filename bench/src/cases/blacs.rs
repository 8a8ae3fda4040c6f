//! Figures of BLACS and ScaLAPACK. One program (`bench/peers/blacs.c`), which is linked with the ScaLAPACK of an MPI, runs
//! on the BLACS of that MPI and, unchanged, on that of Tasuki. Each repetition is a job.

use super::whole_jobs::RepeatJob;
use crate::case::{Case, Operation};
use crate::result::key::Key;
use crate::result::library::Library;
use anyhow::{Context, ensure};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tasuki_command::child::ends_with_us;

/// The MPI, which is that of the distribution, like its ScaLAPACK.
const MPI: (Library, &str) = (Library::Openmpi, "Debian's");
/// Where `cargo xtask peers blacs` puts the program, below the folder of all peers.
const PROGRAM: &str = "blacs/bin/peer_blacs";

/// Returns the figures of a job of this many ranks: `sizes` are those of an operation.
pub(crate) fn figures<'w>(
    case: &'static Case,
    ranks: usize,
    sizes: &dyn Fn(&'static Operation) -> &'w [u64],
    peers: &[Library],
    home: &Path,
) -> anyhow::Result<Vec<(Key, RepeatJob)>> {
    let program = home.join(PROGRAM);
    ensure!(program.exists(), "{} is missing: cargo xtask peers blacs", program.display());
    let beside = peers.contains(&MPI.0).then_some(MPI);
    let mut figures: Vec<(Key, RepeatJob)> = Vec::new();
    for operation in case.operations.iter().filter(|operation| is_for(operation.name, ranks)) {
        for &bytes in sizes(operation) {
            for (library, setting) in [(Library::Tasuki, "")].into_iter().chain(beside) {
                let key = Key { library, setting: setting.into(), ..Key::ours(case, operation.name, bytes) };
                let job = BlacsJob { program: program.clone(), library, ranks, name: operation.name, bytes };
                figures.push((key, Box::new(move |_| job.repeat())));
            }
        }
    }
    Ok(figures)
}

/// Messages have two ends. Eight processes on two processors would solve for a long time.
fn is_for(operation: &str, ranks: usize) -> bool {
    match operation {
        "contiguous" | "submatrix" | "trapezoid" => ranks == 2,
        "n2000" | "n4000" => ranks <= 4,
        _ => true,
    }
}

struct BlacsJob {
    program: PathBuf,
    library: Library,
    ranks: usize,
    name: &'static str,
    bytes: u64,
}

impl BlacsJob {
    /// Runs the program, and returns its last figure: calls are measured twice, a solve once.
    fn repeat(&self) -> anyhow::Result<f64> {
        let mut command = self.command()?;
        ends_with_us(&mut command, Signal::TERM);
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("{} cannot be started", self.library))?;
        ensure!(output.status.success(), "{} on {}: {}", self.name, self.library, output.status);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let last: Option<Value> = printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let is_expected = |figure: &Value| figure["ranks"].as_u64() == Some(self.ranks as u64);
        let value = last.filter(is_expected).and_then(|figure| figure["value"].as_f64());
        value.with_context(|| format!("{} on {} printed no figure: {printed}", self.name, self.library))
    }

    fn command(&self) -> anyhow::Result<Command> {
        let ranks = self.ranks.to_string();
        let mut command = if self.library == Library::Tasuki {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["run", "-n", &ranks, "--blacs"]);
            command
        } else {
            let mut command = Command::new("mpirun");
            command.args(["-n", &ranks, "--oversubscribe", "--bind-to", "none"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command
        };
        // One thread of the BLAS for each process: the processors are for the processes.
        command.env("OPENBLAS_NUM_THREADS", "1").arg(&self.program);
        let (name, bytes) =
            match self.name.strip_prefix('n').and_then(|unknowns| unknowns.parse::<u64>().ok()) {
                Some(unknowns) => ("solve", 8 * unknowns),
                None => (self.name, self.bytes.max(8)),
            };
        let repetitions = if name == "solve" { "1" } else { "2" };
        command.args([name, "--size", &bytes.to_string(), "--repetitions", repetitions]);
        Ok(command)
    }
}
