//! Programs in C that use the bindings: compiled against their headers, started as processes.

use super::examples;
use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: &[&str] = &["1", "2", "4", "7"];
/// How a compiler reads the headers, beside C11.
const AS_CPP: &[&str] = &["-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];

/// Where the bindings and their programs are.
struct Bindings {
    folder: PathBuf,
    headers: PathBuf,
}

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    if !answers("cc") {
        return Ok(Outcome::Skipped("there is no C compiler (Debian: apt-get install gcc)".into()));
    }
    let tool = examples::build(shell)?;
    shell.expect(&mut shell.cargo("build --package tasuki-c"))?;
    let folder = shell.folder("xtask/c_programs")?;
    let built = shell.workspace.target_directory.as_std_path().join("debug/libtasuki_c.so");
    for name in ["libtasuki.so", "libtasuki.so.0"] {
        fs::copy(&built, folder.join(name)).context("the library of the bindings")?;
    }
    let bindings = Bindings { folder, headers: shell.root().join("bindings/c/include") };
    let is_checked_as_cpp = answers("g++");
    for header in files(&bindings.headers, "h")?.iter().filter(|_| is_checked_as_cpp) {
        shell.expect(Command::new("g++").args(AS_CPP).arg(header))?;
    }
    let sources = files(&shell.root().join("bindings/c/tests"), "c")?;
    ensure!(!sources.is_empty(), "no program in bindings/c/tests");
    for source in &sources {
        let program = bindings.compile(shell, source)?;
        for ranks in RANKS {
            let mut command = Command::new(&tool);
            let printed = shell.expect(command.args(["run", "-n", ranks]).arg(&program))?;
            let right = printed.lines().filter(|line| line.ends_with("is right")).count();
            if right.to_string() != **ranks {
                bail!("{} on {ranks} ranks: {right} say that all is right", program.display());
            }
        }
    }
    let headers = if is_checked_as_cpp { "headers as C11 and C++17" } else { "headers as C11 only: no g++" };
    Ok(Outcome::Passed(format!("{} programs on {} ranks, {headers}", sources.len(), RANKS.join(", "))))
}

impl Bindings {
    /// Compiles a program with AddressSanitizer, which sees what the bindings do with its memory.
    fn compile(&self, shell: &Shell, source: &Path) -> Result<PathBuf> {
        let program = self.folder.join(source.file_stem().context("a source without a name")?);
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-fsanitize=address"]);
        command.arg("-I").arg(&self.headers).arg(source).arg("-o").arg(&program);
        command.arg("-L").arg(&self.folder).args(["-ltasuki", "-lm", "-Wl,-rpath"]).arg(&self.folder);
        shell.expect(&mut command)?;
        Ok(program)
    }
}

/// The files of a folder whose names end so, in the order of their names.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut found = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    found.retain(|path| path.extension().is_some_and(|of| of == ending));
    found.sort();
    Ok(found)
}

fn answers(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
