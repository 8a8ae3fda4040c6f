//! The environment of the ranks: the launcher's, the variables of `--env`, and those that identify
//! job and rank.

use crate::run::options::{Options, Way};
use std::ffi::{OsStr, OsString};
use tasuki_bench::tuning::file::Tuning;
use tasuki_command::misuse;
use tasuki_core::bootstrap::Settings;
use tasuki_core::bootstrap::environment_variables::{self as names, Environment, SetBy, VARIABLES};
use tasuki_core::bootstrap::settings::ServerAddress;
use tasuki_schedule::Forced;

/// The common part of the ranks' environment, and its settings.
pub(crate) struct ForRanks {
    base: Vec<(OsString, OsString)>,
    /// The users' variables, as the ranks will read them.
    pub(crate) settings: Settings,
    /// The tuned values of this machine.
    pub(crate) tuning: Tuning,
    /// Warnings about unknown variables whose names begin like Tasuki's.
    pub(crate) remarks: Vec<String>,
}

impl ForRanks {
    /// Checks all variables once, before the first rank is started.
    pub(crate) fn new(added: &[(String, String)]) -> anyhow::Result<ForRanks> {
        if let Some((name, _)) = added.iter().find(|(name, _)| is_the_launcher_s(name)) {
            return Err(misuse(format!("--env {name}: this variable is set by `tasuki run` itself")));
        }
        // If this launcher is itself a rank of a job, that job's trace is not for it to write.
        let is_within = std::env::var_os(names::JOB_SOCKET).is_some();
        let mut base: Vec<_> = std::env::vars_os()
            .filter(|(name, _)| !(is_within && name == names::TRACE))
            .filter(|(name, _)| name.to_str().is_none_or(|name| !is_the_launcher_s(name)))
            .filter(|(name, _)| added.iter().all(|(other, _)| name != other.as_str()))
            .collect();
        base.extend(added.iter().map(|(name, value)| (name.into(), value.into())));
        let shown = base.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
        let mut environment: Environment = shown.collect();
        let mut remarks = environment.unknown();
        let tuning = Tuning::of(&environment)?;
        remarks.extend(tuning.remark());
        // A foreign launcher may have started this process several times: the ranks are this
        // launcher's.
        environment.set(names::THREADS, "1");
        let settings = Settings::parse(&environment).map_err(|error| misuse(error.to_string()))?;
        if let Err(why) = settings.collectives.parse::<Forced>() {
            return Err(misuse(format!("{}={}: {why}", names::COLLECTIVES, settings.collectives)));
        }
        Ok(ForRanks { base, settings, tuning, remarks })
    }

    /// The variable PATH as ranks will see it.
    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.base.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())
    }

    /// The environment of process `index`, whose standard error goes to a terminal of that number
    /// of columns, if it goes to one.
    pub(crate) fn of(
        &self,
        index: usize,
        options: &Options,
        server: &ServerAddress,
        columns: Option<u16>,
    ) -> Vec<(OsString, OsString)> {
        let mut all = self.base.clone();
        let mut set = |name: &str, value: String| all.push((name.into(), value.into()));
        set(names::JOB_SOCKET, server.socket.clone());
        set(names::KEY, server.key.to_string());
        self.tuning.variables().into_iter().for_each(|(name, value)| set(name, value));
        if let Some(columns) = columns {
            set(names::TERMINAL, columns.to_string());
        }
        match options.way {
            Way::Processes => {
                set(names::RANK, index.to_string());
                set(names::SIZE, options.ranks.to_string());
            }
            Way::Threads => set(names::THREADS, options.ranks.to_string()),
            Way::Simulated { seed } => {
                set(names::THREADS, options.ranks.to_string());
                set(names::FABRIC, "sim".into());
                set(names::SEED, seed.to_string());
            }
        }
        all
    }
}

fn is_the_launcher_s(name: &str) -> bool {
    VARIABLES.iter().any(|variable| variable.name == name && variable.set_by == SetBy::Launcher)
}
