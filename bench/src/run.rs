//! A whole run of the bench: everything that was asked for, taken and compared.

use super::Args;
use crate::case::{Case, Kind};
use crate::cases::buffer_state::State;
use crate::harness::interleaved_jobs;
use crate::harness::measurement_plan::Effort;
use crate::harness::progress_bar::Progress;
use crate::harness::rank_group;
use crate::harness::whole_jobs::Whole;
use crate::machine::{Machine, Others};
use crate::peers::{Invited, Opponents, Peer, home, too_bad, version};
use crate::result::comparison::{self, Field, Off};
use crate::result::row::Row;
use crate::result::table::Circumstances;
use crate::sizes;
use crate::tuning::file::Tuning;
use std::path::PathBuf;
use tasuki_command::{misuse, warn};

/// What is asked for, checked.
pub(crate) struct RunWanted {
    pub(crate) cases: Vec<Case>,
    ranks: Vec<usize>,
    sizes: Vec<u64>,
    peers: Vec<Peer>,
    /// The folder of all peers.
    home: PathBuf,
}

/// What came of it.
pub(crate) struct RunFigures {
    pub(crate) rows: Vec<Row>,
    pub(crate) around: Circumstances,
    off: Vec<Off>,
}

/// Sorted, each once.
fn set<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all.dedup();
    all
}

impl RunWanted {
    pub(crate) fn new(args: &Args) -> anyhow::Result<RunWanted> {
        let cases = if args.cases.is_empty() { Case::all().to_vec() } else { args.cases.clone() };
        let named = args.against.iter().flat_map(|against| &against.0);
        let is_named = |peer: &Peer| named.clone().any(|named| named == peer);
        let peers = Peer::ALL.into_iter().filter(is_named).collect();
        let (ranks, sizes) = (set(args.ranks.clone()), set(args.sizes.clone()));
        let wanted = RunWanted { cases: set(cases), ranks, sizes, peers, home: home()? };
        wanted.check(args)?;
        Ok(wanted)
    }

    /// Everything that was typed has a meaning for one of the cases.
    fn check(&self, args: &Args) -> anyhow::Result<()> {
        let any = |has: fn(&Case) -> bool| self.cases.iter().any(has);
        if !self.ranks.is_empty() && !any(|case| case.has_ranks()) {
            return Err(misuse(
                "--ranks has a meaning for collective cases, startup, idle, death and memory only",
            ));
        }
        if self.ranks.contains(&1) && any(|case| case.kind() == Kind::Collective) {
            return Err(misuse("--ranks 1: collective cases need two ranks, of which each has a processor"));
        }
        if !self.sizes.is_empty() && !any(|case| case.has_sizes()) {
            return Err(misuse("--sizes has a meaning for bandwidths, limit and collective cases only"));
        }
        if !self.peers.is_empty() && !any(|case| case.is_shown_beside()) {
            return Err(misuse(
                "--against has a meaning for messages, their bandwidths, handlers, commands and collective \
                 cases only",
            ));
        }
        let is_svg = |plot: &PathBuf| plot.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("svg"));
        if let Some(plot) = args.plot.as_ref().filter(|plot| !is_svg(plot)) {
            return Err(misuse(format!("--plot {}: plots are SVG, name the file so", plot.display())));
        }
        if args.plot.is_some()
            && !any(|case| matches!(case.kind(), Kind::Words | Kind::Blocks | Kind::Collective))
        {
            return Err(misuse("--plot draws latencies, bandwidths and collective cases only"));
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        if self.peers.is_empty() { Effort::FULL } else { Effort::AGAINST }
    }

    fn ranks_of(&self, case: Case) -> &[usize] {
        if self.ranks.is_empty() || !case.has_ranks() { case.ranks() } else { &self.ranks }
    }

    /// Roughly how many seconds a case takes, for the progress bar.
    fn seconds(&self, case: Case) -> f64 {
        let peers = if case.has_peers() { self.peers.len() as f64 } else { 0.0 };
        let groups = (sizes::of(case, &self.sizes).len() * State::all().len()) as f64;
        match case.kind() {
            Kind::Blocks | Kind::Limit => groups * (1.0 + 4.0 * peers),
            Kind::Words => 1.0 + 20.0 * peers,
            Kind::Collective => {
                let scenes = rank_group::scenes(&[case], &self.sizes).len() * self.ranks_of(case).len();
                scenes as f64 * (2.0 + 5.0 * peers)
            }
            Kind::Roles => 8.0,
            Kind::Whole if case == Case::Idle => 60.0,
            Kind::Whole => 5.0,
        }
    }

    fn seconds_of(&self, cases: &[Case]) -> f64 {
        cases.iter().map(|&case| self.seconds(case)).sum()
    }

    pub(crate) fn take(&self, machine: &Machine) -> anyhow::Result<RunFigures> {
        let tuning = Tuning::here()?;
        tuning.remark().iter().for_each(|remark| warn(remark));
        let others = Others::watch();
        let mut progress = Progress::new(self.seconds_of(&self.cases));
        let peers = self.peers.iter().filter_map(|&peer| version(peer, &self.home).ok());
        let around = Circumstances {
            machine: machine.to_string(),
            tuning: format!("long messages by {tuning}"),
            peers: peers.map(|peer| format!("beside {peer}")).collect(),
            hand_over_way: None,
            failures: Vec::new(),
            remarks: Vec::new(),
        };
        let mut taken = RunFigures { rows: Vec::new(), around, off: Vec::new() };
        let of_kind = |is_of_it: fn(&Case) -> bool| -> Vec<Case> {
            self.cases.iter().copied().filter(is_of_it).collect()
        };
        // A rank with handlers looks for calls whenever it waits: what has none is measured without.
        self.two(
            &mut taken,
            &of_kind(|case| case.is_for_two() && *case != Case::Handler),
            machine,
            &mut progress,
        );
        self.two(&mut taken, &of_kind(|case| *case == Case::Handler), machine, &mut progress);
        self.collectives(
            &mut taken,
            &of_kind(|case| case.kind() == Kind::Collective),
            machine,
            &mut progress,
        );
        self.roles(&mut taken, &of_kind(|case| case.kind() == Kind::Roles), machine, &mut progress);
        self.whole(&mut taken, &of_kind(|case| case.kind() == Kind::Whole), machine, &mut progress);
        taken.rows.sort_by_key(Row::place);
        self.compare(&mut taken);
        taken.around.remarks.extend(others.remark());
        Ok(taken)
    }

    fn two(&self, taken: &mut RunFigures, cases: &[Case], machine: &Machine, progress: &mut Progress) {
        if cases.is_empty() {
            return;
        }
        progress.begin("two ranks", self.seconds_of(cases));
        self.by_ranks(taken, cases, 2, machine, progress);
    }

    fn collectives(
        &self,
        taken: &mut RunFigures,
        cases: &[Case],
        machine: &Machine,
        progress: &mut Progress,
    ) {
        for ranks in set(cases.iter().flat_map(|case| self.ranks_of(*case)).copied().collect()) {
            let has = |case: &Case| self.ranks_of(*case).contains(&ranks);
            let cases: Vec<Case> = cases.iter().copied().filter(has).collect();
            let seconds = cases.iter().map(|&case| self.seconds(case) / self.ranks_of(case).len() as f64);
            progress.begin(&format!("{ranks} ranks"), seconds.sum());
            self.by_ranks(taken, &cases, ranks, machine, progress);
        }
    }

    /// Each in a job of its own: so many ranks it has.
    fn roles(&self, taken: &mut RunFigures, cases: &[Case], machine: &Machine, progress: &mut Progress) {
        for &case in cases {
            for &ranks in case.ranks() {
                progress.begin(&case.to_string(), self.seconds(case));
                self.by_ranks(taken, &[case], ranks, machine, progress);
            }
        }
    }

    /// Figures of ranks that take turns with each other and with other libraries.
    fn by_ranks(
        &self,
        taken: &mut RunFigures,
        cases: &[Case],
        ranks: usize,
        machine: &Machine,
        progress: &mut Progress,
    ) {
        let effort = self.effort();
        let processors = machine.processors.iter().copied().take(2).collect();
        let peers = if cases.iter().any(|case| case.has_peers()) { self.peers.clone() } else { Vec::new() };
        let (home, sizes) = (self.home.clone(), self.sizes.clone());
        let invited = Invited { peers, home, processors, ranks, sizes, rounds: effort.rounds };
        let (sizes, processors) = (&self.sizes, &machine.processors);
        let wanted = interleaved_jobs::JobsWanted { cases, sizes, ranks, effort, processors, tune: None };
        match interleaved_jobs::take(&wanted, Opponents::new(invited), progress) {
            Ok(told) => {
                // One hand-over is shown: that of two ranks, if they had one.
                let has_one = taken.around.hand_over_way.is_some();
                taken.rows.extend(told.rows.into_iter().filter(|row| !has_one || row.variant != "hand_over"));
                taken
                    .off
                    .extend(told.off.into_iter().filter(|off| !taken.off.contains(off)).collect::<Vec<_>>());
                taken.around.hand_over_way = taken.around.hand_over_way.take().or(told.hand_over_way);
            }
            Err(error) => {
                let why = format!("{error:#}");
                taken.around.failures.extend(cases.iter().map(|&case| (case, why.clone())));
            }
        }
    }

    fn whole(&self, taken: &mut RunFigures, cases: &[Case], machine: &Machine, progress: &mut Progress) {
        let mut jobs = Whole::new(&machine.processors, Effort::FULL.hand_over);
        for &case in cases {
            progress.begin(&case.to_string(), self.seconds(case));
            for &ranks in self.ranks_of(case) {
                match jobs.take(case, ranks, progress) {
                    Ok(rows) => taken.rows.extend(rows),
                    Err(error) => taken.around.failures.push((case, format!("{error:#}"))),
                }
            }
        }
    }

    fn compare(&self, taken: &mut RunFigures) {
        let hand_over = taken.rows.iter().find(|row| row.variant == "hand_over").map(|row| row.median);
        let mut off = std::mem::take(&mut taken.off);
        off.extend(hand_over.map(|ns| too_bad(&taken.rows, ns)).unwrap_or_default());
        for off in &off {
            let case = off.case.map(|case| format!(" in {case}")).unwrap_or_default();
            taken.around.remarks.push(format!("peer off: {}{case}: {}", off.library, off.why));
        }
        let asked = self.peers.iter().map(|&peer| peer.into()).collect();
        comparison::compare(&mut taken.rows, &Field { asked, off });
    }
}
