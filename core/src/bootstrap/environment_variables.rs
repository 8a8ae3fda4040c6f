//! The table of all environment variables that Tasuki reads.

use super::did_you_mean::nearest;
use std::collections::BTreeMap;

/// The prefix of all names. A variable with this prefix that is not in the table is an error of the user.
pub const PREFIX: &str = "TASUKI_";

/// The log level.
pub const LOG: &str = "TASUKI_LOG";
/// System features to disable.
pub const DISABLE: &str = "TASUKI_DISABLE";
/// How writers detect sleeping ranks.
pub const WAKE: &str = "TASUKI_WAKE";
/// How peers access memory that only its owner has mapped.
pub const OWN_MEMORY: &str = "TASUKI_OWN_MEMORY";
/// Off: peers write signal lines through the fabric, never by plain stores.
pub const DIRECT_SIGNALS: &str = "TASUKI_DIRECT_SIGNALS";
/// The file of measured tuning parameters.
pub const TUNE_FILE: &str = "TASUKI_TUNE_FILE";
/// From the tuning file: the least bytes of a receive that its sender writes directly.
pub const DIRECT_BYTES_MIN: &str = "TASUKI_DIRECT_BYTES_MIN";
/// From the tuning file: the cost parameters of this machine.
pub const COST_PARAMETERS: &str = "TASUKI_COST_PARAMETERS";
/// Algorithms that collectives must use where they fit, whatever the cost model says.
pub const COLLECTIVES: &str = "TASUKI_COLLECTIVES";
/// Whether a failed collective call ends the job.
pub const ABORT_ON_FAILURE: &str = "TASUKI_ABORT_ON_FAILURE";
/// The time limit of calls.
pub const CALL_TIMEOUT: &str = "TASUKI_CALL_TIMEOUT";
/// The capacity of the send buffer.
pub const SEND_BUFFER: &str = "TASUKI_SEND_BUFFER";
/// The size of the any-source queues.
pub const ANY_SOURCE: &str = "TASUKI_ANY_SOURCE";
/// The helper threads.
pub const HELPER: &str = "TASUKI_HELPER";
/// The trace file.
pub const TRACE: &str = "TASUKI_TRACE";
/// The number of trace events that each rank keeps.
pub const TRACE_EVENTS: &str = "TASUKI_TRACE_EVENTS";
/// This process's rank.
pub const RANK: &str = "TASUKI_RANK";
/// The number of ranks of the job.
pub const SIZE: &str = "TASUKI_SIZE";
/// The name of the launcher's socket.
pub const JOB_SOCKET: &str = "TASUKI_JOB_SOCKET";
/// The job's key, which proves that a process belongs to the job.
pub const KEY: &str = "TASUKI_KEY";
/// The number of ranks that this process runs as threads.
pub const THREADS: &str = "TASUKI_THREADS";
/// The fabric.
pub const FABRIC: &str = "TASUKI_FABRIC";
/// The columns of the terminal that a rank's standard error goes to.
pub const TERMINAL: &str = "TASUKI_TERMINAL";
/// The seed of a simulated run.
pub const SEED: &str = "TASUKI_SEED";
/// The only seed to run of a range of seeds.
pub const SIM_SEED: &str = "TASUKI_SIM_SEED";

/// Who sets a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetBy {
    /// The user who runs the program.
    User,
    /// `tasuki run`, for the processes that it starts.
    Launcher,
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// The value if the variable is not set, or empty.
    pub default: &'static str,
    /// The allowed values, in words.
    pub allowed: &'static str,
    /// The effect, in words.
    pub meaning: &'static str,
    /// Who sets it.
    pub set_by: SetBy,
}

const fn user(
    name: &'static str,
    default: &'static str,
    allowed: &'static str,
    meaning: &'static str,
) -> Variable {
    Variable { name, default, allowed, meaning, set_by: SetBy::User }
}

const fn launcher(name: &'static str, allowed: &'static str, meaning: &'static str) -> Variable {
    Variable { name, default: "", allowed, meaning, set_by: SetBy::Launcher }
}

/// Every variable that Tasuki reads.
pub const VARIABLES: &[Variable] = &[
    user(LOG, "warn", "error, warn, info, debug", "log level on standard error"),
    user(TUNE_FILE, "", "a file", "figures of this machine, as `tasuki bench --tune` wrote them"),
    user(HELPER, "auto", "off, node, rank, auto; optionally :PROCESSOR", "helper threads"),
    user(
        COLLECTIVES,
        "",
        "COLLECTIVE=ALGORITHM,.. as in bcast=binomial",
        "algorithms that plans use where they fit",
    ),
    user(ABORT_ON_FAILURE, "off", "off, on", "on: a collective call that fails ends the job"),
    user(
        CALL_TIMEOUT,
        "",
        "a time: 30, 30s, 1.5m, 500ms",
        "calls that wait longer fail; without it no call has a limit",
    ),
    user(
        SEND_BUFFER,
        "0",
        "a number of bytes",
        "room for copies of short messages whose receive is not posted; 0: sends wait",
    ),
    user(
        ANY_SOURCE,
        "64x256",
        "SLOTSxBYTES, SLOTS a power of two, up to 8 MiB",
        "messages in a rank's any-source queue",
    ),
    user(TRACE, "", "a file", "as `tasuki run --trace`; else parts beside it, for `tasuki trace join`"),
    user(
        TRACE_EVENTS,
        "65536",
        "1 to 16777216",
        "the number of trace events that each rank keeps: the last ones, 136 bytes each",
    ),
    user(SIM_SEED, "", "a number", "the only seed that `sim` runs of the seeds that a test names"),
    user(WAKE, "auto", "auto, fence, membarrier", "test switch: how writers detect sleeping ranks"),
    user(
        OWN_MEMORY,
        "auto",
        "auto, request",
        "test switch: access memory outside the job by a request to its owner",
    ),
    user(DIRECT_SIGNALS, "on", "on, off", "test switch: off writes signal lines through the fabric"),
    user(DISABLE, "", "membarrier, pidfd, process_vm", "test switch: do not use these system features"),
    launcher(RANK, "a number below TASUKI_SIZE", "this process's rank"),
    launcher(SIZE, "a number from 1", "the number of ranks of the job"),
    launcher(JOB_SOCKET, "a socket's name", "the launcher's socket"),
    launcher(KEY, "32 hexadecimal digits", "proves that a process belongs to the job"),
    launcher(DIRECT_BYTES_MIN, "a number of bytes", "senders write receives of this size or more directly"),
    launcher(COST_PARAMETERS, "NAME=NUMBER,..", "cost parameters by which plans choose their algorithms"),
    launcher(TERMINAL, "a number of columns", "the width of the terminal that standard error goes to"),
    launcher(THREADS, "a number from 1", "the number of ranks that this process runs as threads"),
    launcher(FABRIC, "shm, sim", "the fabric that carries the bytes"),
    launcher(SEED, "a number", "the seed of the simulation, with TASUKI_FABRIC=sim"),
];

/// Returns the variable with this name.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

/// The environment of a process, or of one that is going to be started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Returns the environment of this process. Bytes that are not Unicode become replacement
    /// characters, which then fail to parse.
    pub fn current() -> Environment {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Environment(std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect())
    }

    /// Sets a variable, as `--env` does.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Returns the value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a warning for each variable with Tasuki's prefix that is not in the table, with the
    /// closest name that is.
    pub fn unknown(&self) -> Vec<String> {
        let names = self.0.keys().filter(|name| name.starts_with(PREFIX) && find(name).is_none());
        names.map(|name| warning(name)).collect()
    }

    /// Returns the whole table with the current values.
    pub fn rows(&self) -> Vec<Row> {
        VARIABLES.iter().map(|variable| self.row(variable)).collect()
    }

    fn row(&self, variable: &'static Variable) -> Row {
        let (value, origin) = match (self.get(variable.name), variable.set_by) {
            (Some(value), SetBy::User) => (value, "environment"),
            (Some(value), SetBy::Launcher) => (value, "launcher"),
            (None, _) => (variable.default, "default"),
        };
        Row { variable, value: value.to_string(), origin }
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Environment {
        Environment(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

fn warning(name: &str) -> String {
    match nearest(name, VARIABLES.iter().map(|variable| variable.name)) {
        Some(right) => format!("{name} is not a variable of Tasuki; did you mean {right}?"),
        None => format!("{name} is not a variable of Tasuki (`tasuki info --env` lists them)"),
    }
}

/// A variable with its value in an environment.
#[derive(Clone, Debug)]
pub struct Row {
    /// The variable.
    pub variable: &'static Variable,
    /// Its value.
    pub value: String,
    /// The origin of the value: `default`, `environment` or `launcher`.
    pub origin: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_name_once_and_with_the_prefix() {
        for (at, variable) in VARIABLES.iter().enumerate() {
            assert!(variable.name.starts_with(PREFIX) && !variable.meaning.is_empty());
            assert!(VARIABLES[..at].iter().all(|other| other.name != variable.name));
        }
    }

    #[test]
    fn unknown_names_are_reported_with_the_closest_known_name() {
        let environment: Environment =
            [("TASUKI_LGO", "info"), ("TASUKI_ZZZZZZZ", "1"), ("PATH", ""), (LOG, "info")]
                .into_iter()
                .collect();
        assert_eq!(
            environment.unknown(),
            [
                "TASUKI_LGO is not a variable of Tasuki; did you mean TASUKI_LOG?",
                "TASUKI_ZZZZZZZ is not a variable of Tasuki (`tasuki info --env` lists them)",
            ]
        );
    }

    #[test]
    fn rows_show_the_origin_of_values() {
        let environment: Environment = [(LOG, "debug"), (RANK, "3"), (WAKE, "")].into_iter().collect();
        let rows = environment.rows();
        let of = |name: &str| rows.iter().find(|row| row.variable.name == name).unwrap();
        assert_eq!((of(LOG).value.as_str(), of(LOG).origin), ("debug", "environment"));
        assert_eq!((of(RANK).value.as_str(), of(RANK).origin), ("3", "launcher"));
        assert_eq!((of(WAKE).value.as_str(), of(WAKE).origin), ("auto", "default"));
    }
}
