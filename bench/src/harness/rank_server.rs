//! The ranks of a measuring job. The first rank reads orders from its standard input, sends each order to the other
//! ranks, and answers on its standard output with lines of JSON. All ranks then carry the order out.
//!
//! ```text
//! group N    sets up the group of that number        {"figures": [..]}
//! hand       measures the hand-over                  {"hand_over": ..}
//! go N       one repetition, and the hand-over after it    {"value": .., "after": ..}
//! end
//! ```

use super::effort::Effort;
use crate::case::{Case, Limit, Played};
use crate::cases::block_memory::{Areas, BlockMemory};
use crate::cases::{Repeat, Setup, State, side, wrong};
use crate::limit::{Access, Copies, CopyLimit, HandOver, RemoteLimit, Shared};
use crate::result::key::Key;
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tasuki::{Error, Job, Rank, Slot};

/// Figures that are measured in turn, and may be compared with each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) cases: Vec<&'static Case>,
    pub(crate) operation: String,
    pub(crate) bytes: u64,
    /// The state of the buffers, if the group measures blocks.
    pub(crate) state: Option<State>,
}

impl Group {
    /// Returns the limits that the cases of the group need, or all limits if the group measures the limits themselves.
    /// The hand-over is measured in any case.
    fn limits(&self) -> Vec<Limit> {
        let all: &[Limit] = match self.state {
            Some(_) => &[Limit::Memcpy, Limit::Pair],
            None => &[Limit::RemoteLoad, Limit::RemoteAdd],
        };
        let is_needed = |limit: &Limit| {
            let by = |case: &&'static Case| case.name == "limit" || case.limit == Some(*limit);
            self.cases.iter().any(by) || (self.state.is_some() && *limit == Limit::Memcpy)
        };
        all.iter().copied().filter(is_needed).collect()
    }
}

/// What a job measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) groups: Vec<Group>,
    pub(crate) effort: Effort,
    /// The file that contains the memory of the limits. Without a file, neither limits nor the hand-over are measured.
    pub(crate) limits_file: Option<String>,
    /// True if the limits allocate their memory for blocks before the cases do.
    pub(crate) limits_first: bool,
    /// The variant of the hand-over, if it is known.
    pub(crate) way: Option<usize>,
}

impl Plan {
    /// Returns true if the ranks of the job have handlers.
    pub(crate) fn has_handlers(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.cases).any(|case| case.played == Played::Handlers)
    }
}

/// An answer of the first rank.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Reply {
    Ready { ready: usize, way: String },
    Figures { figures: Vec<Key> },
    HandOver { hand_over: f64 },
    Repetition { value: f64, after: Option<f64> },
}

/// Reads a line.
pub(crate) fn read_order() -> tasuki::Result<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| Error::from_io("standard input", &error))?;
    Ok(line)
}

/// The slot on which the first rank sends orders to the other ranks.
const ORDERS: Slot = Slot(1000);
/// Time for the processes that delivered an order to leave the processors.
const SETTLE: Duration = Duration::from_micros(300);

/// The orders that the ranks receive, each as one word.
const END: u64 = 0;
const HAND_OVER: u64 = 1;
const GROUP: u64 = 1 << 32;
const GO: u64 = 1 << 33;

/// Returns the next order, on all ranks. Only the first two ranks receive the order to measure the hand-over.
fn next_order(job: &Job, read_order: &dyn Fn() -> tasuki::Result<String>) -> tasuki::Result<u64> {
    let (world, mut order) = (job.world(), [END]);
    if job.rank() != Rank(0) {
        return world.recv(&mut order, Rank(0), ORDERS).map(|_| order[0]);
    }
    let line = read_order()?;
    std::thread::sleep(SETTLE);
    let mut words = line.split_whitespace();
    let word = words.next().unwrap_or("end");
    let number = words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    order[0] = match word {
        "hand" => HAND_OVER,
        "group" => GROUP | number,
        "go" => GO | number,
        _ => END,
    };
    // The first two ranks receive the order last: when they begin, the other ranks already wait for the next order.
    let others = 1..if word == "hand" { 2 } else { job.size() };
    others.rev().try_for_each(|rank| world.send(&order, Rank(rank), ORDERS))?;
    Ok(order[0])
}

/// Carries out orders until the order to end. Collective.
pub(crate) fn serve<'j>(
    job: &'j Job,
    plan: &'j Plan,
    read_order: &dyn Fn() -> tasuki::Result<String>,
    say: &dyn Fn(&str),
) -> tasuki::Result<()> {
    let shared = plan.limits_file.as_ref().map(|file| Shared::open(file)).transpose();
    let shared = shared.map_err(|error| Error::from_io("the memory of the limits", &error))?.map(Arc::new);
    let of_two = shared.clone().filter(|_| job.rank() <= Rank(1));
    let mut clock = of_two.map(|shared| HandOver::new(shared, side(job), plan.effort.hand_over, plan.way));
    let (ready, way) = clock.as_ref().map_or((0, String::new()), |clock| (clock.way(), clock.describe()));
    let answer = |reply: Reply| {
        if let (Rank(0), Ok(line)) = (job.rank(), serde_json::to_string(&reply)) {
            say(&line);
        }
    };
    let mut memory = Memory { shared, blocks: None, copies: None };
    let (mut group, mut figures): (usize, Vec<Repeat<'j>>) = (0, Vec::new());
    answer(Reply::Ready { ready, way });
    loop {
        match next_order(job, read_order)? {
            END => return job.barrier(),
            HAND_OVER => answer(Reply::HandOver { hand_over: clock.as_mut().map_or(0.0, HandOver::measure) }),
            order if order & GROUP != 0 => {
                figures.clear();
                group = (order & !GROUP) as usize;
                let keys;
                (keys, figures) = memory.set_up(job, plan, group)?;
                answer(Reply::Figures { figures: keys });
            }
            order => {
                let number = (order & !GO) as usize;
                let repeat = figures
                    .get_mut(number)
                    .ok_or_else(|| wrong(&format!("figure {number} of group {group}")))?;
                let value = repeat()?;
                answer(Reply::Repetition { value, after: clock.as_mut().map(HandOver::measure) });
            }
        }
    }
}

/// Memory that groups share.
struct Memory<'j> {
    shared: Option<Arc<Shared>>,
    blocks: Option<Rc<BlockMemory<'j>>>,
    copies: Option<Rc<Copies>>,
}

impl<'j> Memory<'j> {
    fn set_up(
        &mut self,
        job: &'j Job,
        plan: &'j Plan,
        number: usize,
    ) -> tasuki::Result<(Vec<Key>, Vec<Repeat<'j>>)> {
        let group = &plan.groups[number];
        let (effort, bytes, state) = (plan.effort, group.bytes, group.state.unwrap_or_default());
        let mut setup = Setup { job, effort, operation: &group.operation, bytes, state, blocks: None };
        if group.state.is_some() {
            self.take_areas(&setup, plan.limits_first, group)?;
            setup.blocks = self.blocks.clone();
        }
        let (mut keys, mut repeats): (Vec<Key>, Vec<Repeat<'j>>) = (Vec::new(), Vec::new());
        // A case that needs a job to itself is measured by that job, which has no limits.
        for case in group.cases.iter().filter(|case| case.job.is_none() || self.shared.is_none()) {
            for figure in (case.set_up)(&setup)? {
                let key = Key::ours(case, &figure.variant, figure.bytes.unwrap_or(bytes));
                keys.push(Key { setting: figure.way.into(), ..key });
                repeats.push(figure.repeat);
            }
        }
        let limits = if self.shared.is_some() { group.limits() } else { Vec::new() };
        for limit in limits {
            keys.push(Key::limit(limit, state, bytes));
            repeats.push(self.limit(&setup, limit)?);
        }
        Ok((keys, repeats))
    }

    /// Allocates memory for blocks of one size, for the limits first or for the cases first. The order matters because
    /// copies are faster in memory that was allocated later.
    fn take_areas(&mut self, s: &Setup<'j>, limits_first: bool, group: &Group) -> tasuki::Result<()> {
        let bytes = s.effort.area(s.bytes);
        for limits in [limits_first, !limits_first] {
            if limits && self.copies.is_none() {
                let shared = self.shared.clone().ok_or_else(|| wrong("the memory of the limits"))?;
                let copies = Copies::new(shared, s.side(), bytes);
                self.copies =
                    Some(Rc::new(copies.map_err(|error| Error::from_io("memory to copy", &error))?));
                s.job.barrier()?;
            }
            if !limits && self.blocks.is_none() {
                let has = |names: &[&str]| group.cases.iter().any(|case| names.contains(&case.name));
                let areas = Areas {
                    own_source: has(&["bandwidth_put", "bandwidth_own", "bandwidth_stream"]),
                    own_target: has(&["bandwidth_own", "bandwidth_stream"]),
                    job_source: has(&["bandwidth_job", "shared_copy"]),
                    job_target: has(&["bandwidth_put", "bandwidth_job", "shared_copy"]),
                };
                self.blocks = Some(Rc::new(BlockMemory::new(s, areas, bytes)?));
            }
        }
        Ok(())
    }

    fn limit(&self, s: &Setup<'j>, limit: Limit) -> tasuki::Result<Repeat<'j>> {
        let missing = || wrong("the memory of the limits");
        if let Limit::Memcpy | Limit::Pair = limit {
            let copies = self.copies.clone().ok_or_else(missing)?;
            let shape = (s.bytes as usize, s.effort.places(s.bytes, s.state.cold));
            let blocks = s.effort.blocks(s.bytes);
            let mut copy = CopyLimit::new(copies, shape, s.state.fresh, limit == Limit::Pair, blocks);
            return Ok(Box::new(move || copy.measure().ok_or_else(|| wrong("the limit of copies"))));
        }
        let access = if limit == Limit::RemoteAdd { Access::Add } else { Access::Load };
        let (words, passes) = (s.effort.times(10_000) as usize, s.effort.times(10));
        let shared = self.shared.clone().ok_or_else(missing)?;
        let mut remote = RemoteLimit::new(shared, s.side(), words, passes, access);
        Ok(Box::new(move || remote.measure().ok_or_else(|| wrong("the limit of remote access"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CASES;
    use crate::harness::schedule_of_run::{Wanted, stages};
    use crate::limit::SharedFile;
    use crate::result::library::Library;
    use std::sync::Mutex;

    /// Measures each figure of a job of threads once.
    fn figures(ranks: usize, groups: Vec<Group>, has_limits: bool) -> Vec<Key> {
        let effort = Effort::TINY;
        let area = groups.iter().map(|group| effort.area(group.bytes.max(8))).max().unwrap();
        let file = SharedFile::create(Copies::bytes(area)).unwrap();
        let limits_file = has_limits.then(|| file.path());
        let groups_left = Mutex::new((0..groups.len()).rev().collect::<Vec<_>>());
        let plan = Plan { groups, effort, limits_file, limits_first: true, way: None };
        let (keys, orders) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let read_order = || {
            let next =
                || groups_left.lock().unwrap().pop().map_or("end".into(), |group| format!("group {group}"));
            Ok(orders.lock().unwrap().pop().unwrap_or_else(next))
        };
        let say = |line: &str| match serde_json::from_str(line).unwrap() {
            Reply::Figures { figures } => {
                orders.lock().unwrap().extend((0..figures.len()).map(|number| format!("go {number}")));
                orders.lock().unwrap().push("hand".into());
                keys.lock().unwrap().extend(figures);
            }
            Reply::Repetition { value, after } => {
                assert!(value > 0.0 && after.is_none_or(|after| after > 0.0), "{line}");
            }
            _ => {}
        };
        let handlers =
            if plan.has_handlers() { crate::cases::commands::handlers() } else { tasuki::Handlers::new() };
        tasuki::local_with(ranks, &handlers, |job| serve(job, &plan, &read_order, &say)).unwrap();
        keys.into_inner().unwrap()
    }

    #[test]
    fn every_case_has_its_figures_and_their_limits() {
        let wanted = Wanted {
            cases: CASES.iter().collect(),
            sizes: vec![64, 4096],
            ranks: vec![3],
            ..Wanted::default()
        };
        for stage in stages(&wanted).into_iter().filter(|stage| !stage.groups.is_empty()) {
            let names = format!("{:?}", stage.groups);
            let keys = figures(stage.ranks, stage.groups.clone(), true);
            for (index, key) in keys.iter().enumerate() {
                assert!(!keys[..index].contains(key), "{key:?} twice");
                let limit = key.limited_by().filter(|limit| limit.variant != "hand_over");
                assert!(
                    key.library == Library::Limit || limit.is_none_or(|limit| keys.contains(&limit)),
                    "{key:?}"
                );
            }
            for case in stage.groups.iter().flat_map(|group| &group.cases) {
                let is_of_ranks = !matches!(case.played, Played::Jobs | Played::Memory) && case.job.is_none();
                let is_there = keys.iter().any(|key| key.case == *case);
                assert_eq!(is_there, is_of_ranks, "{}: {names}", case.name);
            }
        }
    }

    #[test]
    fn jobs_of_their_own_play_their_case() {
        for (name, ranks, count) in [("oversubscribed", 4, 2), ("overlap_coll", 2, 8)] {
            let cases = vec![crate::case::named(name)];
            let group = Group { cases, operation: String::new(), bytes: 8, state: None };
            assert_eq!(figures(ranks, vec![group], false).len(), count, "{name}");
        }
    }

    #[test]
    fn variants_are_those_that_are_documented() {
        let of = |name: &str, operation: &str| {
            let cases = vec![crate::case::named(name)];
            let group = Group { cases, operation: operation.into(), bytes: 8, state: None };
            let keys = figures(3, vec![group], true);
            keys.into_iter().map(|key| key.variant).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("persistent", "bcast"), "bcast bcast_call last_bcast");
        assert_eq!(of("single_driver", "allgather"), "allgather_spread allgather_driven");
        assert_eq!(of("nonblocking", "iallreduce"), "iallreduce iallreduce_call");
    }
}
