//! The settings of a rank, parsed from the environment once when it starts.

use super::environment_variables::{self as names, Environment};
use super::foreign_launcher;
use super::helper_setting::Helper;
use crate::base::log::Level;
use crate::base::{Cause, Error, Rank, Result};
use crate::engine::trace::{EVENTS, EVENTS_MAX, TraceTo};
use crate::node::park::WakeMode;
use crate::os::disabled_features::DisabledFeatures;
use std::fmt;
use std::time::Duration;

/// The most ranks of a job: a global address has 24 bits for the rank.
pub const SIZE_MAX: usize = Rank::MAX.0;

/// All settings that environment variables decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The log level on standard error.
    pub log: Level,
    /// System features that must not be used.
    pub disabled: DisabledFeatures,
    /// How writers detect sleeping ranks; `None`: the best mode that the machine allows.
    pub wake: Option<WakeMode>,
    /// True: access memory outside the job by requests to its owner, even if the kernel allows copies.
    pub own_memory_by_request: bool,
    /// True: write signal lines of peers by plain stores if they are mapped.
    pub direct: bool,
    /// The least bytes of a receive in the program's own memory that its sender writes directly, not through a ring.
    pub direct_from: u64,
    /// Cost parameters in the form that the choice of algorithms parses; empty: the built-in values.
    pub costs: String,
    /// Algorithms that collectives must use, in the form that the choice of algorithms parses.
    pub collectives: String,
    /// The helper threads.
    pub helper: Helper,
    /// A collective call that fails ends the job.
    pub abort_on_failure: bool,
    /// The time limit of calls that have no other.
    pub call_timeout: Option<Duration>,
    /// The capacity of the send buffer in bytes.
    pub send_buffer: Option<u64>,
    /// The size of the any-source queues.
    pub any_source: AnySourceSize,
    /// The trace file, if ranks write one.
    pub trace: Option<TraceTo>,
    /// How this process becomes one rank or several.
    pub start: Start,
}

/// The size of a rank's any-source queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnySourceSize {
    /// The number of messages that it holds: a power of two.
    pub slots: u32,
    /// Bytes of the longest message that a buffer of it holds: a multiple of 8.
    pub bytes_per_slot: u32,
}

impl AnySourceSize {
    /// The largest number of messages of a queue.
    pub const SLOTS_MAX: u32 = 1 << 16;
    /// The most bytes of all buffers of a queue.
    pub const BYTES_MAX: u64 = 8 << 20;

    /// Parses `SLOTSxBYTES`. The number of slots is rounded up to a power of two, that of bytes to a multiple of 8.
    fn parse(text: &str) -> Option<AnySourceSize> {
        let (slots, bytes) = text.split_once('x')?;
        let slots = slots.parse().ok().filter(|slots| (1..=AnySourceSize::SLOTS_MAX).contains(slots))?;
        let bytes = bytes.parse::<u32>().ok()?.checked_next_multiple_of(8)?;
        let size = AnySourceSize { slots: slots.next_power_of_two(), bytes_per_slot: bytes };
        (u64::from(size.slots) * u64::from(bytes) <= AnySourceSize::BYTES_MAX).then_some(size)
    }
}

impl Default for AnySourceSize {
    fn default() -> AnySourceSize {
        AnySourceSize { slots: 64, bytes_per_slot: 256 }
    }
}

/// How a process becomes one rank or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// A job of one: no launcher started it.
    Alone,
    /// One rank of several, started by `tasuki run`.
    Launched(LauncherSettings),
    /// One rank of several, started by a launcher that speaks PMI-1: the `mpiexec` of MPICH or Intel MPI.
    Managed(Managed),
    /// All ranks are threads of this process.
    Threads {
        /// The number of ranks.
        ranks: usize,
        /// The launcher to send the node state to, if `tasuki run --threads` started the process.
        server: Option<ServerAddress>,
    },
    /// All ranks are threads of this process, in simulated time.
    Simulated {
        /// The number of ranks.
        ranks: usize,
        /// The seed of the run.
        seed: u64,
        /// The launcher to send the node state to, if `tasuki run --fabric sim` started the process.
        server: Option<ServerAddress>,
    },
}

/// The settings of a rank that `tasuki run` started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LauncherSettings {
    /// This process's rank.
    pub rank: Rank,
    /// The number of ranks.
    pub size: usize,
    /// The launcher's rendezvous server.
    pub server: ServerAddress,
}

/// The settings of a rank that a launcher which speaks PMI-1 started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Managed {
    /// This process's rank.
    pub rank: Rank,
    /// The number of ranks.
    pub size: usize,
    /// The descriptor of the connection to the process manager.
    pub descriptor: i32,
}

/// The address of a rendezvous server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerAddress {
    /// The name of its socket in the abstract namespace.
    pub socket: String,
    /// The job's key, which a process must show.
    pub key: Key,
}

/// The secret of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// Parses 32 hexadecimal digits.
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
    /// Does not print the key, so that it does not end up in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Settings {
    /// Reads this process's environment. Warns on standard error of unknown variables, unless a launcher
    /// has done so for the whole job, and of a job of one that may be one of several copies.
    pub fn from_environment() -> Result<Settings> {
        let environment = Environment::current();
        let settings = Settings::parse(&environment)?;
        let another_warns = matches!(&settings.start, Start::Managed(managed) if managed.rank != Rank(0));
        if environment.get(names::JOB_SOCKET).is_none() && !another_warns {
            let log = crate::base::log::Log::new("environment", settings.log);
            let copy = foreign_launcher::one_of_copies(&environment);
            let copy = copy.filter(|_| settings.start == Start::Alone);
            for text in environment.unknown().into_iter().chain(copy) {
                log.say(Level::Warn, format_args!("{text}"));
            }
        }
        Ok(settings)
    }

    /// Reads the settings for a job inside this process, whatever started the process. Such a job
    /// is not traced: a process may have several, and they would write to one file.
    pub fn embedded() -> Result<Settings> {
        let settings = Settings::parse_with(&Environment::current(), |_| Ok(Start::Alone))?;
        Ok(Settings { trace: None, ..settings })
    }

    /// Parses an environment. The error of a wrong value names the variable, its value, and the allowed values.
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
            disabled: from
                .read(names::DISABLE, |list| DisabledFeatures::parse(list).ok())?
                .unwrap_or_default(),
            wake: from.read(names::WAKE, wake_mode)?.flatten(),
            own_memory_by_request: from.choice(names::OWN_MEMORY, "request", "auto")?,
            direct: !from.choice(names::DIRECT_SIGNALS, "off", "on")?,
            direct_from: from.read(names::DIRECT_BYTES_MIN, |text| text.parse().ok())?.unwrap_or(u64::MAX),
            costs: environment.get(names::COST_PARAMETERS).unwrap_or_default().into(),
            collectives: environment.get(names::COLLECTIVES).unwrap_or_default().into(),
            helper: from.read(names::HELPER, |text| text.parse().ok())?.unwrap_or_default(),
            abort_on_failure: from.choice(names::ABORT_ON_FAILURE, "on", "off")?,
            call_timeout: from.read(names::CALL_TIMEOUT, positive_time)?,
            send_buffer: from.read(names::SEND_BUFFER, |text| text.parse().ok())?,
            any_source: from.read(names::ANY_SOURCE, AnySourceSize::parse)?.unwrap_or_default(),
            trace: from.trace()?,
            start: start(&from)?,
        })
    }
}

/// Parses a time: `90`, `90s`, `1.5m`, `500ms`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let seconds = match &text[at..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("{unit} is not a unit of time: write for example 500ms, 10s, 5m or 1h")),
    };
    let number: f64 = text[..at].trim().parse().map_err(|_| "give a time, as in 90, 90s or 1.5m")?;
    Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| "the time must be finite, and must not be negative".to_string())
}

fn positive_time(text: &str) -> Option<Duration> {
    parse_time(text).ok().filter(|time| !time.is_zero())
}

fn wake_mode(word: &str) -> Option<Option<WakeMode>> {
    match word {
        "auto" => Some(None),
        "fence" => Some(Some(WakeMode::Fence)),
        "membarrier" => Some(Some(WakeMode::Membarrier)),
        _ => None,
    }
}

/// Parses single variables.
struct EnvironmentReader<'e>(&'e Environment);

impl EnvironmentReader<'_> {
    /// Returns the variable's value, parsed by `parse`; `None` if it is not set.
    fn read<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        parse(value).map(Some).ok_or_else(|| {
            let allowed = names::find(name).map_or("", |variable| variable.allowed);
            Error::argument(format!("{name}={value}: allowed is {allowed}"))
        })
    }

    /// Returns true if the variable is `special`, false if it is `default` or not set.
    fn choice(&self, name: &str, special: &str, default: &str) -> Result<bool> {
        let parse = |word: &str| (word == special || word == default).then(|| word == special);
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
        let by_launcher = [names::RANK, names::SIZE].into_iter().find(|name| self.0.get(name).is_some());
        match (by_launcher, ranks) {
            (Some(name), Some(_)) => {
                Err(conflict(name, names::THREADS, "is set, too, for another way to start"))
            }
            (Some(name), None) if simulated => {
                Err(conflict(name, names::FABRIC, "is `sim`, which needs all ranks in one process"))
            }
            (Some(_), None) => self.launched().map(Start::Launched),
            (None, Some(ranks)) if simulated => {
                Ok(Start::Simulated { ranks, seed: seed.unwrap_or(0), server: self.server()? })
            }
            (None, Some(ranks)) => Ok(Start::Threads { ranks, server: self.server()? }),
            (None, None) if simulated => {
                Err(conflict(names::FABRIC, names::THREADS, "is missing: it gives the number of ranks"))
            }
            (None, None) if self.server()?.is_some() => {
                Err(conflict(names::JOB_SOCKET, names::RANK, MISSING))
            }
            (None, None) => match foreign_launcher::managed(self.0)? {
                Some(managed) => Ok(Start::Managed(managed)),
                None => foreign_launcher::refuse(self.0).map(|()| Start::Alone),
            },
        }
    }

    fn launched(&self) -> Result<LauncherSettings> {
        let missing = |name| move || conflict(names::RANK, name, MISSING);
        let size = self.count(names::SIZE)?.ok_or_else(missing(names::SIZE))?;
        let below = |text: &str| text.parse().ok().filter(|rank| *rank < size).map(Rank);
        let rank = self.read(names::RANK, below)?;
        let rank = rank.ok_or_else(|| conflict(names::SIZE, names::RANK, MISSING))?;
        let server = self.server()?.ok_or_else(missing(names::JOB_SOCKET))?;
        Ok(LauncherSettings { rank, size, server })
    }

    fn server(&self) -> Result<Option<ServerAddress>> {
        let key = self.read(names::KEY, Key::parse)?;
        match (self.0.get(names::JOB_SOCKET), key) {
            (Some(socket), Some(key)) => Ok(Some(ServerAddress { socket: socket.to_string(), key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(conflict(names::JOB_SOCKET, names::KEY, MISSING)),
            (None, Some(_)) => Err(conflict(names::KEY, names::JOB_SOCKET, MISSING)),
        }
    }
}

/// Why a variable is needed that is not set.
const MISSING: &str = "is missing: `tasuki run` sets both";

/// Makes the error of two variables that do not fit together.
fn conflict(one: &str, other: &str, why: &str) -> Error {
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
        assert_eq!(
            parse(&[("TASUKI_LOG", ""), ("TASUKI_RANK", "")]).unwrap(),
            settings,
            "an empty variable counts as not set"
        );
    }

    #[test]
    fn values_are_parsed() {
        let settings = parse(&[
            ("TASUKI_LOG", "debug"),
            ("TASUKI_WAKE", "fence"),
            ("TASUKI_OWN_MEMORY", "request"),
            ("TASUKI_DIRECT_SIGNALS", "off"),
            ("TASUKI_DISABLE", "pidfd"),
            ("TASUKI_TRACE", "run.json"),
            ("TASUKI_CALL_TIMEOUT", "90"), // seconds, as 1.5m
            ("TASUKI_TRACE_EVENTS", "77"),
            ("TASUKI_ANY_SOURCE", "5x9"),
        ])
        .unwrap();
        assert_eq!(settings.trace, Some(TraceTo { file: "run.json".into(), events: 77 }));
        assert_eq!(settings.call_timeout, Some(Duration::from_secs(90)));
        assert_eq!(settings.any_source, AnySourceSize { slots: 8, bytes_per_slot: 16 });
        assert_eq!((settings.log, settings.wake), (Level::Debug, Some(WakeMode::Fence)));
        assert!(settings.own_memory_by_request && !settings.direct && settings.disabled.pidfd);
    }

    #[test]
    fn errors_of_wrong_values_name_the_variable_and_the_allowed_values() {
        assert_eq!(fault(&[("TASUKI_LOG", "loud")]), "TASUKI_LOG=loud: allowed is error, warn, info, debug");
        for name in
            ["TASUKI_WAKE", "TASUKI_OWN_MEMORY", "TASUKI_DIRECT_SIGNALS", "TASUKI_DISABLE", "TASUKI_FABRIC"]
        {
            assert!(fault(&[(name, "nonsense")]).starts_with(&format!("{name}=nonsense: allowed is ")));
        }
        for value in ["0", "0s", "-1", "soon", "5 days", "inf"] {
            assert!(fault(&[("TASUKI_CALL_TIMEOUT", value)]).contains(value));
        }
        for value in ["64", "0x64", "65537x8", "x", "8x-1", "1024x9000"] {
            assert!(fault(&[("TASUKI_ANY_SOURCE", value)]).contains(value));
        }
        for value in ["0", "-1", "16777217", "two"] {
            assert!(fault(&[("TASUKI_THREADS", value)]).contains(value));
            assert!(fault(&[("TASUKI_TRACE_EVENTS", value)]).contains(value));
        }
    }

    #[test]
    fn the_launcher_must_set_all_its_variables() {
        let all = [
            ("TASUKI_RANK", "1"),
            ("TASUKI_SIZE", "4"),
            ("TASUKI_JOB_SOCKET", "tasuki-0-ab"),
            ("TASUKI_KEY", KEY),
        ];
        let Start::Launched(launched) = parse(&all).unwrap().start else { panic!("not launched") };
        assert_eq!(
            (launched.rank, launched.size, launched.server.socket.as_str()),
            (Rank(1), 4, "tasuki-0-ab")
        );
        assert_eq!(launched.server.key.to_string(), KEY);
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
    fn threads_and_simulation_are_parsed() {
        assert_eq!(
            parse(&[("TASUKI_THREADS", "3")]).unwrap().start,
            Start::Threads { ranks: 3, server: None }
        );
        let sim = [("TASUKI_THREADS", "3"), ("TASUKI_FABRIC", "sim"), ("TASUKI_SEED", "7")];
        assert_eq!(parse(&sim).unwrap().start, Start::Simulated { ranks: 3, seed: 7, server: None });
        assert!(fault(&sim[1..]).contains("TASUKI_THREADS"));
    }

    #[test]
    fn a_key_has_32_digits_and_is_not_printed() {
        assert!(Key::parse("+0112233445566778899aabbccddeeff").is_none() && Key::parse("12").is_none());
        assert_eq!(format!("{:?}", Key::parse(KEY).unwrap()), "Key");
    }
}
