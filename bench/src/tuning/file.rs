//! Values that were measured on machines: a file of the user, which `tasuki bench --tune` writes and `tasuki run` reads
//! and passes to all ranks. Without the file, the built-in values are used.

use crate::machine::{kernel, processor};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use tasuki_command::misuse;
use tasuki_core::bootstrap::environment_variables::{self as names, Environment};
use tasuki_schedule::CostParameters;

/// The file: one entry for each processor model and kernel.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Machines {
    machines: Vec<MachineEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct MachineEntry {
    processor: String,
    kernel: String,
    #[serde(flatten)]
    values: Values,
}

/// What was measured on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Values {
    /// The size in bytes of the shortest message that is transferred directly if its receive buffer is memory that only
    /// the receiver's program owns: the sender writes into that buffer, with the kernel's help. Shorter messages go
    /// through a ring in memory that both ranks have mapped. Absent: no message is transferred directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_from_bytes: Option<u64>,
    /// The costs with which plans choose their algorithms. Absent: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub costs: Option<CostParameters>,
}

/// Costs as an object of numbers by name.
mod by_name {
    use super::{BTreeMap, CostParameters};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(costs: &Option<CostParameters>, to: S) -> Result<S::Ok, S::Error> {
        costs.map(|costs| costs.named().into_iter().collect::<BTreeMap<_, _>>()).serialize(to)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<CostParameters>, D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(from)?;
        let costs =
            named.iter().try_fold(CostParameters::default(), |costs, (name, value)| costs.with(name, *value));
        costs.map(Some).map_err(D::Error::custom)
    }
}

/// The environment variable that names the file.
pub const VARIABLE: &str = names::TUNE_FILE;

/// The values that jobs on this machine use.
#[derive(Clone, Debug)]
pub enum Tuning {
    /// The built-in values: nothing was measured on this machine.
    BuiltIn,
    /// The file has an entry for this machine.
    Measured {
        /// The file that contains the values.
        file: PathBuf,
        /// The values.
        values: Values,
    },
    /// There may be a file in the usual place, but it cannot be used.
    Unusable {
        /// The reason.
        why: String,
    },
}

impl Tuning {
    /// Returns the values that this process's environment selects.
    pub fn here() -> anyhow::Result<Tuning> {
        Tuning::of(&Environment::current())
    }

    /// Returns the values that an environment selects. A file that a variable names must exist and be valid. The file
    /// in the usual place need not be: the user may not know that it exists, so a fault in it does not end the command.
    pub fn of(environment: &Environment) -> anyhow::Result<Tuning> {
        if let Some(file) = environment.get(names::TUNE_FILE).map(PathBuf::from) {
            let remedy = "name a file that `tasuki bench --tune` wrote, or unset the variable";
            let text = text_of(&file).map_err(|error| {
                misuse(format!("{}={}: {error}; {remedy}", names::TUNE_FILE, file.display()))
            })?;
            return Ok(Tuning::found(file.clone(), entry(&file, &text)?));
        }
        let Some(file) = usual(environment) else { return Ok(Tuning::BuiltIn) };
        let unusable = |why: String| Ok(Tuning::Unusable { why });
        match text_of(&file) {
            Ok(text) => match entry(&file, &text) {
                Ok(values) => Ok(Tuning::found(file, values)),
                Err(error) => unusable(format!("{error:#}")),
            },
            // HOME=/dev/null is how some systems say that a user has none.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Tuning::BuiltIn)
            }
            Err(error) => unusable(format!("{}: {error}", file.display())),
        }
    }

    fn found(file: PathBuf, values: Option<Values>) -> Tuning {
        values.map_or(Tuning::BuiltIn, |values| Tuning::Measured { file, values })
    }

    /// Returns a remark if there may be a file and it is not used.
    pub fn remark(&self) -> Option<String> {
        match self {
            Tuning::Unusable { why } => {
                Some(format!("{self} are used, because those measured here cannot be read: {why}"))
            }
            _ => None,
        }
    }

    /// Returns the environment variables that tell ranks what was measured, with their values.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let Tuning::Measured { values, .. } = self else { return Vec::new() };
        let direct = (names::DIRECT_BYTES_MIN, values.direct_from_bytes.unwrap_or(u64::MAX).to_string());
        let costs = values.costs.map(|costs| (names::COST_PARAMETERS, costs.to_string()));
        std::iter::once(direct).chain(costs).collect()
    }

    /// Returns the costs that were measured on this machine, if any.
    pub fn costs(&self) -> Option<CostParameters> {
        match self {
            Tuning::BuiltIn | Tuning::Unusable { .. } => None,
            Tuning::Measured { values, .. } => values.costs,
        }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tuning::BuiltIn | Tuning::Unusable { .. } => write!(f, "built-in values"),
            Tuning::Measured { file, .. } => write!(f, "measured values of {}", file.display()),
        }
    }
}

/// Returns the path of the file if no variable names another.
fn usual(environment: &Environment) -> Option<PathBuf> {
    let folder = match environment.get("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(environment.get("HOME")?).join(".config"),
    };
    Some(folder.join("tasuki").join("tune.json"))
}

/// Returns the entry of this machine in the file.
fn entry(file: &Path, text: &str) -> anyhow::Result<Option<Values>> {
    let (processor, kernel) = (processor(), kernel());
    let is_this = |entry: &&MachineEntry| entry.processor == processor && entry.kernel == kernel;
    Ok(parse(file, text)?.machines.iter().find(is_this).map(|entry| entry.values))
}

fn parse(file: &Path, text: &str) -> anyhow::Result<Machines> {
    serde_json::from_str(text).map_err(|error| {
        let remedy = "write it anew with `tasuki bench --tune`, or remove it";
        misuse(format!("{}: {error}; {remedy}", file.display()))
    })
}

/// Writes what was measured on this machine into the file that the environment selects, and keeps the file's entries
/// for other machines. Returns the path of the file.
pub fn write(environment: &Environment, values: Values) -> anyhow::Result<PathBuf> {
    let nowhere = || format!("neither {} nor HOME says where to write it", names::TUNE_FILE);
    let named = environment.get(names::TUNE_FILE).map(PathBuf::from);
    let file = named.or_else(|| usual(environment)).with_context(nowhere)?;
    write_to(&file, values)?;
    Ok(file)
}

/// Does what [`write()`] does, with this process's environment.
pub fn write_here(values: Values) -> anyhow::Result<PathBuf> {
    write(&Environment::current(), values)
}

/// Writes what was measured into this file, as [`write()`] does.
pub fn write_to(file: &Path, values: Values) -> anyhow::Result<()> {
    let mut all = match text_of(file) {
        Ok(text) => parse(file, &text)?,
        Err(_) => Machines::default(),
    };
    let (processor, kernel) = (processor(), kernel());
    all.machines.retain(|entry| entry.processor != processor || entry.kernel != kernel);
    all.machines.push(MachineEntry { processor, kernel, values });
    let failed = || format!("{} could not be written", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    let text = serde_json::to_string_pretty(&all)? + "\n";
    // The file is replaced as a whole, because a launcher may be reading it.
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // the error that counts is that of the write
    }
    written.with_context(failed)
}

/// Returns the text of a file. A file that is larger than any that this module writes is an error and is not read to
/// its end, because a device may have no end.
fn text_of(file: &Path) -> std::io::Result<String> {
    const MOST: u64 = 1 << 20;
    let mut text = String::new();
    if fs::File::open(file)?.take(MOST + 1).read_to_string(&mut text)? as u64 > MOST {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "it has more than 1 MiB"));
    }
    Ok(text)
}

/// Number of costs in a line.
const COSTS_ON_LINE: usize = 5;

/// Returns costs as text for users.
pub fn costs(named: &[(&'static str, u64)]) -> String {
    let cost = |(name, value): &(&str, u64)| match name.split_once("_ns") {
        Some((what, _)) => format!("{} {value} ns", what.replace('_', "-")),
        None => format!("{} {value} B/us", name.trim_end_matches("_per_us")),
    };
    let line = |named: &[_]| named.iter().map(cost).collect::<Vec<_>>().join(", ");
    named.chunks(COSTS_ON_LINE).map(line).collect::<Vec<_>>().join(",\n       ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(folder: &Path) -> Environment {
        [("XDG_CONFIG_HOME", folder.to_str().unwrap())].into_iter().collect()
    }

    #[test]
    fn what_is_written_is_read_and_other_machines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        assert!(matches!(Tuning::of(&environment).unwrap(), Tuning::BuiltIn));
        let other = r#"{"machines":[{"processor":"another","kernel":"1","direct_from_bytes":7}]}"#;
        fs::create_dir(folder.path().join("tasuki")).unwrap();
        fs::write(folder.path().join("tasuki/tune.json"), other).unwrap();
        assert!(matches!(Tuning::of(&environment).unwrap(), Tuning::BuiltIn));
        let measured = CostParameters { turn_ns: 77, ..CostParameters::default() };
        for (bytes, costs) in [(None, None), (Some(65536), Some(measured)), (Some(0), None)] {
            let file = write(&environment, Values { direct_from_bytes: bytes, costs }).unwrap();
            let tuning = Tuning::of(&environment).unwrap();
            let variables = tuning.variables();
            assert_eq!(variables[0], (names::DIRECT_BYTES_MIN, bytes.unwrap_or(u64::MAX).to_string()));
            assert_eq!(variables.get(1).map(|(_, text)| text.parse()), costs.map(Ok));
            assert_eq!(tuning.costs(), costs);
            let text = fs::read_to_string(file).unwrap();
            assert!(text.contains("another") && parse(Path::new(""), &text).unwrap().machines.len() == 2);
        }
    }

    #[test]
    fn a_file_that_is_named_must_be_there_and_make_sense() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.json");
        let named: Environment = [(names::TUNE_FILE, file.to_str().unwrap())].into_iter().collect();
        let text = Tuning::of(&named).unwrap_err().to_string();
        assert!(text.contains("mine.json") && text.contains("bench --tune"), "{text}");
        fs::write(&file, "{").unwrap();
        let text = Tuning::of(&named).unwrap_err().to_string();
        assert!(text.contains("mine.json") && text.contains("remove it"), "{text}");
        let strange = r#"{"machines":[{"processor":"one","kernel":"1","costs":{"turns":5}}]}"#;
        fs::write(&file, strange).unwrap();
        let text = Tuning::of(&named).unwrap_err().to_string();
        assert!(text.contains("no cost 'turns'") && text.contains("write it anew"), "{text}");
        fs::write(&file, "{").unwrap();
        assert!(
            write(&named, Values { direct_from_bytes: None, costs: None }).is_err(),
            "what is not ours stays"
        );
    }
}
