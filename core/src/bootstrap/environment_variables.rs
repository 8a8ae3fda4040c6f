//! The one table of the variables of the environment that Tasuki reads.

use super::did_you_mean::nearest;
use std::collections::BTreeMap;

/// All our variables begin so; one that is not in the table is a slip of the pen.
pub const PREFIX: &str = "TASUKI_";

/// How much a rank says on standard error.
pub const LOG: &str = "TASUKI_LOG";
/// System facilities to do without.
pub const DENY: &str = "TASUKI_DISABLE";
/// How sleepers are found.
pub const WAKE: &str = "TASUKI_WAKE";
/// How memory is reached that its owner merely owns.
pub const OWN_MEMORY: &str = "TASUKI_OWN_MEMORY";
/// Whether lines of peers are written by plain stores where they can be.
pub const DIRECT: &str = "TASUKI_DIRECT_SIGNALS";
/// The file of what was measured on machines.
pub const TUNE: &str = "TASUKI_TUNE_FILE";
/// What that file says of this machine.
pub const TUNED: &str = "TASUKI_DIRECT_BYTES_MIN";
/// What things cost on this machine, of that file.
pub const COSTS: &str = "TASUKI_COST_PARAMETERS";
/// Algorithms that are taken, whatever the model says.
pub const COLLECTIVES: &str = "TASUKI_COLLECTIVES";
/// Which helpers there are.
pub const HELPER: &str = "TASUKI_HELPER";
/// The file for what happened on the ranks.
pub const TRACE: &str = "TASUKI_TRACE";
/// How much of that each rank keeps.
pub const TRACE_EVENTS: &str = "TASUKI_TRACE_EVENTS";
/// This process's rank.
pub const RANK: &str = "TASUKI_RANK";
/// Ranks of the job.
pub const SIZE: &str = "TASUKI_SIZE";
/// Where the launcher listens.
pub const JOB: &str = "TASUKI_JOB_SOCKET";
/// What shows that a process belongs to the job.
pub const KEY: &str = "TASUKI_KEY";
/// Ranks that this process runs as threads.
pub const THREADS: &str = "TASUKI_THREADS";
/// What carries the bytes.
pub const FABRIC: &str = "TASUKI_FABRIC";
/// Columns of the terminal that a rank's standard error goes to.
pub const TERMINAL: &str = "TASUKI_TERMINAL";
/// Seed of a simulated run.
pub const SEED: &str = "TASUKI_SEED";

/// Who sets a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetBy {
    /// Whoever runs the program.
    User,
    /// `tasuki run`, for the processes that it starts.
    Launcher,
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The value that it has when it is not set, or set to nothing.
    pub default: &'static str,
    /// The values that it can have.
    pub allowed: &'static str,
    /// What it does.
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
    user(LOG, "warn", "error, warn, info, debug", "how much is said on standard error"),
    user(
        TUNE,
        "",
        "a file",
        "of `tasuki bench --tune`, if not in $XDG_CONFIG_HOME/tasuki/tune.json; for `tasuki run`",
    ),
    user(
        HELPER,
        "auto",
        "off, node, rank, auto; perhaps :PROCESSOR",
        "which threads move work on while ranks compute",
    ),
    user(
        COLLECTIVES,
        "",
        "OPERATION=ALGORITHM,.. as in bcast=binomial",
        "algorithms that plans take where they fit",
    ),
    user(
        TRACE,
        "",
        "a file",
        "as `tasuki run --trace`; without `tasuki run` each rank leaves a part beside it, for `tasuki trace join`",
    ),
    user(
        TRACE_EVENTS,
        "65536",
        "1 to 16777216",
        "how many events each rank keeps, the last ones, 136 bytes each",
    ),
    user(WAKE, "auto", "auto, fence, membarrier", "test switch: how sleeping ranks are found"),
    user(
        OWN_MEMORY,
        "auto",
        "auto, request",
        "test switch: reach memory outside the job by asking its owner",
    ),
    user(DIRECT, "on", "on, off", "test switch: off writes signal lines through the fabric"),
    user(DENY, "", "membarrier, pidfd, process_vm", "test switch: do without these system facilities"),
    launcher(RANK, "a number below TASUKI_SIZE", "this process's rank"),
    launcher(SIZE, "a number from 1", "how many ranks the job has"),
    launcher(JOB, "a socket's name", "where the launcher listens"),
    launcher(KEY, "32 hexadecimal digits", "shows that a process belongs to the job"),
    launcher(TUNED, "a number of bytes", "receives that long are written into by their sender"),
    launcher(COSTS, "NAME=NUMBER,..", "what plans choose their algorithms by"),
    launcher(TERMINAL, "a number of columns", "standard error goes to a terminal that wide"),
    launcher(THREADS, "a number from 1", "run that many ranks as threads of this process"),
    launcher(FABRIC, "shm, sim", "what carries the bytes"),
    launcher(SEED, "a number", "which run of the simulation, with TASUKI_FABRIC=sim"),
];

/// The variable of that name.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

/// The variables that a process was given, or is going to be given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is not Unicode shows replacement characters, and so fails to parse.
    pub fn current() -> Environment {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Environment(std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect())
    }

    /// Sets one, as `--env` does.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of one that is set, and not to nothing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A remark on each variable that looks like ours and is not: with the nearest one that is.
    pub fn unknown(&self) -> Vec<String> {
        let names = self.0.keys().filter(|name| name.starts_with(PREFIX) && find(name).is_none());
        names.map(|name| remark(name)).collect()
    }

    /// The whole table with its present values.
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

fn remark(name: &str) -> String {
    match nearest(name, VARIABLES.iter().map(|variable| variable.name)) {
        Some(right) => format!("{name} is no variable of Tasuki; did you mean {right}?"),
        None => format!("{name} is no variable of Tasuki (`tasuki info --env` lists them)"),
    }
}

/// A variable with the value it has here.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub variable: &'static Variable,
    /// Its value.
    pub value: String,
    /// Where that comes from: `default`, `environment`, `launcher`.
    pub origin: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_name_once_and_only_ours() {
        for (at, variable) in VARIABLES.iter().enumerate() {
            assert!(variable.name.starts_with(PREFIX) && !variable.meaning.is_empty());
            assert!(VARIABLES[..at].iter().all(|other| other.name != variable.name));
        }
    }

    #[test]
    fn unknown_names_are_told_with_the_nearest() {
        let environment: Environment =
            [("TASUKI_LGO", "info"), ("TASUKI_ZZZZZZZ", "1"), ("PATH", ""), (LOG, "info")]
                .into_iter()
                .collect();
        assert_eq!(
            environment.unknown(),
            [
                "TASUKI_LGO is no variable of Tasuki; did you mean TASUKI_LOG?",
                "TASUKI_ZZZZZZZ is no variable of Tasuki (`tasuki info --env` lists them)",
            ]
        );
    }

    #[test]
    fn rows_say_where_values_come_from() {
        let environment: Environment = [(LOG, "debug"), (RANK, "3"), (WAKE, "")].into_iter().collect();
        let rows = environment.rows();
        let of = |name: &str| rows.iter().find(|row| row.variable.name == name).unwrap();
        assert_eq!((of(LOG).value.as_str(), of(LOG).origin), ("debug", "environment"));
        assert_eq!((of(RANK).value.as_str(), of(RANK).origin), ("3", "launcher"));
        assert_eq!((of(WAKE).value.as_str(), of(WAKE).origin), ("auto", "default"));
    }
}
