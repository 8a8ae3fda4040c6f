//! Bytes that a rank takes, compared with the formulas of docs/guide/memory.md: without communication, with messages,
//! with plans.

use super::collectives::algorithm;
use crate::harness::process_role::{ProcessRole, report};
use crate::result::target::Demand;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::time::Duration;
use tasuki::collective::quiesce;
use tasuki::message::{RecvRequest, SendRequest};
use tasuki::schedule::{CollectiveKind, RankPart, Schedule, Shape};
use tasuki::{Job, Rank, Request, Slot, Sum};

/// A figure: the bytes of each rank, and the value of the formula.
pub(crate) struct MemoryFigure {
    pub(crate) variant: String,
    pub(crate) bytes: Vec<f64>,
    pub(crate) setting: String,
    pub(crate) demands: Vec<Demand>,
}

impl MemoryFigure {
    fn by_formula(variant: &str, bytes: Vec<f64>, formula: u64) -> MemoryFigure {
        let (setting, demands) = (format!("by formula {formula}"), vec![Demand::Exactly(formula as f64)]);
        MemoryFigure { variant: variant.into(), bytes, setting, demands }
    }
}

/// Jobs of more ranks than this are simulated.
const PROCESSES_MAX: usize = 256;
/// Plans are not measured with more ranks than this, because checking them takes long.
const PLANNING_RANKS_MAX: usize = 16;

/// Returns all figures of a job of this many ranks.
pub(crate) fn figures(ranks: usize) -> anyhow::Result<Vec<MemoryFigure>> {
    let mut figures = Vec::new();
    if ranks <= PROCESSES_MAX {
        figures.extend(of_ranks(ranks)?);
    }
    if ranks >= 3 {
        figures.extend(of_messages(ranks)?);
    }
    if (2..=PLANNING_RANKS_MAX).contains(&ranks) {
        figures.extend(of_plans(ranks)?);
    }
    Ok(figures)
}

/// Returns the numbers that the ranks reported under this name.
fn named(reports: &[(String, u64)], name: &str, ranks: usize) -> anyhow::Result<Vec<f64>> {
    let bytes: Vec<f64> =
        reports.iter().filter(|(what, _)| what == name).map(|&(_, bytes)| bytes as f64).collect();
    ensure!(bytes.len() == ranks, "{} of {ranks} ranks reported {name}", bytes.len());
    Ok(bytes)
}

/// The system provides memory in pages of this many bytes.
const PAGE: u64 = 4096;
/// Bytes of job memory that every rank allocates, and the number of signals that every rank makes and another rank
/// raises.
const ALLOCATED: u64 = 1 << 20;
const SIGNALS: u64 = 1000;
/// What a rank has done when its memory is measured. Each step is done in addition to the steps before it.
const STEPS: [&str; 4] = ["fixed", "alloc_1MiB", "signals_1000", "all_peers"];

/// Returns the number of ranks with which a rank exchanges signals in a barrier.
fn distances(ranks: u64) -> u64 {
    u64::from(ranks.next_power_of_two().trailing_zeros())
}

/// Returns the bytes of the pages of the memory file: pages that every rank has, signals, allocated memory and the map
/// of allocated memory.
fn file(signals: u64, allocated: u64, stretches: u64) -> u64 {
    PAGE * (13 + (128 * signals).div_ceil(PAGE).max(1) + allocated.div_ceil(PAGE) + stretches)
}

/// Returns the bytes of private tables about the peers that a rank has reached.
fn tables(ranks: u64, peers: u64) -> u64 {
    16 * ranks + (312 + 256) * (peers + 1)
}

fn formula_of_step(step: usize, ranks: u64) -> u64 {
    let signals = 2 * distances(ranks) + if step >= 2 { SIGNALS } else { 0 };
    let allocated = if step >= 1 { ALLOCATED } else { 0 };
    let peers = if step >= 3 { ranks - 1 } else { distances(ranks) };
    file(signals, allocated, u64::from(step >= 1)) + tables(ranks, peers)
}

fn wait_in_vain(job: &Job) -> tasuki::Result<()> {
    job.signal()?.reaches(1).wait_timeout(Duration::from_millis(2)).map(drop)
}

/// Each rank does the steps and reports its bytes after each step.
pub(crate) fn stepping_ranks(job: &Job, report: &dyn Fn(&str, u64)) -> tasuki::Result<()> {
    let next = Rank((job.rank().0 + 1) % job.size());
    let look = |step: usize| {
        job.barrier()?;
        let memory = job.memory();
        report(STEPS[step], memory.file + memory.peers);
        job.barrier()
    };
    wait_in_vain(job)?;
    look(0)?;
    let memory = job.alloc::<u8>(ALLOCATED as usize)?;
    look(1)?;
    // One signal was made for the first step.
    (1..SIGNALS).try_for_each(|_| job.raise(job.signal()?.on(next), 1))?;
    look(2)?;
    job.ranks().try_for_each(|rank| job.put(memory.on(rank).at(job.rank().index()), &[1]))?;
    look(3)
}

fn of_ranks(ranks: usize) -> anyhow::Result<Vec<MemoryFigure>> {
    let reports = ProcessRole::RankMemory.reports(ranks, &[])?;
    let of = |(step, name): (usize, &&str)| {
        let formula = formula_of_step(step, ranks as u64);
        Ok(MemoryFigure::by_formula(name, named(&reports, name, ranks)?, formula))
    };
    STEPS.iter().enumerate().map(of).collect()
}

/// Slots on which messages are exchanged. They are chosen so that all pages that contain the slots of a pair are
/// touched.
const SLOTS: [Slot; 3] = [Slot(0), Slot(32), Slot(63)];
/// Bytes of the 64 slots of a pair, on either rank; bytes of an entry, in the memory of the lower of the two ranks;
/// bytes of the head of a list of entries (there is one list for each number of a peer); private bytes for each peer.
const UNIT: u64 = 8320;
const ENTRY: u64 = 32;
const HEAD: u64 = 8;
const PRIVATE: u64 = 1200;
/// Bytes of the inbox of a simulated rank.
const INBOX: u64 = 72_320;

/// Returns the bytes that the first rank takes when it has exchanged messages with this many peers, in both directions.
fn formula_of_messages(ranks: u64, peers: u64) -> u64 {
    let file = file(2 * distances(ranks), 0, 0);
    let fixed = match ranks as usize > PROCESSES_MAX {
        true => file + INBOX.next_multiple_of(PAGE),
        false => file + tables(ranks, peers.max(distances(ranks))),
    };
    let bytes = [1, HEAD * (1 + peers), ENTRY * peers, UNIT * peers]; // the first counts what is taken
    let pages: u64 = bytes.iter().map(|bytes| bytes.div_ceil(PAGE)).sum();
    fixed + PAGE * pages + PRIVATE * peers
}

/// The first rank exchanges messages with one other rank, then with all others, and reports its bytes after each
/// exchange.
pub(crate) fn sending_ranks(job: &Job, report: &dyn Fn(&str, u64)) -> tasuki::Result<()> {
    wait_in_vain(job)?;
    for (what, peers) in [("one", 1..2), ("all", 2..job.size())] {
        exchange(job, peers)?;
        job.barrier()?;
        if job.rank() == Rank(0) {
            let memory = job.memory();
            report(what, memory.file + memory.peers + memory.bank_tables);
        }
        job.barrier()?;
    }
    Ok(())
}

/// The first rank opens all pairs before the other ranks do. If both ranks of a pair open it at the same moment, one of
/// them allocates memory and frees it again, and this memory remains in the file. The messages of the first rank find
/// no receive posted. It therefore checks whether a receive for any slot is posted, and so touches all lines that a
/// pair can ever touch.
fn exchange(job: &Job, peers: std::ops::Range<usize>) -> tasuki::Result<()> {
    let (me, world) = (job.rank(), job.world());
    let (mut receives, mut sends): (Vec<RecvRequest<u64>>, Vec<SendRequest<u64>>) = (Vec::new(), Vec::new());
    if me == Rank(0) {
        for peer in peers.clone() {
            for slot in SLOTS {
                receives.push(world.irecv(vec![0], Rank(peer), slot)?);
                sends.push(world.isend(vec![peer as u64], Rank(peer), slot)?);
            }
        }
    }
    job.barrier()?;
    if me != Rank(0) && peers.contains(&me.0) {
        SLOTS.iter().try_for_each(|&slot| world.send(&[me.0 as u64], Rank(0), slot))?;
        SLOTS.iter().try_for_each(|&slot| world.recv(&mut [0_u64], Rank(0), slot).map(drop))?;
    }
    receives.into_iter().try_for_each(|mut receive| receive.wait().map(drop))?;
    sends.into_iter().try_for_each(|mut send| send.wait().map(drop))
}

fn of_messages(ranks: usize) -> anyhow::Result<Vec<MemoryFigure>> {
    let simulated = ["--fabric", "sim", "--seed", "1"].map(String::from);
    let options: &[String] = if ranks > PROCESSES_MAX { &simulated } else { &[] };
    let reports = ProcessRole::MessageMemory.reports(ranks, options)?;
    let (one, all) = (named(&reports, "one", 1)?, named(&reports, "all", 1)?);
    let each = (all[0] - one[0]) / (ranks - 2) as f64;
    let of = |peers| formula_of_messages(ranks as u64, peers);
    let mut one = MemoryFigure::by_formula("messages_1_peer", one, of(1));
    one.demands.push(Demand::Below(f64::from(1 << 20)));
    let each = MemoryFigure {
        variant: "messages_each".into(),
        bytes: vec![each],
        setting: "a peer beyond the first".into(),
        demands: vec![Demand::Below(f64::from(10 << 10))],
    };
    Ok(vec![one, MemoryFigure::by_formula("messages_all", all, of(ranks as u64 - 1)), each])
}

/// Number of bytes that a rank contributes to a plan.
const BYTES: u64 = 8 << 10;
/// A name, the operation, its algorithm, and true if one rank runs the whole plan.
const PLANS: [(&str, CollectiveKind, &str, bool); 4] = [
    ("bcast_spread", CollectiveKind::Bcast, "binary", false),
    ("bcast_driven", CollectiveKind::Bcast, "binary", true),
    ("sum_spread", CollectiveKind::Allreduce, "tree", false),
    ("sum_driven", CollectiveKind::Allreduce, "tree", true),
];
/// The variant for the memory that is still in use after all ranks have dropped their plans.
const LEFT: &str = "plans_freed";
/// Buffers begin at multiples of `BUFFER` bytes. The other constants are the bytes of a signal, of a queue without its
/// places, and of a place of a queue.
const BUFFER: u64 = 128;
const SIGNAL: u64 = 128;
const QUEUE: u64 = 17_024;
const PLACE: u64 = 216;

fn schedule(
    ranks: usize,
    (_, kind, name, is_driven): (&str, CollectiveKind, &str, bool),
) -> tasuki::Result<Schedule> {
    let spread = algorithm(kind, name)?.schedule(&Shape::new(kind, ranks, 0, BYTES), 1);
    Ok(if is_driven { spread.driven_by(0) } else { spread })
}

fn buffers(part: &RankPart) -> u64 {
    part.buffer_decls().iter().map(|room| room.bytes.next_multiple_of(BUFFER) * room.kind.times()).sum()
}

/// Returns the bytes that a rank's part takes when it is prepared. They are its signals, and one more with which a
/// member that leaves publishes the number of its starts; its buffers, each as often as consecutive starts use
/// different copies of it; and its queues, with room for the commands of all starts that may be in progress. A command
/// that raises two signals takes two places.
fn formula_of_plan(part: &RankPart) -> u64 {
    let starts = part.buffer_decls().iter().map(|room| room.kind.times()).max().unwrap_or(1);
    let mut queues: BTreeMap<u16, u64> = BTreeMap::new();
    for step in part.steps() {
        let places = if step.effects().count() > 1 { 2 } else { 1 };
        *queues.entry(step.queue.0).or_default() += starts * places;
    }
    let queues = queues.values().map(|places| QUEUE + PLACE * places.next_power_of_two());
    SIGNAL * (part.signal_decls().len() as u64 + 1) + buffers(part) + queues.sum::<u64>()
}

/// Each rank prepares the plans one after the other, starts each once, and reports by how many bytes its memory has
/// grown since before the preparation.
pub(crate) fn planning_ranks(job: &Job, report: &dyn Fn(&str, u64)) -> tasuki::Result<()> {
    // The first number counts buffers and queues, the second buffers and signals. Their sum counts the memory of plans,
    // and the buffers twice.
    let look = || (job.memory().local, job.memory().plans);
    quiesce(job.world())?;
    let first = look();
    for plan in PLANS {
        let schedule = schedule(job.size(), plan)?;
        let before = look();
        let mut planned = job.world().plan::<u64>((&schedule, Sum))?;
        let now = look();
        planned.start()?;
        planned.wait()?;
        let both = now.0 - before.0 + now.1 - before.1;
        report(plan.0, both - buffers(&schedule.part(job.rank().index())));
        drop(planned);
        quiesce(job.world())?;
    }
    let left = look();
    report(LEFT, left.0.abs_diff(first.0) + left.1.abs_diff(first.1));
    Ok(())
}

fn of_plans(ranks: usize) -> anyhow::Result<Vec<MemoryFigure>> {
    let reports = ProcessRole::PlanMemory.reports(ranks, &[])?;
    let mut figures = Vec::new();
    for plan in PLANS {
        let schedule = schedule(ranks, plan).context("a plan")?;
        let mut formulas: Vec<u64> = (0..ranks).map(|rank| formula_of_plan(&schedule.part(rank))).collect();
        formulas.sort_unstable();
        let median = (formulas[(ranks - 1) / 2] + formulas[ranks / 2]) / 2;
        figures.push(MemoryFigure::by_formula(plan.0, named(&reports, plan.0, ranks)?, median));
    }
    figures.push(MemoryFigure::by_formula(LEFT, named(&reports, LEFT, ranks)?, 0));
    Ok(figures)
}

/// A function that each rank runs and that reports numbers by name.
type Reporting = fn(&Job, &dyn Fn(&str, u64)) -> tasuki::Result<()>;

/// Makes a function that runs `app` and reports on standard output.
pub(crate) fn reporting(app: Reporting) -> impl Fn(&Job) -> tasuki::Result<()> {
    move |job| app(job, &report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Returns the reports of the ranks of a job of threads: rank, name, bytes.
    fn reports(ranks: usize, app: Reporting) -> Vec<(usize, String, u64)> {
        let all = Mutex::new(Vec::new());
        tasuki::local(ranks, |job| {
            let rank = job.rank().index();
            app(job, &|what, bytes| all.lock().unwrap().push((rank, what.to_string(), bytes)))
        })
        .unwrap();
        all.into_inner().unwrap()
    }

    /// Checks what the ranks of a job report. A rank that has waited for a millisecond, on a busy machine, has looked
    /// at ranks that it needs for nothing else, and takes a few bytes for each: then the job runs again.
    fn check(ranks: usize, app: Reporting, expected: impl Fn(usize, &str) -> u64) {
        let mut differs = Vec::new();
        for _ in 0..10 {
            differs = reports(ranks, app);
            differs.retain(|(rank, what, bytes)| *bytes != expected(*rank, what));
            if differs.is_empty() {
                return;
            }
        }
        let expected: Vec<u64> = differs.iter().map(|(rank, what, _)| expected(*rank, what)).collect();
        panic!("{ranks} ranks report {differs:?}, the formulas say {expected:?}");
    }

    #[test]
    fn ranks_take_what_the_formulas_say() {
        for ranks in [1, 2, 5] {
            check(ranks, stepping_ranks, |_, what| {
                let step = STEPS.iter().position(|step| *step == what).unwrap();
                formula_of_step(step, ranks as u64)
            });
            check(ranks, planning_ranks, |rank, what| {
                let plan = PLANS.into_iter().find(|plan| plan.0 == what);
                plan.map_or(0, |plan| formula_of_plan(&schedule(ranks, plan).unwrap().part(rank)))
            });
        }
        for ranks in [3, 12, 64] {
            let peers = |what: &str| if what == "one" { 1 } else { ranks as u64 - 1 };
            check(ranks, sending_ranks, |_, what| formula_of_messages(ranks as u64, peers(what)));
        }
    }
}
