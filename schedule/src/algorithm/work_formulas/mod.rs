//! The work of each algorithm in closed form: the textbook formulas, and the overhead of the schedules.
//!
//! `p` ranks, `o` others; `n` bytes of a broadcast, reduction or scan, or of a block otherwise; `l` and `c` are the
//! logarithm of p to base 2, rounded down and up. The tests compare steps, bytes and memory with those of the
//! schedules. The numbers of rounds on shared processors are a rule fitted to measurements: the rank that comes last
//! runs the remaining steps of others, so a reduction up a tree takes fewer rounds than levels.
//!
//! Sources: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005), for the
//! algorithms named there; Patarasuk, Yuan (2009), rings of reductions; Bruck et al. (1997); Hillis, Steele (1986),
//! scans; Hensgen, Finkel, Manber (1988), the barrier; the collective interface of ACP, figure 6, command lists.

mod inter_node;

use crate::algorithm::layout::tree::Tree;
use crate::algorithm::{Algorithm, CollectiveKind, doublings, scan, two_level};
use crate::combining_order::{self, GROUP};
use crate::shape::{Counts, Shape};

/// An amount of work.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Load {
    /// On the critical path, if each rank has a processor of its own.
    pub longest: f64,
    /// Of all ranks together.
    pub all: f64,
}

/// The work of an algorithm in one start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Hand-overs on the critical path, if each rank has a processor of its own.
    pub hops: f64,
    /// Those of them between nodes, if several ranks share each of several nodes; 0 otherwise.
    pub between: f64,
    /// Bytes that the busiest node sends or receives then.
    pub carried: f64,
    /// Number of turns that each rank needs, if ranks share processors.
    pub rounds: f64,
    /// Steps. `longest`: of the rank with the most steps, or on the critical path.
    pub steps: Load,
    /// Bytes copied.
    pub copied: Load,
    /// Bytes combined.
    pub combined: Load,
    /// Bytes of scratch memory on the rank with the most.
    pub scratch: f64,
    /// True if a rank has a signal for each other rank.
    pub has_signal_per_rank: bool,
}

/// The sizes that formulas use.
#[derive(Clone, Copy)]
struct Sizes {
    p: f64,
    o: f64,
    n: f64,
    l: f64,
    c: f64,
    /// The largest power of two not above p, and the number of ranks folded into others.
    whole: f64,
    folded: f64,
    /// Number of bits set in all numbers below p: how often blocks are forwarded in rounds of doubling distance.
    ones: f64,
    /// Ranks in the largest subtree below the root of a binomial tree.
    subtree: f64,
    /// The tree up which values go, binomial or that of the combining order.
    up: UpTree,
    /// 1 if values must be combined in the combining order and the result arises at rank 0, not the root; and if they
    /// must and the root has two ranks before it. 0 otherwise.
    moved: f64,
    aside: f64,
}

/// The tree up which values of a reduction go.
#[derive(Clone, Copy)]
struct UpTree {
    depth: f64,
    children: f64,
    rounds: f64,
}

impl UpTree {
    fn of(shape: &Shape) -> UpTree {
        if combining_order::is_demanded(shape) {
            return UpTree::in_groups(shape.ranks);
        }
        let (depth, children) = (f64::from(shape.ranks.ilog2()), doublings(shape.ranks) as f64);
        UpTree { depth, children, rounds: (children + 1.0) / 2.0 }
    }

    fn in_groups(ranks: usize) -> UpTree {
        let (depth, children) = (scan::tree::prefix_levels_max(ranks), Tree::GROUPS.children_max(ranks));
        UpTree { depth: depth as f64, children: children as f64, rounds: depth as f64 }
    }
}

impl Sizes {
    fn of(shape: &Shape) -> Sizes {
        let ranks = shape.ranks;
        let (c, l) = (doublings(ranks), ranks.ilog2());
        let set = |bit: usize| {
            let (period, half) = (2 << bit, 1 << bit);
            ranks / period * half + (ranks % period).saturating_sub(half)
        };
        let top = ranks.next_power_of_two() / 2;
        let n = match &shape.counts {
            Counts::Equal(bytes) => *bytes as f64,
            Counts::Each(_) => shape.bytes_of_all() as f64 / ranks as f64,
            Counts::Matrix(all) => all.iter().sum::<u64>() as f64 / (ranks * ranks) as f64,
            Counts::Graph(_) => shape.buffer_bytes(0)[0] as f64,
        };
        let is_demanded = combining_order::is_demanded(shape);
        let one_if = |is_so: bool| if is_demanded && is_so { 1.0 } else { 0.0 };
        Sizes {
            up: UpTree::of(shape),
            moved: one_if(shape.root > 0),
            aside: one_if(shape.root > 1),
            p: ranks as f64,
            o: ranks as f64 - 1.0,
            n,
            l: f64::from(l),
            c: c as f64,
            whole: (1_usize << l) as f64,
            folded: (ranks - (1 << l)) as f64,
            ones: (0..c).map(set).sum::<usize>() as f64,
            subtree: ranks.saturating_sub(top).max(top / 2) as f64,
        }
    }
}

/// Work with these hand-overs and rounds, steps (longest and all), and bytes copied (longest and all).
pub(crate) fn work((hops, rounds): (f64, f64), steps: (f64, f64), copied: (f64, f64)) -> Work {
    let load = |(longest, all)| Load { longest, all };
    Work { hops, rounds, steps: load(steps), copied: load(copied), ..Work::default() }
}

impl Work {
    /// Adds bytes combined.
    pub(crate) fn combining(self, longest: f64, all: f64) -> Work {
        Work { combined: Load { longest, all }, ..self }
    }

    /// Adds bytes of scratch memory.
    pub(crate) fn with_scratch(self, scratch: f64) -> Work {
        Work { scratch, ..self }
    }

    /// Adds hand-overs and bytes between nodes.
    pub(crate) fn between(self, between: f64, carried: f64) -> Work {
        Work { between, carried, ..self }
    }

    /// Marks work with a signal for each other rank.
    fn with_signal_per_rank(self) -> Work {
        Work { has_signal_per_rank: true, ..self }
    }
}

/// The work of an algorithm for a shape; `None` if it depends on more than the sizes.
pub(crate) fn of(algorithm: &Algorithm, shape: &Shape) -> Option<Work> {
    if algorithm.name == two_level::BCAST.name {
        return two_level::work_of(shape);
    }
    let sizes = Sizes::of(shape);
    if algorithm.is_inline() {
        return Some(inline(algorithm, sizes)); // among ranks that share a node
    }
    let work = on_one_level(algorithm, sizes)?;
    Some(inter_node::with(work, sizes.n, algorithm, shape))
}

/// The work without regard to the placement.
fn on_one_level(algorithm: &Algorithm, sizes: Sizes) -> Option<Work> {
    use CollectiveKind::*;
    match algorithm.collective {
        Barrier => barrier(algorithm.name, sizes),
        Bcast => bcast(algorithm.name, sizes),
        Reduce => reduce(algorithm.name, sizes),
        Allreduce => allreduce(algorithm.name, sizes),
        Gather | Scatter => gather_scatter(algorithm.collective, algorithm.name, sizes),
        Allgather => allgather(algorithm.name, sizes),
        Alltoall => alltoall(algorithm.name, sizes),
        ReduceScatter => reduce_scatter(algorithm.name, sizes),
        Scan | Exscan => scan(algorithm.collective, algorithm.name, sizes),
        Neighbours => Some(work((2.0, 2.0), (8.0, 8.0 * sizes.p), (sizes.n, sizes.p * sizes.n))),
    }
}

/// The work of the algorithms whose steps the calling thread runs.
fn inline(algorithm: &Algorithm, Sizes { p, o, n, .. }: Sizes) -> Work {
    use CollectiveKind::*;
    let is_pair = p == 2.0;
    let (once, signals) = ((1.0, 1.0), 1.5 * o); // a step signals two ranks, and each signal is waited for
    let places = if is_pair { 1.0 } else { 4.0 };
    match algorithm.collective {
        Barrier => work(once, (o / 2.0, p * p / 2.0), (0.0, 0.0)),
        Bcast if algorithm.name == "put and get" => work((2.0, 2.0), (2.0, 4.0), (n / 2.0, n)),
        Bcast => work(once, (signals + 2.5, 4.5 * p), (2.0 * n, p * n)).with_scratch(places * n),
        Scatter => work(once, (4.0 * o, 7.0 * o), (p * n, 2.0 * o * n)).with_scratch(places * p * n),
        Gather => work(once, (signals + 2.0, 5.5 * o), (p * n, 2.0 * o * n)).with_scratch(places * n),
        Reduce => {
            work(once, (signals + 2.0, 5.5 * o), (n, o * n)).combining(o * n, o * n).with_scratch(places * n)
        }
        Allreduce if algorithm.name == "reduce scatter allgather" => {
            let copied = 2.0 * o + 1.0 + 2.0 * (p - 2.0) / p;
            work((2.0, 2.0), (6.0 * o, 6.0 * o * p), (copied / p * n, copied * n))
                .combining(o / p * n, o * n)
                .with_scratch(if is_pair { n } else { 2.0 * n * (p + 1.0) / p })
        }
        Allreduce => work(once, (signals + 4.0, p * (signals + 4.0)), (2.0 * n, 2.0 * o * n))
            .combining(o * n, p * o * n)
            .with_scratch(2.0 * n),
        ReduceScatter => {
            work(once, (signals + 4.0, p * (signals + 4.0)), ((p + 1.0) * n, (p * p + p - 2.0) * n))
                .combining(o * n, p * o * n)
                .with_scratch(2.0 * p * n)
        }
        Allgather => {
            work(once, (signals + 2.5, p * (signals + 2.5)), (p * n, p * p * n)).with_scratch(2.0 * n)
        }
        Alltoall => {
            let own = 2.0 * o + 1.0;
            work(once, (4.0 * o + 1.0, p * (4.0 * o + 1.0)), (own * n, p * own * n)).with_scratch(o * n)
        }
        Scan => {
            let copied = if is_pair { n } else { 2.0 * o * n };
            work(once, (signals + 5.0, p * (signals + 5.0)), (2.0 * n, copied))
                .combining(o * n, p * o / 2.0 * n)
                .with_scratch(4.0 * n)
        }
        Exscan => work(once, (signals + 5.0, p * (signals + 4.0)), (2.0 * n, 2.0 * o * n))
            .combining((o - 1.0) * n, o * (o - 1.0) / 2.0 * n)
            .with_scratch(4.0 * n),
        Neighbours => Work::default(),
    }
}

fn barrier(name: &str, Sizes { p, c, .. }: Sizes) -> Option<Work> {
    Some(match name {
        "dissemination" => work((c, c), (c, p * c), (0.0, 0.0)),
        "central" => work((2.0, 2.0), (p / 2.0 + 2.0, 1.5 * p + 1.0), (0.0, 0.0)),
        _ => return None,
    })
}

fn bcast(name: &str, Sizes { p, o, n, l, c, ones, .. }: Sizes) -> Option<Work> {
    let children = o.min(2.0);
    let down = c.max(2.0); // the readiness signals climb the tree before
    Some(match name {
        "binary" | "pipelined" => {
            work((2.0 * l, down), (children * l + 1.0, 2.0 * o), (children * l * n, o * n))
        }
        "binomial" => work((2.0 * l, down), (c, 2.0 * o), (c * n, o * n)),
        // Ranks that take turns in their order pass many hops of a chain in one round.
        "chain" => work((2.0 * o, down), (o, 2.0 * o), (o * n, o * n)),
        "scatter+allgather" => {
            work((2.0 * l + o, p / 2.0 + 1.0), (c + o, o * (p + 2.0)), (2.0 * n / p * o, (o + ones / p) * n))
        }
        "staged" => work((1.0, 1.0), (1.5 * p + 1.0, 2.5 * p), (2.0 * n, p * n))
            .with_scratch(4.0 * n)
            .with_signal_per_rank(),
        "eager" => {
            work((1.0, 1.0), (o, 2.0 * o), (p * n, 2.0 * o * n)).with_scratch(4.0 * n).with_signal_per_rank()
        }
        _ => return None,
    })
}

fn reduce(name: &str, Sizes { p, o, n, up, moved, aside, .. }: Sizes) -> Option<Work> {
    Some(match name {
        "flat" => work((1.0, 1.0), (o, 2.0 * o), (n, o * n))
            .combining(o * n, o * n)
            .with_scratch(4.0 * p * n)
            .with_signal_per_rank(),
        "direct" => work((2.0, 2.0), (o + 2.0 * aside, 2.0 * o + 2.0 * aside), (aside * n, aside * n))
            .combining(o * n, o * n)
            .with_scratch(aside * n),
        "tree" => {
            let waits = (up.depth + moved, up.rounds + moved);
            let steps = (up.children + 1.0 + 2.0 * moved, 3.0 * (o + moved));
            work(waits, steps, ((up.depth + moved) * n, (o + moved) * n))
                .combining(up.children * n, o * n)
                .with_scratch(2.0 * up.children * n)
        }
        _ => return None,
    })
}

fn allreduce(name: &str, sizes: Sizes) -> Option<Work> {
    let Sizes { p, o, n, l, c, whole, folded, up, .. } = sizes;
    // Folding adds the exchanges before and after the rounds.
    let fold = if folded > 0.0 { 1.0 } else { 0.0 };
    Some(match name {
        "flat" => work((2.0, 2.0), (2.0 * o, 3.0 * o), (p * n, 2.0 * o * n))
            .combining(o * n, o * n)
            .with_scratch(p * n)
            .with_signal_per_rank(),
        "tree" => {
            let waits = (up.depth + l, up.rounds + c / 2.0);
            work(waits, (up.children + c, 4.0 * o), ((up.depth + c) * n, 2.0 * o * n))
                .combining(up.children * n, o * n)
                .with_scratch(2.0 * up.children * n)
        }
        "pairwise" => work((2.0, 1.5 * c), (3.0 * o, 3.0 * p * o), (2.0 * n / p * o, 2.0 * o * n))
            .combining(n / p * o, o * n)
            .with_scratch(2.0 * n / p * o)
            .with_signal_per_rank(),
        "recursive doubling" => {
            let (steps, all) = (2.0 * l + 2.0 + 2.0 * fold, whole * (2.0 * l + 2.0) + 3.0 * folded);
            let copied = ((l + 1.0 + 2.0 * fold) * n, (whole * (l + 1.0) + 2.0 * folded) * n);
            work((l + 2.0 * fold, 1.5 * c), (steps, all), copied)
                .combining((l + fold) * n, (whole * l + folded) * n)
                .with_scratch(2.0 * (l + fold) * n)
        }
        "ring" => work((2.0 * o, 0.75 * p), (3.0 * o, 3.0 * p * o), (2.0 * n / p * o, 2.0 * o * n))
            .combining(n / p * o, o * n)
            .with_scratch(2.0 * n),
        "rabenseifner" => {
            let part = (whole - 1.0) / whole * n;
            let (steps, all) = (3.0 * l + 2.0 * fold, whole * 3.0 * l + 3.0 * folded);
            let copied = (2.0 * part + 2.0 * fold * n, 2.0 * o * n);
            work((2.0 * l + 2.0 * fold, 1.5 * c), (steps, all), copied)
                .combining(part + fold * n, o * n)
                .with_scratch(2.0 * (part + fold * n))
        }
        _ => return None,
    })
}

/// Gathers and scatters.
fn gather_scatter(collective: CollectiveKind, name: &str, sizes: Sizes) -> Option<Work> {
    let Sizes { p, o, n, l, c, ones, subtree, .. } = sizes;
    Some(match (collective, name) {
        (CollectiveKind::Gather, "flat") => work((2.0, 1.0), (p / 2.0, 1.5 * p - 1.0), (n, o * n)),
        (CollectiveKind::Gather, "binomial") => {
            let row = if subtree > 1.0 { 2.0 * subtree * n } else { 0.0 };
            work((l + 2.0, c), (c + 4.0, 3.0 * p), (o * n, ones * n)).with_scratch(row)
        }
        (CollectiveKind::Scatter, "flat") => work((2.0, (0.75 * c).max(1.0)), (o, 2.0 * o), (o * n, o * n)),
        (CollectiveKind::Scatter, "binomial") => {
            let steps = (2.0 * c + 3.0, 7.0 * o);
            work((l, (c + 1.0) / 3.0), steps, (p * n, (ones + o) * n)).with_scratch(2.0 * subtree * n)
        }
        _ => return None,
    })
}

fn allgather(name: &str, Sizes { p, o, n, l, c, .. }: Sizes) -> Option<Work> {
    let (one, all) = (o * n, p * o * n);
    Some(match name {
        "flat" => work((2.0, 2.0), (p + 1.0, 2.0 * p), ((p * p + 1.0) * n, (p * p + p) * n))
            .with_scratch(2.0 * p * n)
            .with_signal_per_rank(),
        "ring" => work((p, (p + 1.0) / 2.0), (p + 1.0, p * (p + 1.0)), (one, all)),
        "recursive doubling" => work((c + 1.0, 1.2 * c), (3.0 * c - 1.0, p * (3.0 * c - 1.0)), (one, all)),
        "bruck" => {
            let each = 2.0 * o + 1.0;
            work((c, c), (p + c, p * (p + c)), (each * n, p * each * n)).with_scratch(2.0 * p * n)
        }
        "command lists" => {
            let steps = o + 2.0 * c + 2.0;
            work((2.0 * c + l, 2.0 * c - 1.0), (steps, p * steps), (one, all))
        }
        _ => return None,
    })
}

fn alltoall(name: &str, Sizes { p, n, c, ones, .. }: Sizes) -> Option<Work> {
    Some(match name {
        "pairwise" => work((2.0, 1.5 * c), (1.5 * p, 1.5 * p * p), (p * n, p * p * n)),
        "bruck" => {
            let (steps, copies) = (ones + p + 2.0 * c, 2.0 * ones + p);
            work((c, c), (steps, p * steps), (copies * n, p * copies * n)).with_scratch(4.0 * ones * n)
        }
        _ => return None,
    })
}

fn reduce_scatter(name: &str, Sizes { p, o, n, c, .. }: Sizes) -> Option<Work> {
    let same = |waits| work(waits, (2.0 * o, 2.0 * p * o), (o * n, p * o * n)).combining(o * n, p * o * n);
    Some(match name {
        "pairwise" => same((1.0, c)).with_scratch(2.0 * o * n).with_signal_per_rank(),
        "ring" => same((o, 0.75 * p)).with_scratch(2.0 * p * n),
        _ => return None,
    })
}

fn scan(collective: CollectiveKind, name: &str, sizes: Sizes) -> Option<Work> {
    match name {
        "doubling" => Some(scan_by_doubling(collective, sizes)),
        "tree" => Some(scan_by_tree(collective, sizes)),
        _ => None,
    }
}

fn scan_by_tree(collective: CollectiveKind, Sizes { p, o, n, .. }: Sizes) -> Work {
    let ranks = p as usize;
    let UpTree { depth, children, .. } = UpTree::in_groups(ranks);
    // Totals that are sent up, and prefixes that are sent down: one for each digit that is not zero.
    let totals = o - scan::tree::prefix_levels(ranks - 1).len() as f64;
    let units = std::iter::successors(Some(1_usize), |unit| unit.checked_mul(GROUP));
    let zeros = |unit: usize| ranks / (unit * GROUP) * unit + (ranks % (unit * GROUP)).min(unit);
    let prefixes =
        units.take_while(|&unit| unit < ranks).map(|unit| ranks - zeros(unit)).sum::<usize>() as f64;
    let all = totals + prefixes;
    // The lowest prefix of an exclusive scan is copied, not combined.
    let copied = if collective == CollectiveKind::Exscan { o } else { 0.0 };
    work(
        (2.0 * depth, 2.0 * depth),
        (2.0 * children + 3.0, 2.0 * all + o + 3.0),
        ((children + depth) * n, (all + copied) * n),
    )
    .combining((children + depth) * n, (all - copied) * n)
    .with_scratch(2.0 * children.max(depth) * n)
}

fn scan_by_doubling(collective: CollectiveKind, Sizes { p, o, n, c, .. }: Sizes) -> Work {
    // Number of values received by `ranks` ranks in all rounds.
    let come = |ranks: f64| {
        let rounds = f64::from((ranks as u64).next_power_of_two().trailing_zeros());
        (ranks * rounds - (ranks as u64).next_power_of_two() as f64 + 1.0).max(0.0)
    };
    let (first, come) = if collective == CollectiveKind::Scan { (0.0, come(p)) } else { (1.0, come(o)) };
    work(
        (c + first, c + first),
        (3.0 * c + 6.0, p * (3.0 * c + 3.0)),
        ((c + 1.0 + first) * n, (come + o + first * o) * n),
    )
    .combining(c * n, come * n)
    .with_scratch(2.0 * (c + first) * n)
}

#[cfg(test)]
mod tests {
    use super::super::ALGORITHMS;
    use super::*;
    use crate::shape::Placement;
    use crate::{BufferKind, StepKind};

    /// Counts the work of a schedule: steps of the rank with the most, and of all; bytes copied, and combined; scratch
    /// memory.
    fn counted(algorithm: &Algorithm, shape: &Shape) -> [f64; 5] {
        let schedule = algorithm.schedule(shape, 1);
        let mut all = [0.0; 5];
        for part in (0..shape.ranks).map(|rank| schedule.part(rank)) {
            let steps = part.steps().len() as f64;
            all[0] = steps.max(all[0]);
            all[1] += steps;
            for step in part.steps() {
                match step.action {
                    StepKind::Copy { bytes, .. } => all[2] += bytes as f64,
                    StepKind::Reduce { bytes, .. } => all[3] += bytes as f64,
                    StepKind::Nothing => (),
                }
            }
            let bytes = |decl: &crate::BufferDecl| match decl.kind {
                BufferKind::User => 0,
                kind => decl.bytes * kind.times(),
            };
            all[4] = (part.buffer_decls().iter().map(bytes).sum::<u64>() as f64).max(all[4]);
        }
        all
    }

    /// Bytes that the busiest node sends or receives.
    fn carried(algorithm: &Algorithm, shape: &Shape) -> f64 {
        let per_node = shape.placement.per_node;
        let mut carried = vec![[0.0; 2]; shape.ranks.div_ceil(per_node)];
        let schedule = algorithm.schedule(shape, 1);
        for part in (0..shape.ranks).map(|rank| schedule.part(rank)) {
            for step in part.steps() {
                let (StepKind::Copy { from, to, bytes } | StepKind::Reduce { from, to, bytes, .. }) =
                    step.action
                else {
                    continue;
                };
                let (from, to) = (from.rank as usize / per_node, to.rank as usize / per_node);
                if from != to {
                    carried[from][0] += bytes as f64;
                    carried[to][1] += bytes as f64;
                }
            }
        }
        carried.into_iter().flatten().fold(0.0, f64::max)
    }

    #[test]
    fn inter_node_bytes_match_the_schedules() {
        for (ranks, per_node) in [(8, 2), (16, 4), (24, 4), (27, 3), (33, 8), (48, 12), (64, 16)] {
            let placement = Placement { per_node, ..Placement::SPREAD };
            let bytes = 64 * ranks as u64 * usize::next_power_of_two(ranks) as u64;
            let all = ALGORITHMS.iter().filter(|one| !one.is_inline());
            for (algorithm, in_order) in all.flat_map(|one| [(one, false), (one, true)]) {
                let shape =
                    Shape { placement, in_order, ..Shape::new(algorithm.collective, ranks, 0, bytes) };
                let Some(work) = algorithm.work(&shape).filter(|_| (algorithm.fits)(&shape)) else {
                    continue;
                };
                let (formula, counted) = (work.carried, carried(algorithm, &shape));
                let what = format!(
                    "{:?} by {} among {ranks}, {per_node} on a node: {formula} and not {counted}, in {bytes}",
                    algorithm.collective, algorithm.name
                );
                let exact = algorithm.name == "two-level";
                assert!(formula == counted || !exact, "{what}");
                assert!(2.0 * formula >= counted && formula <= 2.0 * counted, "{what}");
                assert!((0.0..=work.hops).contains(&work.between), "{what}");
            }
        }
    }

    #[test]
    fn closed_forms_match_the_schedules() {
        let placed =
            [1, 2, 3, 4, 8].into_iter().flat_map(|per_node| (2..=33).map(move |ranks| (ranks, per_node)));
        for (ranks, per_node) in placed.chain([(40, 1), (66, 1), (100, 1)]) {
            let placement = Placement { per_node, ..Placement::SPREAD };
            // Bytes that all algorithms cut into equal parts.
            let bytes = 64 * ranks as u64 * usize::next_power_of_two(ranks) as u64;
            for (algorithm, in_order) in ALGORITHMS.iter().flat_map(|one| [(one, false), (one, true)]) {
                if per_node > 1 && algorithm.name != "two-level" {
                    continue; // it ignores the placement
                }
                let has_far_root =
                    in_order && algorithm.name != "copy in copy out" && algorithm.collective.combines();
                let root = if has_far_root { ranks - 1 } else { 0 };
                let shape =
                    Shape { placement, in_order, ..Shape::new(algorithm.collective, ranks, root, bytes) };
                let Some(work) = algorithm.work(&shape).filter(|_| (algorithm.fits)(&shape)) else {
                    continue;
                };
                let counted = counted(algorithm, &shape);
                let Work { steps, copied, combined, scratch, .. } = work;
                let formula = [steps.longest, steps.all, copied.all, combined.all, scratch];
                let what = format!("{:?} by {} among {ranks}", algorithm.collective, algorithm.name);
                // Tolerances: steps to a half and a few; bytes to a tenth; memory to twice as much.
                for (at, (formula, counted)) in formula.into_iter().zip(counted).enumerate() {
                    let (share, few) = [(0.5, 4.0), (0.5, 6.0), (0.1, 0.0), (0.1, 0.0), (1.0, 0.0)][at];
                    let is_more = at == 0 && formula > counted; // a chain leads through several ranks
                    let is_near = is_more || (formula - counted).abs() <= share * counted + few;
                    assert!(is_near, "{what}, number {at}: {formula} and not {counted}");
                }
            }
        }
    }
}
