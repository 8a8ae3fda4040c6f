//! Runs a step's commands and logs all their output.

use super::watchdog;
use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A command that takes longer hangs. The slowest one (building and running all tests from nothing
/// on two processors) takes half of this time on a machine that is in use.
const COMMAND_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Where a step runs its commands.
pub(super) struct Shell {
    pub(super) workspace: Metadata,
    log: PathBuf,
}

/// A command that has ended.
pub(super) struct Run {
    pub(super) success: bool,
    /// Its exit code, if no signal ended it.
    pub(super) code: Option<i32>,
    /// Standard output and error, in the order of writing.
    pub(super) output: String,
}

impl Shell {
    /// Opens an empty log below the target folder.
    pub(super) fn open(workspace: &Metadata, step: &str) -> Result<Shell> {
        let shell = Shell { workspace: workspace.clone(), log: PathBuf::new() };
        let log = shell.folder("xtask/logs")?.join(format!("{}.log", step.replace(' ', "_")));
        File::create(&log).context("the step's log")?;
        Ok(Shell { log, ..shell })
    }

    pub(super) fn root(&self) -> &Path {
        self.workspace.workspace_root.as_std_path()
    }

    /// A folder below the target folder; it is made if it does not exist.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.workspace.target_directory.as_std_path().join(name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(folder)
    }

    /// `cargo` with these arguments, separated by blanks, in the root of the workspace.
    pub(super) fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new("cargo");
        command.args(arguments.split_whitespace()).current_dir(self.root());
        command
    }

    /// Runs a command to its end. The command may fail.
    pub(super) fn run(&self, command: &mut Command) -> Result<Run> {
        self.run_within(COMMAND_LIMIT, Stdio::null(), command)
    }

    /// Like `run`, with another time limit and with standard input.
    pub(super) fn run_within(&self, limit: Duration, input: Stdio, command: &mut Command) -> Result<Run> {
        let mut log = File::options().read(true).append(true).open(&self.log)?;
        writeln!(log, "$ {}", line_of(command))?;
        let start = log.metadata()?.len();
        command.stdin(input).stdout(log.try_clone()?).stderr(log.try_clone()?);
        let child = command.spawn().with_context(|| format!("starting {}", bare_line(command)))?;
        let status = watchdog::wait(child, limit).with_context(|| bare_line(command))?;
        log.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let output = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Run { success: status.success(), code: status.code(), output })
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(super) fn expect(&self, command: &mut Command) -> Result<String> {
        let run = self.run(command)?;
        if !run.success {
            bail!("{} failed", bare_line(command));
        }
        Ok(run.output)
    }

    /// Adds a line to the log.
    pub(super) fn note(&self, line: &str) -> Result<()> {
        Ok(writeln!(File::options().append(true).open(&self.log)?, "{line}")?)
    }

    /// The whole output of the step's commands.
    pub(super) fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.log)?).into_owned())
    }
}

/// The command as a user would type it, with the variables that it needs.
fn line_of(command: &Command) -> String {
    let assigned = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}='{}' ", name.to_string_lossy(), value?.to_string_lossy()))
    });
    assigned.chain([bare_line(command)]).collect()
}

/// The command without its variables.
fn bare_line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
