//! What the environment asks for, as types: read once when a rank starts.

use super::environment_variables::{self as names, Environment};
use super::foreign_launcher;
use super::helper_setting::Helper;
use crate::base::log::Level;
use crate::base::{Cause, Error, Rank, Result};
use crate::engine::park::WakeMode;
use crate::engine::trace::{EVENTS, EVENTS_MAX, TraceTo};
use crate::os::disabled_features::DisabledFeatures;
use std::fmt;

/// Ranks that a job can have: their numbers are 24 bits of an address.
pub const SIZE_MAX: usize = Rank::MAX.0 as usize;

/// Everything that variables decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How much is said on standard error.
    pub log: Level,
    /// System facilities to do without.
    pub denied: DisabledFeatures,
    /// How sleepers are found; `None` leaves it to what the machine can do.
    pub wake: Option<WakeMode>,
    /// Reach memory outside the job by asking its owner, also where the kernel would let us.
    pub own_memory_by_request: bool,
    /// Write lines of peers by plain stores where they can be.
    pub direct: bool,
    /// From how many bytes on receives in a program's own memory are written by the sender instead of staged.
    pub direct_from: u64,
    /// What things cost here, as those read it who choose algorithms; empty: the built-in values.
    pub costs: String,
    /// Algorithms that are taken, as those read it who choose.
    pub collectives: String,
    /// Which threads beside the program's own move work on.
    pub helper: Helper,
    /// Where ranks write what happened on them, if anywhere.
    pub trace: Option<TraceTo>,
    /// How this process is to become one rank or several.
    pub start: Start,
}

/// How a process becomes one rank or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// A job of one: nobody started it as part of something.
    Alone,
    /// One rank of several, started by `tasuki run`.
    LauncherSettings(LauncherSettings),
    /// One rank of several, started by a launcher that speaks PMI-1: the `mpiexec` of MPICH or Intel MPI.
    Managed(Managed),
    /// All ranks are threads of this process.
    Threads {
        /// How many.
        ranks: usize,
        /// The launcher that wants to see the node state, if `tasuki run --threads` started it.
        door: Option<ServerAddress>,
    },
    /// All ranks are threads of this process, in simulated time.
    Simulated {
        /// How many.
        ranks: usize,
        /// Which run.
        seed: u64,
        /// The launcher that wants to see the node state, if `tasuki run --fabric sim` started it.
        door: Option<ServerAddress>,
    },
}

/// What `tasuki run` tells each rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LauncherSettings {
    /// Which rank this process is.
    pub rank: Rank,
    /// How many there are.
    pub size: usize,
    /// Where the launcher is.
    pub door: ServerAddress,
}

/// What a launcher that speaks PMI-1 tells each rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Managed {
    /// Which rank this process is.
    pub rank: Rank,
    /// How many there are.
    pub size: usize,
    /// The descriptor behind which its process manager is.
    pub descriptor: i32,
}

/// Where a launcher listens, and what it wants to be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAddress {
    /// Name of its socket in the abstract name space.
    pub socket: String,
    /// What shows that a process belongs to the job.
    pub key: Key,
}

/// A secret of one job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// Reads 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Key> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Key(number.to_be_bytes()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Key {
    /// Never shown: it would end up in somebody's log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Settings {
    /// Reads this process's environment. Unknown variables are said on standard error, unless a launcher has done
    /// so for the whole job.
    pub fn from_environment() -> Result<Settings> {
        let environment = Environment::current();
        let settings = Settings::parse(&environment)?;
        let others_say = matches!(&settings.start, Start::Managed(managed) if managed.rank != Rank(0));
        if environment.get(names::JOB).is_none() && !others_say {
            let log = crate::base::log::Log::new("environment", settings.log);
            environment.unknown().iter().for_each(|remark| log.say(Level::Warn, format_args!("{remark}")));
        }
        Ok(settings)
    }

    /// The same for a job inside this process, whoever started that: it is nobody's rank in it. Nothing of it is
    /// traced: there may be several in a process, and they would write one file.
    pub fn embedded() -> Result<Settings> {
        let settings = Settings::parse_with(&Environment::current(), |_| Ok(Start::Alone))?;
        Ok(Settings { trace: None, ..settings })
    }

    /// Reads an environment. A wrong value is an error that names the variable, the value, and what is allowed.
    pub fn parse(environment: &Environment) -> Result<Settings> {
        Settings::parse_with(environment, |from| from.start())
    }

    fn parse_with(
        environment: &Environment,
        start: impl FnOnce(&EnvironmentReader<'_>) -> Result<Start>,
    ) -> Result<Settings> {
        let from = EnvironmentReader(environment);
        Ok(Settings {
            log: from.read(names::LOG, Level::named)?.unwrap_or(Level::Warn),
            denied: from.read(names::DENY, |list| DisabledFeatures::parse(list).ok())?.unwrap_or_default(),
            wake: from.read(names::WAKE, wake_mode)?.flatten(),
            own_memory_by_request: from.choice(names::OWN_MEMORY, "request", "auto")?,
            direct: !from.choice(names::DIRECT, "off", "on")?,
            direct_from: from.read(names::TUNED, |text| text.parse().ok())?.unwrap_or(u64::MAX),
            costs: environment.get(names::COSTS).unwrap_or_default().into(),
            collectives: environment.get(names::COLLECTIVES).unwrap_or_default().into(),
            helper: from.read(names::HELPER, |text| text.parse().ok())?.unwrap_or_default(),
            trace: from.trace()?,
            start: start(&from)?,
        })
    }
}

fn wake_mode(word: &str) -> Option<Option<WakeMode>> {
    match word {
        "auto" => Some(None),
        "fence" => Some(Some(WakeMode::Fence)),
        "membarrier" => Some(Some(WakeMode::Membarrier)),
        _ => None,
    }
}

/// Reads single variables.
struct EnvironmentReader<'e>(&'e Environment);

impl EnvironmentReader<'_> {
    /// The variable's value as `parse` reads it; `None` if it is not set.
    fn read<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        parse(value).map(Some).ok_or_else(|| {
            let allowed = names::find(name).map_or("", |variable| variable.allowed);
            Error::argument(format!("{name}={value}: allowed is {allowed}"))
        })
    }

    /// Whether the variable says `special` and not `usual`.
    fn choice(&self, name: &str, special: &str, usual: &str) -> Result<bool> {
        let parse = |word: &str| (word == special || word == usual).then(|| word == special);
        Ok(self.read(name, parse)?.unwrap_or(false))
    }

    fn trace(&self) -> Result<Option<TraceTo>> {
        let count = |text: &str| text.parse().ok().filter(|events| (1..=EVENTS_MAX).contains(events));
        let events = self.read(names::TRACE_EVENTS, count)?.unwrap_or(EVENTS);
        Ok(self.0.get(names::TRACE).map(|file| TraceTo { file: file.into(), events }))
    }

    fn count(&self, name: &str) -> Result<Option<usize>> {
        self.read(name, |text| text.parse().ok().filter(|count| (1..=SIZE_MAX).contains(count)))
    }

    fn start(&self) -> Result<Start> {
        let simulated = self.choice(names::FABRIC, "sim", "shm")?;
        let seed = self.read(names::SEED, |text| text.parse::<u64>().ok())?;
        let ranks = self.count(names::THREADS)?;
        let launched = self.0.get(names::RANK).is_some() || self.0.get(names::SIZE).is_some();
        match (launched, ranks) {
            (true, Some(_)) => Err(half(names::RANK, names::THREADS, "stand for different ways to start")),
            (true, None) if simulated => {
                Err(half(names::RANK, names::FABRIC, "=sim needs all ranks in one process"))
            }
            (true, None) => self.launched().map(Start::LauncherSettings),
            (false, Some(ranks)) if simulated => {
                Ok(Start::Simulated { ranks, seed: seed.unwrap_or(0), door: self.door()? })
            }
            (false, Some(ranks)) => Ok(Start::Threads { ranks, door: self.door()? }),
            (false, None) if simulated => Err(half(names::FABRIC, names::THREADS, "says of how many ranks")),
            (false, None) if self.door()?.is_some() => {
                Err(half(names::JOB, names::RANK, "is set with it by `tasuki run`, and is missing"))
            }
            (false, None) => match foreign_launcher::managed(self.0)? {
                Some(managed) => Ok(Start::Managed(managed)),
                None => foreign_launcher::refuse(self.0).map(|()| Start::Alone),
            },
        }
    }

    fn launched(&self) -> Result<LauncherSettings> {
        let missing =
            |name| move || half(names::RANK, name, "is set with it by `tasuki run`, and is missing");
        let size = self.count(names::SIZE)?.ok_or_else(missing(names::SIZE))?;
        let below = |text: &str| text.parse().ok().filter(|rank| (*rank as usize) < size).map(Rank);
        let rank = self.read(names::RANK, below)?;
        let rank = rank.ok_or_else(|| {
            half(names::SIZE, names::RANK, "is set with it by `tasuki run`, and is missing")
        })?;
        let door = self.door()?.ok_or_else(missing(names::JOB))?;
        Ok(LauncherSettings { rank, size, door })
    }

    fn door(&self) -> Result<Option<ServerAddress>> {
        let key = self.read(names::KEY, Key::parse)?;
        match (self.0.get(names::JOB), key) {
            (Some(socket), Some(key)) => Ok(Some(ServerAddress { socket: socket.to_string(), key })),
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err(half(names::JOB, names::KEY, "is set with it by `tasuki run`, and is missing"))
            }
            (None, Some(_)) => {
                Err(half(names::KEY, names::JOB, "is set with it by `tasuki run`, and is missing"))
            }
        }
    }
}

/// Two variables that do not fit.
fn half(one: &str, other: &str, why: &str) -> Error {
    Cause::Join(format!(
        "{one} is set, but {other} {why}; to run the program as a job of one, unset the variables that \
         `tasuki info --env` shows as set by the launcher"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "00112233445566778899aabbccddeeff";

    fn parse(pairs: &[(&str, &str)]) -> Result<Settings> {
        Settings::parse(&pairs.iter().copied().collect())
    }

    fn fault(pairs: &[(&str, &str)]) -> String {
        parse(pairs).unwrap_err().to_string()
    }

    #[test]
    fn nothing_set_is_a_job_of_one_with_defaults() {
        let settings = parse(&[]).unwrap();
        assert_eq!(settings.start, Start::Alone);
        assert_eq!((settings.log, settings.wake, settings.direct), (Level::Warn, None, true));
        assert_eq!(parse(&[("TASUKI_LOG", ""), ("TASUKI_RANK", "")]).unwrap(), settings, "empty is unset");
    }

    #[test]
    fn values_are_read() {
        let settings = parse(&[
            ("TASUKI_LOG", "debug"),
            ("TASUKI_WAKE", "fence"),
            ("TASUKI_OWN_MEMORY", "request"),
            ("TASUKI_DIRECT_SIGNALS", "off"),
            ("TASUKI_DISABLE", "pidfd"),
            ("TASUKI_TRACE", "run.json"),
            ("TASUKI_TRACE_EVENTS", "77"),
        ])
        .unwrap();
        assert_eq!(settings.trace, Some(TraceTo { file: "run.json".into(), events: 77 }));
        assert_eq!((settings.log, settings.wake), (Level::Debug, Some(WakeMode::Fence)));
        assert!(settings.own_memory_by_request && !settings.direct && settings.denied.pidfd);
    }

    #[test]
    fn wrong_values_name_variable_value_and_what_is_allowed() {
        assert_eq!(fault(&[("TASUKI_LOG", "loud")]), "TASUKI_LOG=loud: allowed is error, warn, info, debug");
        for name in
            ["TASUKI_WAKE", "TASUKI_OWN_MEMORY", "TASUKI_DIRECT_SIGNALS", "TASUKI_DISABLE", "TASUKI_FABRIC"]
        {
            assert!(fault(&[(name, "nonsense")]).starts_with(&format!("{name}=nonsense: allowed is ")));
        }
        for value in ["0", "-1", "16777217", "two"] {
            assert!(fault(&[("TASUKI_THREADS", value)]).contains(value));
            assert!(fault(&[("TASUKI_TRACE_EVENTS", value)]).contains(value));
        }
    }

    #[test]
    fn the_launcher_s_variables_come_together() {
        let all = [
            ("TASUKI_RANK", "1"),
            ("TASUKI_SIZE", "4"),
            ("TASUKI_JOB_SOCKET", "tasuki-0-ab"),
            ("TASUKI_KEY", KEY),
        ];
        let Start::LauncherSettings(launched) = parse(&all).unwrap().start else { panic!("not launched") };
        assert_eq!(
            (launched.rank, launched.size, launched.door.socket.as_str()),
            (Rank(1), 4, "tasuki-0-ab")
        );
        assert_eq!(launched.door.key.to_string(), KEY);
        for without in 0..all.len() {
            let mut some = all.to_vec();
            let (missing, _) = some.remove(without);
            assert!(fault(&some).contains(missing), "{missing}: {}", fault(&some));
        }
        assert!(fault(&[&all[..], &[("TASUKI_THREADS", "2")]].concat()).contains("TASUKI_THREADS"));
        assert!(fault(&[&all[..], &[("TASUKI_FABRIC", "sim")]].concat()).contains("TASUKI_FABRIC"));
        let beyond = [&[("TASUKI_RANK", "4")], &all[1..]].concat();
        assert!(fault(&beyond).contains("TASUKI_RANK=4"));
    }

    #[test]
    fn threads_and_simulation() {
        assert_eq!(parse(&[("TASUKI_THREADS", "3")]).unwrap().start, Start::Threads { ranks: 3, door: None });
        let sim = [("TASUKI_THREADS", "3"), ("TASUKI_FABRIC", "sim"), ("TASUKI_SEED", "7")];
        assert_eq!(parse(&sim).unwrap().start, Start::Simulated { ranks: 3, seed: 7, door: None });
        assert!(fault(&sim[1..]).contains("TASUKI_THREADS"));
    }

    #[test]
    fn a_key_is_32_digits_and_does_not_show() {
        assert!(Key::parse("+0112233445566778899aabbccddeeff").is_none() && Key::parse("12").is_none());
        assert_eq!(format!("{:?}", Key::parse(KEY).unwrap()), "Key");
    }
}
