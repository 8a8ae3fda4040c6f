//! The examples of ScaLAPACK, compiled as their readers do: for `tasuki run --blacs`, which replaces the BLACS of MPI
//! in Debian's library, and linked with Tasuki's BLACS.

use super::c_programs::Bindings;
use crate::test::shell::{Run, Shell};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Debian's library, which needs no package for development under this name.
const SCALAPACK: &str = "-l:libscalapack-openmpi.so.2.2";
const MODULES: [&str; 2] = ["matrix_market", "start"];
/// The ranks, and the grid that a program chooses for them.
const GRIDS: &[(&str, &str)] = &[("1", "1 x 1"), ("2", "1 x 2"), ("4", "2 x 2")];
/// A program takes less than a second.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// The arguments that an example must accept, and those that it must refuse.
struct Example {
    name: &'static str,
    right: &'static [&'static [&'static str]],
    wrong: &'static [&'static [&'static str]],
    /// What a line about the first arguments holds.
    printed: &'static str,
}

const EXAMPLES: &[Example] = &[
    Example {
        name: "solve",
        right: &[&["convection_10.mtx"], &["minimum_12.mtx"], &["--generate", "13"]],
        wrong: &[&["nothing.mtx"], &["README.md"], &["--grid", "3", "3"], &["--generate", "0"]],
        printed: "n 100 on ",
    },
    Example {
        name: "eigen",
        right: &[&["laplacian_10.mtx"], &["minimum_12.mtx"], &["--generate", "11"]],
        wrong: &[&["convection_10.mtx"], &["a", "b"], &["--grid", "1"]],
        // 4 - 4 cos(pi / 11) and 4 + 4 cos(pi / 11)
        printed: "eigenvalues 0.1620 to 7.8380",
    },
    Example {
        name: "gemm",
        right: &[&["--generate", "150"], &["--generate", "1"]],
        wrong: &[&["laplacian_10.mtx"], &["--fast"]],
        printed: "GFlop/s",
    },
];

/// Compiles and runs the examples. Returns how many runs were right, or were refused as they should be.
pub(super) fn run(shell: &Shell, tool: &Path, bindings: &Bindings) -> Result<usize> {
    let home = shell.root().join("examples/scalapack");
    let (tool, mut runs) = (blacs_tool(tool, bindings)?, 0);
    for example in EXAMPLES {
        let sources = ["c", "f90"].map(|language| home.join(example.name).with_extension(language));
        for source in sources.iter().filter(|source| source.exists()) {
            for linked in [false, true] {
                let path = compile(shell, bindings, source, linked)?;
                let program = Program { shell, tool: &tool, path, linked };
                // What a program does with its arguments does not depend on how it is linked.
                let right = if linked { &example.right[..1] } else { example.right };
                runs += program.accepts(right, example.printed)?;
                runs += program.refuses(if linked { &[] } else { example.wrong })?;
            }
        }
    }
    ensure!(runs != 0, "no program in {}", home.display());
    Ok(runs)
}

/// Puts the command into the folder of the libraries, where `--blacs` finds them.
fn blacs_tool(tool: &Path, bindings: &Bindings) -> Result<PathBuf> {
    let to = bindings.folder.join("tasuki");
    fs::copy(tool, &to).context("the command beside the libraries")?;
    Ok(to)
}

/// Compiles an example. `linked` puts Tasuki's BLACS in front of ScaLAPACK, so that its symbols are found first.
fn compile(shell: &Shell, bindings: &Bindings, source: &Path, linked: bool) -> Result<PathBuf> {
    let (folder, name) = (&bindings.folder, source.file_name().context("a source without a name")?);
    let way = if linked { "linked" } else { "preloaded" };
    let program = folder.join(format!("{}_{way}", name.to_string_lossy().replace('.', "_")));
    let mut compiler = if source.extension().is_some_and(|language| language == "c") {
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-I"]);
        compiler.arg(shell.root().join("bindings/blacs/include"));
        compiler
    } else {
        let mut compiler = Command::new("gfortran");
        compiler.args(["-std=f2018", "-Wall", "-Wno-implicit-interface", "-Werror", "-O2"]);
        compiler
    };
    let extension = source.extension().context("a source without a language")?;
    compiler.args(MODULES.map(|module| source.with_file_name(module).with_extension(extension))).arg(source);
    if linked {
        compiler.arg("-L").arg(folder).arg("-ltasuki_blacs").arg("-Wl,-rpath").arg(folder);
    }
    compiler.args([SCALAPACK, "-lm", "-o"]).arg(&program).current_dir(folder);
    shell.expect(&mut compiler)?;
    Ok(program)
}

/// A compiled example, and how it is started.
struct Program<'a> {
    shell: &'a Shell,
    tool: &'a Path,
    path: PathBuf,
    linked: bool,
}

impl Program<'_> {
    fn run(&self, ranks: &str, arguments: &[&str]) -> Result<Run> {
        let mut command = Command::new(self.tool);
        command.args(["run", "-n", ranks]).args((!self.linked).then_some("--blacs"));
        command.arg(&self.path).args(arguments).env("OPENBLAS_NUM_THREADS", "1");
        command.current_dir(self.shell.root().join("examples/scalapack"));
        self.shell.run_within(RUN_LIMIT, Stdio::null(), &mut command)
    }

    /// Runs the program with each of these arguments on each grid. Returns how often.
    fn accepts(&self, right: &[&[&str]], printed: &str) -> Result<usize> {
        for (ranks, grid) in GRIDS {
            for (number, arguments) in right.iter().enumerate() {
                let (run, expected) = (self.run(ranks, arguments)?, if number == 0 { printed } else { "" });
                let what = || format!("{} {arguments:?} on {ranks} ranks", self.path.display());
                ensure!(run.success, "{}: exit code {:?}", what(), run.code);
                check(&run.output, grid, expected).with_context(what)?;
            }
        }
        Ok(right.len() * GRIDS.len())
    }

    /// Runs the program with each of these arguments: it says once what is wrong, and all ranks end. Returns how often.
    fn refuses(&self, wrong: &[&[&str]]) -> Result<usize> {
        for arguments in wrong {
            let run = self.run("4", arguments)?;
            let usages = run.output.matches("usage: ").count();
            let (program, code) = (self.path.display(), run.code);
            ensure!(
                (code, usages) == (Some(2), 1),
                "{program} {arguments:?}: exit code {code:?}, {usages} usages"
            );
        }
        Ok(wrong.len())
    }
}

/// Checks that one line was printed, for this grid, with a residual that is right.
fn check(printed: &str, grid: &str, expected: &str) -> Result<()> {
    let mut lines = printed.lines();
    let (Some(line), None) = (lines.next(), lines.next()) else { bail!("not one line: {printed}") };
    let right = line.contains(&format!(" on {grid}: ")) && line.contains(expected);
    ensure!(right && line.ends_with(" (below 10 is right)"), "unexpected line: {line}");
    let residual = line.split("residual ").nth(1).and_then(|rest| rest.split([' ', ',']).next());
    let residual: f64 = residual.context("no residual")?.parse()?;
    ensure!((0.0..10.0).contains(&residual), "residual {residual}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_residual_grid_or_number_of_lines_is_seen() {
        let line =
            |residual: &str| format!("n 100 on 2 x 2: 0.1 s, residual {residual} (below 10 is right)\n");
        assert!(check(&line("4.9E-03"), "2 x 2", "n 100").is_ok());
        for residual in ["1.0e+01", "nan", "*******", "-1"] {
            assert!(check(&line(residual), "2 x 2", "n 100").is_err(), "{residual}");
        }
        let twice = line("1.0") + &line("1.0");
        for (printed, grid, expected) in
            [(&line("1.0"), "1 x 4", ""), (&line("1.0"), "2 x 2", "n 7"), (&twice, "2 x 2", "")]
        {
            assert!(check(printed, grid, expected).is_err(), "{printed}");
        }
    }
}
