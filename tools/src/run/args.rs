//! The command line of `tasuki run`.

use super::binding::Bind;
use super::options::{GRACE, Options, Output, Way};
use clap::ValueEnum;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tasuki_command::misuse;
use tasuki_core::bootstrap::environment_variables::{CALL_TIMEOUT, COLLECTIVES, HELPER, TRACE};
use tasuki_core::bootstrap::helper_setting::Helper;
use tasuki_core::bootstrap::settings::{SIZE_MAX, parse_time};
use tasuki_schedule::Forced;

const EXAMPLE: &str = "\
Examples:
  tasuki run -n 4 target/release/heat --rows 512
  tasuki run -n 2 --label --timeout 30s --env TASUKI_LOG=info ./prog
  tasuki run -n 4 --threads ./prog                  the same program, its ranks as threads
  tasuki run -n 4 --fabric sim --seed 7 ./prog      the same, simulated
  tasuki run -n 4 --trace run.json ./prog           record a trace, see `tasuki trace`

Standard input goes to rank 0. Lines of different ranks never mix. A line longer than 64 KiB, or one whose \
end does not come within 100 ms (a prompt), is printed in pieces; if several ranks write, each piece becomes a \
line. Text that ends with a carriage return is printed at once. If standard error is a terminal, TASUKI_TERMINAL \
gives the ranks its width. \
The exit code is that of the first rank that failed, 128 + the signal's number if a signal ended it, \
124 after --timeout, 2 for misuse.

Signals: Ctrl-C and SIGTERM are forwarded to the ranks, which then have the time of --grace to end; a second \
signal, at least half a second later, leaves them one second. SIGHUP, SIGUSR1 and SIGUSR2 are forwarded, and the \
job continues if its ranks do. SIGQUIT (Ctrl-\\) shows what every rank waits for.";

/// Start a program on several ranks of this machine.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = count)]
    ranks: usize,
    /// Bind ranks to processors: none, core (one processor for each rank, round robin), or a list
    /// with the processor of each rank, as in 0,1,0. All threads of a rank are bound to its
    /// processor [default: none, so that the threads of a rank can use several processors]
    #[arg(long, value_name = "none|core|LIST")]
    bind: Option<Bind>,
    /// Begin each line of output with its rank
    #[arg(long)]
    label: bool,
    /// End the job after this time: 90, 90s, 1.5m, 500ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Time from SIGTERM to SIGKILL when the job is ended (SIGTERM, Ctrl-C, --timeout, death of a
    /// rank); 0 kills right after SIGTERM [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    grace: Option<Duration>,
    /// The longest time that a call of a rank may wait before it fails, unless the program sets another: 90, 90s, 1.5m,
    /// 500ms [default: none]
    #[arg(long, value_name = "TIME", value_parser = call_timeout, allow_hyphen_values = true)]
    call_timeout: Option<String>,
    /// Threads that progress communication while ranks compute: off, node (one for all ranks), rank
    /// (one for each) or auto, optionally with :PROCESSOR [default: auto: off if the ranks occupy
    /// all processors, otherwise node]
    #[arg(long, value_name = "WHICH", value_parser = helper)]
    helper: Option<String>,
    /// Algorithms that plans use wherever they fit, as in bcast=binomial,allreduce=ring [default:
    /// the fastest, as `tasuki info --collectives` shows]
    #[arg(long, value_name = "COLL=ALG,..", value_parser = collectives)]
    collectives: Option<String>,
    /// Write a trace of all ranks as Trace Event JSON, for https://ui.perfetto.dev and `tasuki
    /// trace draw`; compressed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Set an environment variable for the ranks (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    env: Vec<(String, String)>,
    /// Let a program that uses ScaLAPACK run on Tasuki's BLACS: preloads its libraries, which lie
    /// beside this command or in ../lib
    #[arg(long)]
    blacs: bool,
    /// Run the ranks as threads of one process
    #[arg(long)]
    threads: bool,
    /// The transport between ranks
    #[arg(long, value_enum, default_value = "shm")]
    fabric: Fabric,
    /// Seed of the simulation [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// The transport between ranks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fabric {
    /// Shared memory
    Shm,
    /// Simulated time, in one process
    Sim,
}

impl Args {
    /// The options of the job. Makes the checks that clap cannot make.
    pub(super) fn options(mut self) -> anyhow::Result<Options> {
        let way = self.way()?;
        let args = self.command.split_off(1);
        let program = self.command.remove(0);
        let (bind, timeout, grace, mut env) =
            (self.bind, self.timeout, self.grace.unwrap_or(GRACE), self.env);
        if self.blacs {
            env.push((PRELOAD.to_string(), preload(&std::env::current_exe()?, std::env::var(PRELOAD).ok())?));
        }
        env.extend(self.call_timeout.map(|limit| (CALL_TIMEOUT.to_string(), limit)));
        env.extend(self.helper.map(|helper| (HELPER.to_string(), helper)));
        env.extend(self.collectives.map(|forced| (COLLECTIVES.to_string(), forced)));
        env.extend(self.trace.map(trace).transpose()?.map(|file| (TRACE.to_string(), file)));
        let output = Output::Pass { label: self.label };
        Ok(Options { ranks: self.ranks, way, bind, timeout, grace, env, program, args, input: true, output })
    }

    fn way(&self) -> anyhow::Result<Way> {
        match (self.fabric, self.threads, self.seed) {
            (Fabric::Sim, true, _) => Err(misuse(
                "--threads and --fabric sim exclude each other: choose --threads for ranks as threads on this machine, or \
                 --fabric sim for ranks in virtual time, which are threads of one process, too",
            )),
            (Fabric::Sim, false, seed) => Ok(Way::Simulated { seed: seed.unwrap_or(0) }),
            _ if self.blacs && (self.threads || self.fabric == Fabric::Sim) => {
                Err(misuse("--blacs starts processes: leave out --threads and --fabric sim"))
            }
            (Fabric::Shm, _, Some(_)) => Err(misuse("--seed works with --fabric sim only")),
            (Fabric::Shm, true, None) => Ok(Way::Threads),
            (Fabric::Shm, false, None) => Ok(Way::Processes),
        }
    }
}

/// The variable that names libraries which a program loads before its own.
const PRELOAD: &str = "LD_PRELOAD";
/// BLACS, and the few calls of MPI that programs of ScaLAPACK make themselves.
const BLACS: [&str; 2] = ["libtasuki_blacs.so", "libtasuki_mpi_start.so"];

/// The value of [`PRELOAD`] with the libraries of BLACS in front, which lie beside `tool` or in the folder of libraries
/// next to that of `tool`.
fn preload(tool: &Path, before: Option<String>) -> anyhow::Result<String> {
    let home = tool.parent().unwrap_or(Path::new("."));
    let mut all = Vec::new();
    for name in BLACS {
        let places = [home.join(name), home.join("../lib").join(name)];
        let found = places.iter().find_map(|place| place.canonicalize().ok());
        let found = found.and_then(|place| place.into_os_string().into_string().ok());
        all.push(found.ok_or_else(|| {
            misuse(format!(
                "--blacs: {name} is neither in {} nor in ../lib from there: cargo xtask install --prefix DIR installs it",
                home.display()
            ))
        })?);
    }
    all.extend(before.filter(|others| !others.is_empty()));
    Ok(all.join(":"))
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(ranks) if (1..=SIZE_MAX).contains(&ranks) => Ok(ranks),
        // `-np 4`, as the mpiexec of several MPI libraries takes it, is `-n p` to the parser.
        _ if text == "p" => Err("write -n 4 instead of -np 4".into()),
        _ => Err(format!("a job has 1 to {SIZE_MAX} ranks")),
    }
}

/// Checks the value that the ranks will read.
fn helper(text: &str) -> Result<String, String> {
    text.parse::<Helper>().map(|_| text.to_string())
}

/// Checks the value that the ranks will read.
fn collectives(text: &str) -> Result<String, String> {
    text.parse::<Forced>().map(|_| text.to_string())
}

/// The file's name as the value of a variable. Only text is passed on.
fn trace(file: PathBuf) -> anyhow::Result<String> {
    let text = file.to_str().filter(|text| !text.is_empty()).map(str::to_string);
    text.ok_or_else(|| misuse(format!("--trace {}: the name is empty or not Unicode", file.display())))
}

fn duration(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("the time must be positive".into()),
        time => Ok(time),
    }
}

/// Checks the value that the ranks will read.
fn call_timeout(text: &str) -> Result<String, String> {
    duration(text).map(|_| text.to_string())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok((name.into(), value.into())),
        _ => Err("give NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_blacs_are_beside_the_tool_or_in_lib() {
        let home = std::env::temp_dir().join(format!("tasuki-blacs-{}", std::process::id()));
        let tool = home.join("bin/tasuki");
        for place in ["bin", "lib"] {
            std::fs::create_dir_all(home.join(place)).expect("a folder for temporary files");
        }
        let error = preload(&tool, None).expect_err("they are nowhere").to_string();
        assert!(
            error.contains("libtasuki_blacs.so is neither in") && error.contains("xtask install"),
            "{error}"
        );
        for place in ["lib", "bin"] {
            let libraries = BLACS.map(|name| {
                let library = home.join(place).join(name);
                std::fs::write(&library, "").expect("a file there");
                library.canonicalize().expect("it is there").display().to_string()
            });
            let both = libraries.join(":");
            assert_eq!(preload(&tool, None).expect("they are there"), both);
            assert_eq!(
                preload(&tool, Some("other.so".into())).expect("they are there"),
                format!("{both}:other.so")
            );
        }
        std::fs::remove_dir_all(home).expect("the folder of this test");
    }

    #[test]
    fn durations_are_parsed() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "s", "1d", "1e400", "nan", "inf", "1 2"] {
            assert!(duration(wrong).is_err(), "{wrong}");
            assert_eq!(parse_time(wrong).is_ok(), wrong == "0", "{wrong}");
        }
    }

    #[test]
    fn the_number_of_ranks_is_checked() {
        assert_eq!(count("4"), Ok(4));
        assert!(count("0").is_err() && count("four").is_err_and(|text| text.contains("a job has 1 to")));
        assert!(count("p").is_err_and(|text| text.contains("-n 4 instead of -np 4")));
    }

    #[test]
    fn assignments_are_parsed() {
        assert_eq!(assignment("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(assignment("A="), Ok(("A".into(), String::new())));
        assert!(assignment("A").is_err() && assignment("=b").is_err());
    }
}
