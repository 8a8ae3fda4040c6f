//! Which groups of figures a run measures, which jobs measure them, and in which order.

use super::effort::Effort;
use super::rank_server::Group;
use super::repetition::{NEEDED, Patience};
use crate::case::{Case, Operation, Played};
use crate::cases::State;
use crate::result::library::Library;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// What the user asks for.
#[derive(Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) cases: Vec<&'static Case>,
    pub(crate) ranks: Vec<usize>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) peers: Vec<Library>,
    pub(crate) is_long: bool,
    /// A file of measured values that jobs are to use instead of the values of this machine.
    pub(crate) tuning: Option<PathBuf>,
}

/// Groups that one job measures one after the other. Several jobs may measure them; then the repetitions of all these
/// jobs count.
pub(crate) struct Stage {
    pub(crate) ranks: usize,
    /// The number of ranks of the jobs that the bench starts for the group.
    pub(crate) ranks_of_jobs: usize,
    pub(crate) jobs: usize,
    pub(crate) groups: Vec<Group>,
}

impl Wanted {
    pub(crate) fn effort(&self) -> Effort {
        if self.is_long { Effort::LONG } else { Effort::USUAL }
    }

    /// Returns when one job stops repeating a group.
    pub(crate) fn patience(&self, group: &Group, jobs: usize) -> Patience {
        let played = group.cases[0].played;
        let wanted = match played {
            _ if group.cases[0].name == "persistent" => NEEDED + 2,
            _ if jobs > 1 && !self.is_long => NEEDED.div_ceil(jobs),
            _ => NEEDED,
        };
        let seconds = match played {
            Played::Jobs if group.cases[0].name == "blacs" => 240,
            Played::Jobs => 60,
            _ if !self.peers.is_empty() => 20,
            _ if self.is_long => 6,
            _ => 3,
        };
        let repetitions_max = if self.is_long { 30 } else { 15 };
        Patience { wanted, repetitions_max, time_max: Duration::from_secs(seconds) }
    }

    /// Returns an estimate of the seconds that all jobs together take for a group.
    pub(crate) fn seconds(&self, group: &Group) -> f64 {
        let of = |case: &&'static Case| {
            let groups: usize = case.operations.iter().map(|one| self.sizes_of(one).len()).sum();
            let groups = if group.state.is_some() { groups * State::ALL.len() } else { groups };
            let peers = if case.peers.is_empty() { 0.0 } else { self.peers.len() as f64 };
            let longer = if self.is_long && case.seconds > 1.0 { 3.0 } else { 1.0 };
            case.seconds * longer / groups.max(1) as f64 + 5.0 * peers
        };
        group.cases.iter().map(of).sum()
    }

    /// Returns the sizes of an operation in this run.
    pub(crate) fn sizes_of<'s>(&'s self, operation: &'s Operation) -> &'s [u64] {
        operation.sizes(&self.sizes, self.is_long)
    }

    fn of(&self, is_of_it: impl Fn(Played) -> bool) -> Vec<&'static Case> {
        self.cases.iter().copied().filter(|case| is_of_it(case.played)).collect()
    }

    fn ranks_of(&self, case: &'static Case) -> Vec<usize> {
        case.ranks(&self.ranks, self.is_long).to_vec()
    }
}

/// Returns the jobs of a run. A group without a job has figures that are not times.
pub(crate) fn stages(wanted: &Wanted) -> Vec<Stage> {
    let group = |cases: Vec<&'static Case>, operation: &str, bytes: u64, state| Group {
        cases,
        operation: operation.into(),
        bytes,
        state,
    };
    let stage = |ranks, groups| Stage { ranks, ranks_of_jobs: ranks, jobs: 1, groups };
    let mut stages = Vec::new();
    // Words: the groups are in the order of the table.
    let mut words: Vec<(Played, Group)> = Vec::new();
    for case in wanted.of(|played| matches!(played, Played::Two(_))) {
        match words.iter_mut().find(|(played, _)| *played == case.played) {
            Some((_, group)) => group.cases.push(case),
            None => {
                let bytes = if case.name == "limit" { 8 } else { wanted.sizes_of(&case.operations[0])[0] };
                words.push((case.played, group(vec![case], "", bytes, None)));
            }
        }
    }
    // Cases that are compared with `message` are measured together with it.
    let needs_message =
        |group: &Group| group.cases.iter().any(|case| ["posted", "oversubscribed"].contains(&case.name));
    let message = crate::case::named("message");
    for (_, group) in words.iter_mut().filter(|(_, group)| needs_message(group)) {
        if !group.cases.contains(&message) {
            group.cases.insert(0, message);
        }
    }
    // The slots of `outstanding` stay in use after the measurement, so the case gets a separate job.
    let is_apart = |(played, _): &(Played, Group)| *played == Played::Two("outstanding");
    let (apart, words): (Vec<_>, Vec<_>) = words.into_iter().partition(is_apart);
    for groups in [words, apart] {
        stages.push(stage(2, groups.into_iter().map(|(_, group)| group).collect()));
    }
    let handlers = wanted.of(|played| played == Played::Handlers);
    stages.push(stage(2, handlers.into_iter().map(|case| group(vec![case], "", 8, None)).collect()));
    // Blocks: two jobs for each size, which allocate their memory in different orders.
    let is_of_blocks = |case: &&'static Case| case.played == Played::Blocks || case.name == "limit";
    let blocks: Vec<&'static Case> = wanted.cases.iter().copied().filter(is_of_blocks).collect();
    let has = |case: &'static Case, bytes: u64| wanted.sizes_of(&case.operations[0]).contains(&bytes);
    let sizes: BTreeSet<u64> =
        blocks.iter().flat_map(|case| wanted.sizes_of(&case.operations[0])).copied().collect();
    for bytes in sizes {
        let cases: Vec<&'static Case> = blocks.iter().copied().filter(|case| has(case, bytes)).collect();
        let groups = State::ALL.map(|state| group(cases.clone(), "", bytes, Some(state))).into();
        stages.push(Stage { jobs: 2, ..stage(2, groups) });
    }
    let collectives = wanted.of(|played| played == Played::Collective);
    let ranks: BTreeSet<usize> = collectives.iter().flat_map(|case| wanted.ranks_of(case)).collect();
    for ranks in ranks {
        let mut groups = Vec::new();
        for case in collectives.iter().filter(|case| wanted.ranks_of(case).contains(&ranks)) {
            for one in case.operations {
                let sizes = wanted.sizes_of(one).iter();
                groups.extend(sizes.map(|&bytes| group(vec![*case], one.name, bytes, None)));
            }
        }
        stages.push(stage(ranks, groups));
    }
    for case in wanted.of(|played| played == Played::Roles) {
        let bytes = case.operations[0].sizes[0];
        stages.extend(
            wanted
                .ranks_of(case)
                .into_iter()
                .map(|ranks| stage(ranks, vec![group(vec![case], "", bytes, None)])),
        );
    }
    for case in wanted.of(|played| matches!(played, Played::Jobs | Played::Memory)) {
        for ranks in wanted.ranks_of(case) {
            let ranks_of_jobs = ranks;
            stages.push(Stage { ranks_of_jobs, ..stage(2, vec![group(vec![case], "", 0, None)]) });
        }
    }
    stages.retain(|stage| !stage.groups.is_empty());
    stages
}
