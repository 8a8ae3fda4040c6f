//! Programs that take turns with a Tasuki job: programs of other libraries, whose source is in `bench/peers/` and which
//! `cargo xtask peers` installs, and Tasuki jobs whose ranks are started in another way. A program is started when its
//! case is measured, in the setting that was the best in a trial, and kept as long as it may be asked for a repetition.
//!
//! ```text
//! launch              the settings of each library, and the command line of each
//! reference_figures   what each library is known to reach: one that is much slower does not count
//! ```

mod launch;
mod reference_figures;

pub(crate) use reference_figures::too_bad;

use crate::case::{Case, Played};
use crate::cases::State;
use crate::cases::many_to_one::LONG_FLOOD;
use crate::harness::process_role::ProcessRole;
use crate::harness::program::Program;
use crate::harness::progress::Progress;
use crate::harness::rank_server::{Group, Plan, Reply};
use crate::harness::schedule_of_run::Wanted;
use crate::result::comparison::Off;
use crate::result::key::Key;
use crate::result::library::Library;
use anyhow::{Context, anyhow, bail, ensure};
use launch::{Order, Setting};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Number of repetitions in a trial. Only the last counts.
const TRIALS: usize = 2;

/// Returns the library and its version, as its installation has recorded it. The error says how to install the library.
pub(crate) fn version(peer: Library, home: &Path) -> anyhow::Result<String> {
    let (name, folder) = (peer.name(), home.join(peer.name()));
    let stamp = std::fs::read_to_string(folder.join("stamp")).unwrap_or_default();
    let library = stamp.lines().find_map(|line| line.strip_prefix("library "));
    let is_there = library.is_some() && peer.program(home).exists();
    ensure!(is_there, "{name} is not installed in {}: cargo xtask peers {name}", folder.display());
    Ok(library.unwrap_or_default().to_owned())
}

/// What a program measures.
#[derive(Clone, PartialEq)]
struct Part {
    library: Library,
    case: &'static Case,
    /// The case, by the name that the program uses, and one of the library's ways.
    name: &'static str,
    by: Option<&'static str>,
    ranks: usize,
}

/// A program that was started. `program` is `None` if the program has failed.
struct Opponent {
    part: Part,
    setting: &'static str,
    program: Option<Program>,
    /// For a Tasuki job: its figures, in the order of the job.
    figures: Vec<Key>,
}

/// All programs that take turns with a Tasuki job.
pub(crate) struct Opponents {
    wanted: Wanted,
    home: PathBuf,
    processors: Vec<usize>,
    opponents: Vec<Opponent>,
    /// The settings that were the best in a trial.
    chosen: Vec<(Part, &'static Setting)>,
    off: Vec<Off>,
}

impl Opponents {
    /// Uses the folder of all libraries, which lies beside the folder of this program, below cargo's target folder.
    pub(crate) fn new(wanted: Wanted, processors: Vec<usize>) -> anyhow::Result<Opponents> {
        let program = std::env::current_exe()?;
        let home = program.ancestors().nth(2).context("this program lies in no folder")?.join("peers");
        Ok(Opponents::below(home, wanted, processors))
    }

    fn below(home: PathBuf, wanted: Wanted, processors: Vec<usize>) -> Opponents {
        let absent = |&library: &Library| {
            version(library, &home).err().map(|error| Off { library, case: None, why: error.to_string() })
        };
        let off = wanted.peers.iter().filter_map(absent).collect();
        Opponents { wanted, home, processors, opponents: Vec::new(), chosen: Vec::new(), off }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the libraries that have no figure that counts, and the reason.
    pub(crate) fn off(&self) -> &[Off] {
        &self.off
    }

    /// Records more libraries without a figure that counts.
    pub(crate) fn note(&mut self, off: Vec<Off>) {
        for one in off {
            if !self.off.iter().any(|known| (known.library, known.case) == (one.library, one.case)) {
                self.off.push(one);
            }
        }
    }

    /// Finds and starts the programs that measure the same figures as the Tasuki job, or other figures of the group.
    /// Returns their indices, keys and numbers of ranks.
    pub(crate) fn invite(
        &mut self,
        group: &Group,
        points: &[Key],
        ranks: usize,
        progress: &Progress,
    ) -> anyhow::Result<Vec<(usize, Key, usize)>> {
        let mut entries = Vec::new();
        let mut wanted: Vec<(Part, Key)> = Vec::new();
        for point in points.iter().filter(|point| point.library == Library::Tasuki) {
            let Some(name) = point.case.peer_case(&point.variant) else { continue };
            for &library in &self.wanted.peers {
                let is_absent = self.off.iter().any(|off| off.library == library && off.case.is_none());
                if is_absent || !library.plays(name, ranks) {
                    continue;
                }
                for &by in library.ways(name) {
                    let part = Part { library, case: point.case, name, by, ranks };
                    let key = Key { library, setting: String::new(), ..point.clone() };
                    if !wanted.contains(&(part.clone(), key.clone())) {
                        wanted.push((part, key)); // several figures of Tasuki may name it
                    }
                }
            }
        }
        // Programs that are no longer wanted are ended. If a program fails at its end, it was not measured correctly.
        for Opponent { part, program, .. } in std::mem::take(&mut self.opponents) {
            match program {
                Some(program) if wanted.iter().any(|(of, _)| *of == part) => {
                    let setting = self.chosen_for(&part).map_or("", |setting| setting.name);
                    self.opponents.push(Opponent {
                        part,
                        setting,
                        program: Some(program),
                        figures: Vec::new(),
                    });
                }
                Some(program) => drop(program.end().map_err(|error| self.fail(&part, &error))),
                None => {}
            }
        }
        for (part, mut key) in wanted {
            progress.clear();
            let known = self.opponents.iter().position(|opponent| opponent.part == part);
            let number = match known.map_or_else(|| self.start(&part, &key), Ok) {
                Ok(number) => number,
                Err(error) => {
                    self.fail(&part, &error);
                    continue;
                }
            };
            let words = [Some(self.opponents[number].setting), part.by].into_iter().flatten();
            key.setting = words.collect::<Vec<_>>().join(", ");
            entries.push((number, key, ranks));
        }
        for &case in group.cases.iter().filter(|case| case.job.is_some()) {
            for &ranks in case.ranks(&[], false) {
                let number = self.start_job(case, ranks)?;
                let figures = self.opponents[number].figures.iter().cloned();
                entries.extend(figures.map(|key| (number, key, ranks)));
            }
        }
        Ok(entries)
    }

    /// Makes a repetition and returns its result, or `None` if the program has failed.
    pub(crate) fn repeat(&mut self, number: usize, key: &Key) -> Option<f64> {
        let opponent = &mut self.opponents[number];
        let part = opponent.part.clone();
        match opponent.repeat(key) {
            Ok(figure) => Some(figure),
            Err(error) => {
                opponent.program = None;
                self.fail(&part, &error);
                None
            }
        }
    }

    fn fail(&mut self, part: &Part, why: &anyhow::Error) {
        let (library, case) = (part.library, Some((part.case, part.ranks)));
        self.note(vec![Off { library, case, why: format!("{why:#}") }]);
    }

    fn chosen_for(&self, part: &Part) -> Option<&'static Setting> {
        // All collective calls with the same number of ranks use the same setting; others have separate ones.
        let is_apart =
            |part: &Part| ["fuzzy", "incast", "flood"].iter().any(|name| part.case.name.starts_with(name));
        let is_call = |part: &Part| part.case.played == Played::Collective && !is_apart(part);
        let is_alike = |of: &Part| {
            of == part
                || (of.library, of.ranks, of.by) == (part.library, part.ranks, part.by)
                    && (is_call(of) && is_call(part) || of.case == part.case && is_apart(part))
        };
        self.chosen.iter().find(|(of, _)| is_alike(of)).map(|&(_, setting)| setting)
    }

    /// Starts a program in the best setting, and returns its index. If the best setting is not known, it is determined
    /// now.
    fn start(&mut self, part: &Part, key: &Key) -> anyhow::Result<usize> {
        if let Some(setting) = self.chosen_for(part) {
            let opponent = self.start_in(part, setting)?;
            self.opponents.push(opponent);
            return Ok(self.opponents.len() - 1);
        }
        let mut best: Option<(f64, Opponent, &'static Setting)> = None;
        let mut failure = anyhow!("{} has no setting", part.library);
        // A repetition of a collective case makes a thousand calls, so one repetition suffices.
        let trials = if part.case.played == Played::Collective { 1 } else { TRIALS };
        for setting in part.library.settings() {
            let tried = self.start_in(part, setting).and_then(|mut opponent| {
                let figures: anyhow::Result<Vec<f64>> = (0..trials).map(|_| opponent.repeat(key)).collect();
                Ok((figures?[trials - 1], opponent))
            });
            match tried {
                Ok((figure, opponent)) => {
                    let is_rate = part.case.metric.is_rate() && !part.name.ends_with("_growth");
                    let is_better = |than: f64| if is_rate { figure > than } else { figure < than };
                    if best.as_ref().is_none_or(|(than, ..)| is_better(*than)) {
                        best = Some((figure, opponent, setting));
                    }
                }
                Err(error) => failure = error,
            }
        }
        let (_, opponent, setting) = best.ok_or(failure)?;
        self.chosen.push((part.clone(), setting));
        self.opponents.push(opponent);
        Ok(self.opponents.len() - 1)
    }

    fn start_in(&self, part: &Part, setting: &'static Setting) -> anyhow::Result<Opponent> {
        let &Part { library: peer, case: of, name: case, by, ranks } = part;
        // The program receives each size later. It allocates memory for the largest size now.
        let sizes = of.operations.iter().flat_map(|one| self.wanted.sizes_of(one));
        let (bytes, processors) = (sizes.copied().max().unwrap_or(8), self.processors.clone());
        let iterations = (of.name == "flood" && self.wanted.is_long).then_some(LONG_FLOOD.0);
        let order = Order { peer, setting, case, by, ranks, bytes, iterations, processors };
        let what = format!("{peer} ({}): {case}", setting.name);
        let (program, _) = Program::start::<Value>(order.command(&self.home), what)?;
        Ok(Opponent {
            part: part.clone(),
            setting: setting.name,
            program: Some(program),
            figures: Vec::new(),
        })
    }

    /// Starts a Tasuki job for a case that specifies the options of its job. The job has no limits and measures no
    /// hand-over.
    fn start_job(&mut self, case: &'static Case, ranks: usize) -> anyhow::Result<usize> {
        let group = Group { cases: vec![case], operation: String::new(), bytes: 8, state: None };
        let (groups, effort) = (vec![group], self.wanted.effort());
        let plan = Plan { groups, effort, limits_file: None, limits_first: false, way: None };
        let options = case.job.map(|options| options(&self.processors, ranks)).unwrap_or_default();
        let command = ProcessRole::Measure(plan).job(ranks, &options)?;
        let (mut program, _) = Program::start::<Reply>(command, format!("{} of {ranks} ranks", case.name))?;
        let Reply::Figures { figures } = program.ask("group 0")? else {
            bail!(program.failed("has no figures"))
        };
        let part = Part { library: Library::Tasuki, case, name: case.name, by: None, ranks };
        self.opponents.push(Opponent { part, setting: "", program: Some(program), figures });
        Ok(self.opponents.len() - 1)
    }
}

impl Opponent {
    fn repeat(&mut self, key: &Key) -> anyhow::Result<f64> {
        let ranks = self.part.ranks;
        let program = self.program.as_mut().context("it has ended")?;
        if let Some(number) = self.figures.iter().position(|figure| figure == key) {
            return match program.ask(&format!("go {number}"))? {
                Reply::Repetition { value, .. } => Ok(value),
                _ => bail!(program.failed("gave no figure")),
            };
        }
        let state = State::named(&key.variant);
        let answer: Value =
            program.ask(&format!("go {} {} {}", key.bytes, state.temperature(), state.buffers()))?;
        let value = answer["value"].as_f64().filter(|value| value.is_finite() && *value > 0.0);
        let value = value.ok_or_else(|| program.failed(&format!("measured {answer}")))?;
        // If the launcher belongs to another library, it starts several jobs of one rank each.
        let is_expected =
            (answer["ranks"].as_u64(), answer["bytes"].as_u64()) == (Some(ranks as u64), Some(key.bytes));
        ensure!(is_expected, program.failed(&format!("measured another job: {answer}")));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{CASES, named};
    use std::process::Command;

    fn fake_ucx(home: &Path) {
        let program = r#"#!/bin/sh
            value=9; case "$*" in *--processors*) value=5;; esac
            echo "{\"ready\":\"$1\"}"; left=3
            while read word bytes rest && [ $word = go ]; do
                left=$((left - 1)); [ $left = 0 ] && exit 3
                echo "{\"ranks\":2,\"bytes\":$bytes,\"value\":$value}"
            done"#;
        let path = Library::Ucx.program(home);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"printf '%s' "$1" > "$2" && chmod +x "$2""#, "sh", program]).arg(path);
        assert!(shell.status().unwrap().success());
        std::fs::write(home.join("ucx/stamp"), "library ucx 1.13\n").unwrap();
    }

    #[test]
    fn the_best_setting_is_kept_and_who_is_absent_or_fails_is_off() {
        let folder = tempfile::tempdir().unwrap();
        fake_ucx(folder.path());
        for (name, settings) in [("message", &["bound"][..]), ("rate", &["default", "default, send"])] {
            let wanted = Wanted { peers: vec![Library::Mpich, Library::Ucx], ..Wanted::default() };
            let mut opponents = Opponents::below(folder.path().into(), wanted, vec![0, 1]);
            assert!(opponents.off()[0].why.contains("cargo xtask peers mpich"), "{:?}", opponents.off());
            let point = Key::ours(named(name), "", 8);
            let group = Group { cases: vec![point.case], operation: String::new(), bytes: 8, state: None };
            let invited = opponents.invite(&group, &[point], 2, &Progress::new(1.0)).unwrap();
            assert_eq!(invited.iter().map(|(_, key, _)| key.setting.as_str()).collect::<Vec<_>>(), settings);
            let (number, key, _) = &invited[0];
            assert_eq!(opponents.repeat(*number, key), None);
            assert!(opponents.off()[1].why.contains("exit status: 3"), "{:?}", opponents.off());
        }
    }

    #[test]
    fn every_case_that_has_peers_is_played_by_one() {
        for case in &CASES {
            for (variant, name) in case.peers {
                let is_played = |&ranks: &usize| Library::PEERS.iter().any(|peer| peer.plays(name, ranks));
                assert!(case.ranks(&[], false).iter().all(is_played), "{} {variant}", case.name);
            }
        }
        assert!(!Library::Ucx.plays("barrier", 2) && !Library::Mpich.plays("message", 4));
        assert!(Library::Intel.plays("bcast_init", 4) && !Library::Intel.plays("allgather_init", 4));
        assert!(!Library::Openmpi.plays("handler", 2) && Library::Ucx.plays("handler", 2));
    }
}
