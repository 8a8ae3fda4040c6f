//! Programs in C and Fortran that use the bindings: compiled against their headers and module, started as processes.

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
/// The bindings: their folder, and the name of their library.
const BINDINGS: &[(&str, &str)] = &[("c", "tasuki"), ("blacs", "tasuki_blacs")];

/// The libraries: what cargo builds, and the names under which programs find them.
const LIBRARIES: &[(&str, &str)] =
    &[("tasuki_c", "tasuki"), ("tasuki_blacs", "tasuki_blacs"), ("tasuki_mpi_start", "tasuki_mpi_start")];

/// Where libraries and programs are made.
pub(super) struct Bindings {
    pub(super) folder: PathBuf,
}

impl Bindings {
    /// Builds the libraries, and puts them into a folder under their names.
    pub(super) fn build(shell: &Shell) -> Result<Bindings> {
        shell.expect(
            &mut shell.cargo("build --package tasuki-c --package tasuki-blacs --package tasuki-mpi-start"),
        )?;
        let folder = shell.folder("xtask/bindings")?;
        let built = shell.workspace.target_directory.as_std_path().join("debug");
        for (from, library) in LIBRARIES {
            for ending in ["so", "so.0"] {
                let to = folder.join(format!("lib{library}.{ending}"));
                fs::copy(built.join(format!("lib{from}.so")), to).context("the library of the bindings")?;
            }
        }
        Ok(Bindings { folder })
    }

    /// Compiles a program.
    fn compile(&self, shell: &Shell, mut compiler: Command, source: &Path, library: &str) -> Result<PathBuf> {
        // Examples in C and Fortran have the same names.
        let name = source.file_name().context("a source without a name")?.to_string_lossy().replace('.', "_");
        let program = self.folder.join(name);
        compiler.arg(source).arg("-o").arg(&program).current_dir(&self.folder);
        compiler.arg("-L").arg(&self.folder).arg(format!("-l{library}")).arg("-Wl,-rpath").arg(&self.folder);
        shell.expect(&mut compiler)?;
        Ok(program)
    }
}

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    if !answers("cc") {
        return Ok(Outcome::Skipped("there is no C compiler (Debian: apt-get install gcc)".into()));
    }
    let (tool, bindings) = (examples::build(shell)?, Bindings::build(shell)?);
    let mut programs = Vec::new();
    for (folder, library) in BINDINGS {
        let home = shell.root().join("bindings").join(folder);
        for header in files(&home.join("include"), "h")?.iter().filter(|_| answers("g++")) {
            shell.expect(Command::new("g++").args(AS_CPP).arg(header))?;
        }
        for source in files(&home.join("tests"), "c")? {
            // AddressSanitizer sees what the bindings do with the memory of the program.
            let mut compiler = Command::new("cc");
            compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-fsanitize=address"]);
            compiler.arg("-pthread").arg("-I").arg(home.join("include"));
            programs.push(bindings.compile(shell, compiler, &source, library)?);
        }
    }
    let in_c = programs.len();
    programs.extend(in_fortran(shell, &bindings, "bindings/fortran/tests")?);
    ensure!(in_c != 0, "no program in bindings/*/tests");
    for program in &programs {
        for ranks in RANKS {
            let mut command = Command::new(&tool);
            let printed = shell.expect(command.args(["run", "-n", ranks]).arg(program))?;
            let right = printed.lines().filter(|line| line.ends_with("is right")).count();
            if right.to_string() != **ranks {
                bail!("{} on {ranks} ranks: {right} say that all is right", program.display());
            }
        }
    }
    let examples = run_examples(shell, &tool, &bindings)?;
    let headers = if answers("g++") { "C11 and C++17" } else { "C11 (no g++)" };
    let fortran = match programs.len() - in_c {
        0 => "no gfortran".to_owned(),
        count => format!("{count} in Fortran"),
    };
    let ranks = RANKS.join(", ");
    Ok(Outcome::Passed(format!(
        "{in_c} programs in C, {fortran}, {examples} examples, on {ranks} ranks; headers as {headers}"
    )))
}

/// Compiles the examples as their readers do, and runs them: each ends with 0 if its result is right. Returns how many.
fn run_examples(shell: &Shell, tool: &Path, bindings: &Bindings) -> Result<usize> {
    let mut programs = in_fortran(shell, bindings, "examples/fortran")?;
    for source in files(&shell.root().join("examples/c"), "c")? {
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-I"]);
        compiler.arg(shell.root().join("bindings/c/include"));
        programs.push(bindings.compile(shell, compiler, &source, "tasuki")?);
    }
    for program in &programs {
        for ranks in RANKS {
            let printed = shell.expect(Command::new(tool).args(["run", "-n", ranks]).arg(program))?;
            ensure!(!printed.is_empty(), "{} on {ranks} ranks prints nothing", program.display());
        }
    }
    Ok(programs.len())
}

/// Compiles the programs in Fortran of a folder, if there is a compiler.
fn in_fortran(shell: &Shell, bindings: &Bindings, folder: &str) -> Result<Vec<PathBuf>> {
    if !answers("gfortran") {
        return Ok(Vec::new());
    }
    let home = shell.root().join("bindings/fortran");
    let mut module = Command::new("gfortran");
    module.args(["-std=f2018", "-Wall", "-Werror", "-c"]).arg(home.join("fmpl.f90"));
    shell.expect(module.current_dir(&bindings.folder))?;
    let compile = |source: &PathBuf| {
        let mut compiler = Command::new("gfortran");
        // Calls without the module pass buffers of several types to one routine.
        compiler.args(["-O1", "-fallow-argument-mismatch", "-w"]);
        bindings.compile(shell, compiler, source, "tasuki")
    };
    files(&shell.root().join(folder), "f90")?.iter().map(compile).collect()
}

/// The files of a folder whose names end so, in the order of their names.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut found = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    found.retain(|path| path.extension().is_some_and(|of| of == ending));
    found.sort();
    Ok(found)
}

pub(super) fn answers(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
