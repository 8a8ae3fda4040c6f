//! Whoever takes turns with a job of ours: programs that are started when the job comes to their cases, each in the
//! setting that was best when it was tried, and kept for as long as they may be asked.

use super::launch::{Order, Peer, Setting};
use super::{Running, start, start_oversubscribed, version};
use crate::case::{Case, Kind};
use crate::cases::collective::persistent;
use crate::cases::message_latency::SendMode;
use crate::harness::progress_bar::Progress;
use crate::result::comparison::Off;
use crate::result::figure::{Key, Point};
use crate::result::library::Library;
use crate::sizes;
use anyhow::anyhow;
use std::path::PathBuf;

/// Repetitions by which settings are told apart; the first is a warm-up.
const TRIALS: usize = 2;

/// Who may be asked, and on what machine.
#[derive(Clone)]
pub(crate) struct Invited {
    /// The other libraries.
    pub(crate) peers: Vec<Peer>,
    /// The folder of all peers.
    pub(crate) home: PathBuf,
    /// The processors; ranks that are bound go to them in turn.
    pub(crate) processors: Vec<usize>,
    /// How many ranks.
    pub(crate) ranks: usize,
    /// Sizes of blocks, if they are not to be the usual ones.
    pub(crate) sizes: Vec<u64>,
    /// Ping-pongs of a repetition, where our own ranks are asked.
    pub(crate) rounds: u64,
}

/// The programs beside a job.
pub(crate) struct Opponents {
    invited: Invited,
    /// Which setting was best for whom. Collective calls share one: it is sought for each number of ranks.
    chosen: Vec<(PeerPart, &'static Setting)>,
    programs: Vec<Program>,
    /// What can be measured now: a program by its place, and what it is asked for.
    ready: Vec<(usize, Point)>,
    /// Programs that have failed, and why: they are not started again.
    failed: Vec<(PeerPart, String)>,
    off: Vec<Off>,
}

/// What a program plays: a case as it calls it, by one of the ways of its library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PeerPart {
    library: Library,
    peer: Option<Peer>,
    case: Case,
    name: &'static str,
    by: Option<&'static str>,
}

struct Program {
    part: PeerPart,
    setting: &'static str,
    /// `None` when it has failed.
    running: Option<Running>,
}

impl Opponents {
    /// Nothing is started before somebody is asked for.
    pub(crate) fn new(invited: Invited) -> Opponents {
        let mut off = Vec::new();
        for &peer in &invited.peers {
            if let Err(absent) = version(peer, &invited.home) {
                let (library, ranks, why) = (peer.into(), invited.ranks, absent.to_string());
                off.push(Off { library, case: None, ranks, why });
            }
        }
        let (chosen, programs, ready, failed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Opponents { invited, chosen, programs, ready, failed, off }
    }

    /// Whether there is any other library.
    pub(crate) fn are_there(&self) -> bool {
        !self.invited.peers.is_empty()
    }

    /// Libraries that have no figure.
    pub(crate) fn off(&self) -> Vec<Off> {
        self.off.clone()
    }

    /// Ends all programs.
    pub(crate) fn end(&mut self) {
        self.ready.clear();
        self.keep(&[]);
    }

    /// Ends the programs that nobody asks for any more. One that fails in doing so has failed.
    fn keep(&mut self, points: &[Point]) {
        let is_wanted =
            |program: &Program| points.iter().any(|point| name_of(point) == Some(program.part.name));
        let (wanted, over) = std::mem::take(&mut self.programs).into_iter().partition(is_wanted);
        self.programs = wanted;
        for Program { part, running, .. } in over {
            if let Some(Err(error)) = running.map(Running::end) {
                self.fail(part, &error);
            }
        }
    }

    fn fail(&mut self, part: PeerPart, why: &anyhow::Error) {
        self.failed.push((part, why.to_string()));
        self.note_off(part.library, part.case);
    }

    /// Gets everybody ready who can play these; their figures' keys in the order by which they are asked then.
    pub(crate) fn who(&mut self, points: &[Point], progress: &Progress) -> Vec<Key> {
        self.ready.clear();
        self.keep(points);
        let mut keys = Vec::new();
        for point in points {
            for library in self.libraries(point) {
                let before = keys.len();
                for part in self.parts(library, point) {
                    progress.say(&format!("{}: {} begins", point.case, part.library));
                    if let Some(number) = self.program(part, point) {
                        keys.push(self.programs[number].key(point));
                        self.ready.push((number, point.clone()));
                    }
                }
                if keys.len() == before {
                    self.note_off(library, point.case);
                }
            }
        }
        keys
    }

    /// Has one of them measure once; `None` if it fails.
    pub(crate) fn measure(&mut self, number: usize) -> Option<f64> {
        let (place, point) = self.ready.get(number)?;
        let program = &mut self.programs[*place];
        match program.running.as_mut()?.repetition(point.bytes, point.state) {
            Ok(figure) => Some(figure),
            Err(error) => {
                program.running = None;
                let part = program.part;
                self.fail(part, &error);
                None
            }
        }
    }

    /// A library has no figure in a case, or lacks one that it began with.
    fn note_off(&mut self, library: Library, case: Case) {
        let is_it = |part: &PeerPart| part.library == library && part.case == case;
        let why = self.failed.iter().rev().find(|(part, _)| is_it(part)).map(|(_, why)| why.clone());
        let off = Off { library, case: Some(case), ranks: self.invited.ranks, why: why.unwrap_or_default() };
        if !self.off.contains(&off) {
            self.off.push(off);
        }
    }

    fn libraries(&self, point: &Point) -> Vec<Library> {
        if point.case == Case::Oversubscribed {
            return vec![Library::Tasuki];
        }
        let is_there =
            |library: &Library| !self.off.iter().any(|off| off.library == *library && off.case.is_none());
        let plays = |peer: &&Peer| name_of(point).is_some_and(|name| peer.plays(name, self.invited.ranks));
        self.invited.peers.iter().filter(plays).map(|&peer| peer.into()).filter(is_there).collect()
    }

    fn parts(&self, library: Library, point: &Point) -> Vec<PeerPart> {
        let peer = self.invited.peers.iter().copied().find(|&peer| Library::from(peer) == library);
        let Some(name) = name_of(point) else { return Vec::new() };
        let ways = peer.map_or(OVERSUBSCRIBED_MODES, |peer| peer.ways(name));
        ways.iter().map(|&by| PeerPart { library, peer, case: point.case, name, by }).collect()
    }

    /// The place of the program that plays a part, started if need be.
    fn program(&mut self, part: PeerPart, point: &Point) -> Option<usize> {
        if let Some(place) = self.programs.iter().position(|program| program.part == part) {
            return self.programs[place].running.is_some().then_some(place);
        }
        if self.failed.iter().any(|(failed, _)| *failed == part) {
            return None;
        }
        match self.start(part, point) {
            Ok(program) => {
                self.programs.push(program);
                Some(self.programs.len() - 1)
            }
            Err(error) => {
                self.failed.push((part, error.to_string()));
                None
            }
        }
    }

    fn start(&mut self, part: PeerPart, point: &Point) -> anyhow::Result<Program> {
        let Some(peer) = part.peer else {
            let mode = if part.by == OVERSUBSCRIBED_MODES[0] { SendMode::Begun } else { SendMode::Call };
            let running = start_oversubscribed(mode, self.invited.rounds, &self.invited.processors)?;
            return Ok(Program { part, setting: "", running: Some(running) });
        };
        match self.chosen.iter().find(|(of, _)| is_chosen_alike(of, &part)) {
            Some(&(_, setting)) => Program::start(part, peer, setting, &self.invited),
            None => self.choose(part, peer, point),
        }
    }

    /// Tries all settings and keeps the best program. An error only if all fail.
    fn choose(&mut self, part: PeerPart, peer: Peer, point: &Point) -> anyhow::Result<Program> {
        let mut best: Option<(f64, Program, &'static Setting)> = None;
        let mut failure = anyhow!("{} has no setting", peer.name());
        for setting in peer.settings() {
            let tried = Program::start(part, peer, setting, &self.invited)
                .and_then(|mut program| Ok((program.try_out(point)?, program)));
            match tried {
                Ok((figure, program)) => {
                    let is_rate = matches!(point.case.kind(), Kind::Blocks) || point.case == Case::Rate;
                    let is_better = |than: f64| if is_rate { figure > than } else { figure < than };
                    if best.as_ref().is_none_or(|(than, ..)| is_better(*than)) {
                        best = Some((figure, program, setting));
                    }
                }
                Err(error) => failure = error,
            }
        }
        let (_, program, setting) = best.ok_or(failure)?;
        self.chosen.push((part, setting));
        Ok(program)
    }
}

/// By which calls our own ranks exchange messages in a crowd.
const OVERSUBSCRIBED_MODES: &[Option<&str>] = &[Some("begun"), Some("call")];

/// Whether two parts are played in one setting. Barriers that go on beside something ask for others than calls do that
/// return when they are over.
fn is_chosen_alike(a: &PeerPart, b: &PeerPart) -> bool {
    let are_collective = [a, b].iter().all(|part| part.case.kind() == Kind::Collective);
    let are_calls = [a, b].iter().all(|part| !matches!(part.case, Case::Fuzzy | Case::FuzzyHidden));
    a == b || (a.peer == b.peer && are_collective && (are_calls || a.case == b.case))
}

/// What programs call a case.
fn name_of(point: &Point) -> Option<&'static str> {
    Some(match point.case {
        Case::Message => "message",
        Case::Posted if point.variant.is_empty() => "posted",
        Case::Posted => "post_gap",
        Case::Oversubscribed => "oversubscribed",
        Case::Rate => "rate",
        Case::Handler => "handler",
        // They have no copy that both ends make: one way, as they are quickest.
        Case::BandwidthJob | Case::SharedCopy => "bandwidth_job",
        Case::BandwidthOwn => "bandwidth_own",
        Case::BandwidthStream => "bandwidth_stream",
        Case::Barrier => "barrier",
        Case::Bcast => "bcast",
        Case::Reduce => "reduce",
        Case::Allreduce => "allreduce",
        Case::Gather => "gather",
        Case::Allgather => "allgather",
        Case::Alltoall => "alltoall",
        Case::Scatter => "scatter",
        Case::ReduceScatter => "reduce_scatter",
        Case::Persistent => match persistent::operation_of(&point.variant)? {
            Case::Barrier => "barrier_init",
            Case::Bcast => "bcast_init",
            Case::Reduce => "reduce_init",
            Case::Allreduce => "allreduce_init",
            Case::Allgather => "allgather_init",
            Case::Alltoall => "alltoall_init",
            _ => return None,
        },
        Case::Fuzzy => "fuzzy",
        Case::FuzzyHidden => "fuzzy_hidden",
        _ => return None,
    })
}

impl Program {
    fn start(
        part: PeerPart,
        peer: Peer,
        setting: &'static Setting,
        invited: &Invited,
    ) -> anyhow::Result<Program> {
        let (processors, ranks) = (invited.processors.clone(), invited.ranks);
        // It is told each size later, and takes memory for the largest now.
        let bytes = sizes::of(part.case, &invited.sizes).iter().copied().max().unwrap_or(8);
        let order = Order { peer, setting, case: part.name, by: part.by, ranks, bytes, processors };
        let running = Some(start(&order, &invited.home)?);
        Ok(Program { part, setting: setting.name, running })
    }

    fn try_out(&mut self, point: &Point) -> anyhow::Result<f64> {
        // A thousand calls of ranks that are more than processors tell enough at once.
        let trials = if point.case.kind() == Kind::Collective { 1 } else { TRIALS };
        let mut figure = 0.0;
        for _ in 0..trials {
            let running = self.running.as_mut().ok_or_else(|| anyhow!("it has ended"))?;
            figure = running.repetition(point.bytes, point.state)?;
        }
        Ok(figure)
    }

    fn key(&self, point: &Point) -> Key {
        let words = [Some(self.setting), self.part.by].into_iter().flatten().filter(|word| !word.is_empty());
        let setting = words.collect::<Vec<_>>().join(", ");
        Key { library: self.part.library, ..point.ours().by(&setting) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::script;
    use super::*;
    use std::path::Path;

    /// A UCX that is better when it is bound, and fails in the third repetition of what it plays.
    fn fake_ucx(home: &Path) {
        let program = r#"#!/bin/sh
            value=9; case "$*" in *--processors*) value=5;; esac
            echo "{\"ready\":\"$1\"}"; left=3
            while read word bytes rest && [ $word = go ]; do
                left=$((left - 1)); [ $left = 0 ] && exit 3
                echo "{\"ranks\":2,\"bytes\":$bytes,\"value\":$value}"
            done"#;
        script(&Peer::Ucx.program(home), program);
        std::fs::write(home.join("ucx/stamp"), "library ucx 1.13\n").unwrap();
    }

    fn opponents(home: &Path) -> Opponents {
        let (peers, home, processors) = (vec![Peer::Mpich, Peer::Ucx], home.to_path_buf(), vec![0, 1]);
        Opponents::new(Invited { peers, home, processors, ranks: 2, sizes: Vec::new(), rounds: 1 })
    }

    #[test]
    fn the_best_setting_is_kept_and_who_is_absent_or_fails_is_off() {
        let folder = tempfile::tempdir().unwrap();
        fake_ucx(folder.path());
        let mut opponents = opponents(folder.path());
        let absent = opponents.off();
        assert!(absent.len() == 1 && absent[0].why.contains("cargo xtask peers mpich"), "{absent:?}");
        let progress = Progress::new(1.0);
        let message = Point::of_word(Case::Message, "");
        let keys = opponents.who(&[message.clone(), Point::of_word(Case::Get, "")], &progress);
        assert_eq!(keys, [Key { library: Library::Ucx, ..message.ours().by("bound") }]);
        assert_eq!(opponents.measure(0), None);
        assert!(opponents.off()[1].why.contains("exit status: 3"));
        assert_eq!(opponents.who(&[message], &progress), []);
    }

    #[test]
    fn every_case_that_has_peers_is_played_by_one() {
        for &case in Case::all() {
            let variant = if case == Case::Persistent { "bcast" } else { "" };
            let point = Point::of_word(case, variant);
            let is_played = |&ranks: &usize| {
                name_of(&point).is_some_and(|name| Peer::ALL.iter().any(|peer| peer.plays(name, ranks)))
            };
            assert_eq!(case.ranks().iter().all(is_played), case.has_peers(), "{case}");
        }
    }

    #[test]
    fn ways_are_measured_beside_each_other_and_rates_are_the_better_the_larger() {
        let folder = tempfile::tempdir().unwrap();
        fake_ucx(folder.path());
        let keys = opponents(folder.path()).who(&[Point::of_word(Case::Rate, "")], &Progress::new(1.0));
        let settings: Vec<&str> = keys.iter().map(|key| key.setting.as_str()).collect();
        assert_eq!(settings, ["default", "default, send"]);
    }
}
