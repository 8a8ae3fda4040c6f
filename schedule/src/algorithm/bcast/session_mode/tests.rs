//! Tests of command counts and of late paths, and faulty schedules that must be refused.

use super::node_chain::NodeChain;
use super::*;
use crate::shape::{CollectiveKind, Placement};
use crate::{Fault, Schedule, Step, StepKind, StepTrigger};

const PATHS: usize = 3;
/// Indices of signals in the order of declaration, after the start signal.
const CREDIT: usize = 1;
const INNER: usize = CREDIT + 2 * PATHS;

/// The parameters of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionParameters {
    pub(crate) row: NodeChain,
    pub(crate) per_node: usize,
    pub(crate) inner: Inner,
    pub(crate) bytes: u64,
    pub(crate) segments: u64,
    pub(crate) progress_max: u64,
}

impl SessionParameters {
    fn new(nodes: usize, per_node: usize, inner: Inner) -> SessionParameters {
        let row = NodeChain { nodes, paths: PATHS };
        SessionParameters { row, per_node, inner, bytes: 24, segments: 2, progress_max: PROGRESS_MAX }
    }

    pub(crate) fn shape(&self) -> Shape {
        let placement = Placement { per_node: self.per_node, torus: [self.row.nodes, 1, 1] };
        let shape = Shape::new(CollectiveKind::Bcast, self.row.nodes * self.per_node, 0, self.bytes);
        Shape { placement, value_bytes: 1, ..shape }
    }

    /// The schedule, with `change` applied to each part's steps and signal totals.
    pub(crate) fn schedule(
        self,
        change: impl Fn(&mut Vec<Step>, &mut Vec<u64>) + Send + Sync + 'static,
    ) -> Schedule {
        let (shape, contract) = (self.shape(), self.shape());
        let part = move |part: &mut RankPart| {
            let SessionParameters { row, inner, segments, progress_max, .. } = self;
            let mut made = RankPart::new(part.rank());
            Session { shape: &shape, paths: &row, inner, segments, progress_max }.prepare(&mut made);
            let mut steps = made.steps().to_vec();
            let mut sums: Vec<u64> = made.signal_decls().iter().map(|counter| counter.per_start).collect();
            change(&mut steps, &mut sums);
            made.buffer_decls().iter().for_each(|decl| {
                part.buffer(decl.name.clone(), decl.bytes);
            });
            for (counter, sum) in made.signal_decls().iter().zip(sums).skip(1) {
                part.signal(counter.name.clone(), sum);
            }
            for step in steps {
                part.in_queue(step.queue.0);
                let made = part.step(step.trigger, step.action);
                step.effects().for_each(|effect| {
                    made.then(effect);
                });
            }
            made.finish_conditions().iter().for_each(|&trigger| part.finish(trigger));
        };
        Schedule::new("session", contract.ranks, part, move |rank| contract.contract(rank))
    }

    pub(crate) fn unchanged(self) -> Schedule {
        self.schedule(|_, _| ())
    }
}

/// Number of steps of a rank in a queue.
fn count(schedule: &Schedule, rank: usize, queue: u16) -> u64 {
    schedule.part(rank).steps().iter().filter(|step| step.queue.0 == queue).count() as u64
}

#[test]
fn bucket_relay_has_the_expected_number_of_commands() {
    for (per_node, releases) in [(2, 1), (3, 1), (4, 1), (17, 2), (32, 3)] {
        let parameters =
            SessionParameters { segments: 4, ..SessionParameters::new(3, per_node, Inner::Bucket) };
        let schedule = parameters.unchanged();
        let others = per_node as u64 - 1;
        for (node, children) in [(0, 1), (1, 1), (2, 0)] {
            for path in 0..PATHS as u16 {
                assert_eq!(count(&schedule, node * per_node, path), 4 * (children + releases));
                assert_eq!(count(&schedule, node * per_node, 3 + 4 * path), 4 * others);
            }
        }
        // The put that arrives releases all commands that the node has for a segment.
        let part = schedule.part(0);
        let puts = part.steps().iter().filter(|step| step.queue.0 == 0 && step.action != StepKind::Nothing);
        assert!(
            puts.map(|step| step.effects().next())
                .all(|effect| effect.map(|one| one.amount) == Some(1 + releases))
        );
        schedule.check().unwrap_or_else(|fault| panic!("{per_node} ranks of a node: {fault}"));
    }
}

#[test]
fn larger_progress_steps_are_split() {
    // 16 other ranks in steps of 2: 8 releasing commands at the last node, for which its parent needs 4 puts, and so
    // on.
    let parameters =
        SessionParameters { progress_max: 2, segments: 2, ..SessionParameters::new(3, 17, Inner::Bucket) };
    let schedule = parameters.unchanged();
    assert_eq!([0, 17, 34].map(|rank| count(&schedule, rank, 0)), [2 * (6 + 8), 2 * (4 + 8), 2 * 8]);
    schedule.check().unwrap();
    // Two phases: 16 copies in steps of 15 need two releasing commands; the first also releases the second.
    let schedule = SessionParameters::new(2, 17, Inner::TwoPhase).unchanged();
    for engine in 0..4 {
        assert_eq!(count(&schedule, 0, 4 + engine), 2 + 2 + 16);
    }
    let part = schedule.part(0);
    let released =
        part.steps().iter().filter(|step| step.queue.0 == 4).filter_map(|step| step.effects().next());
    let released: Vec<u64> =
        released.filter(|effect| effect.signal.index() == INNER).map(|one| one.amount).collect();
    assert_eq!(released, [15, 2]);
}

#[test]
fn two_phase_counts_only_forwards_until_the_last_segment() {
    for per_node in [2, 3, 4, 17, 32] {
        let schedule =
            SessionParameters { segments: 4, ..SessionParameters::new(3, per_node, Inner::TwoPhase) }
                .unchanged();
        for (node, children) in [(0, 1), (1, 1), (2, 0)] {
            for path in 0..PATHS as u16 {
                assert_eq!(count(&schedule, node * per_node, path), 4 * children + ENGINES as u64);
            }
        }
        schedule.check().unwrap_or_else(|fault| panic!("{per_node} ranks of a node: {fault}"));
    }
}

/// Runs a schedule with a preference among paths: the steps of a later path happen only when no other step can. Returns
/// the first rank that copied bytes before they arrived, and true if all steps happened.
fn run_preferring(schedule: &Schedule, order: [u16; PATHS], bytes: usize) -> (Option<usize>, bool) {
    let parts: Vec<RankPart> = (0..schedule.ranks()).map(|rank| schedule.part(rank)).collect();
    let mut counts: Vec<Vec<u64>> = parts.iter().map(|part| vec![0; part.signal_decls().len()]).collect();
    counts.iter_mut().for_each(|counts| counts[0] = 1);
    let mut has = vec![vec![false; bytes]; parts.len()];
    has[0].fill(true);
    let mut done: Vec<Vec<bool>> = parts.iter().map(|part| vec![false; part.steps().len()]).collect();
    let rank_of = |queue: u16| order.iter().position(|&path| path == queue).map_or(0, |place| place + 1);
    let next = |counts: &[Vec<u64>], done: &[Vec<bool>]| {
        let all = parts.iter().enumerate().flat_map(|(rank, part)| {
            part.steps().iter().enumerate().map(move |(number, step)| (rank, number, step))
        });
        let is_next = |&(rank, number, step): &(usize, usize, &Step)| {
            let before = &parts[rank].steps()[..number];
            let waits = |(other, before): (usize, &Step)| before.queue == step.queue && !done[rank][other];
            !done[rank][number]
                && counts[rank][step.trigger.signal.index()] >= step.trigger.count
                && !before.iter().enumerate().any(waits)
        };
        // Among equals, the step furthest from the root.
        let key = |&(rank, _, step): &(usize, usize, &Step)| (rank_of(step.queue.0), std::cmp::Reverse(rank));
        all.filter(is_next).min_by_key(key).map(|(rank, number, _)| (rank, number))
    };
    let mut early_copy = None;
    while let Some((rank, number)) = next(&counts, &done) {
        done[rank][number] = true;
        let step = parts[rank].steps()[number];
        if let StepKind::Copy { from, to, bytes } = step.action {
            let span = from.offset as usize..(from.offset + bytes) as usize;
            if has[from.rank as usize][span.clone()].contains(&false) {
                early_copy = early_copy.or(Some(rank));
            }
            has[to.rank as usize][span].fill(true);
        }
        for effect in step.effects() {
            counts[effect.rank as usize][effect.signal.index()] += effect.amount;
        }
    }
    (early_copy, done.iter().flatten().all(|&done| done) && has.iter().flatten().all(|&has| has))
}

const ORDERS: [[u16; PATHS]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn a_late_path_causes_no_early_and_no_missing_copy() {
    for inner in [Inner::Bucket, Inner::TwoPhase] {
        for per_node in [2, 3, 4, 17, 32] {
            let schedule = SessionParameters::new(2, per_node, inner).unchanged();
            for order in ORDERS {
                assert_eq!(
                    run_preferring(&schedule, order, 24),
                    (None, true),
                    "{inner:?}, {per_node}, {order:?}"
                );
            }
        }
    }
}

/// Returns true if the fault is a use of bytes before they arrive.
fn is_early(fault: &Fault) -> bool {
    matches!(fault, Fault::Race { .. } | Fault::Overtaken { .. })
}

#[test]
fn one_queue_for_the_copies_of_all_paths_is_refused() {
    let parameters = SessionParameters::new(2, 3, Inner::Bucket);
    let mutant = parameters.schedule(move |steps, sums| {
        let is_inner = |step: &Step| [3, 7, 11].contains(&step.queue.0);
        let (mut inner, rest): (Vec<Step>, Vec<Step>) = steps.iter().copied().partition(is_inner);
        // By segments, and within a segment by paths.
        inner.sort_by_key(|step| ((step.trigger.count - 1) / 2, step.queue));
        for (number, step) in inner.iter_mut().enumerate() {
            step.queue.0 = 3;
            step.trigger = StepTrigger { count: number as u64 + 1, ..signal(INNER) };
        }
        *steps = rest;
        for effect in steps.iter_mut().flat_map(|step| step.effects.iter_mut().flatten()) {
            if (INNER..INNER + PATHS).contains(&effect.signal.index()) {
                effect.signal = signal(INNER).signal;
            }
        }
        steps.extend(inner);
        sums[INNER] += std::mem::take(&mut sums[INNER + 1]) + std::mem::take(&mut sums[INNER + 2]);
    });
    let fault = mutant.check().expect_err("a release of one path lets the copies of another begin");
    assert!(is_early(&fault), "{fault}");
    assert!(ORDERS.iter().any(|&order| run_preferring(&mutant, order, 24).0.is_some()));
}

/// A trigger on the signal with that index.
fn signal(number: usize) -> StepTrigger {
    let mut part = RankPart::new(0);
    let named = (0..number).map(|_| part.signal("any", 0)).last();
    named.map_or(started(), |signal| signal.reaches(0))
}

#[test]
fn a_join_of_two_of_three_paths_is_refused() {
    let mutant = SessionParameters::new(2, 3, Inner::TwoPhase).schedule(|steps, _| {
        let is_first = |step: &Step| step.queue.0 == 4 && step.trigger.count == 1;
        steps.retain(|step| !is_first(step));
        steps.iter_mut().filter(|step| step.queue.0 == 4).for_each(|step| step.trigger.count -= 1);
    });
    let fault = mutant.check().expect_err("the third path may come after the copies");
    assert!(is_early(&fault), "{fault}");
    assert!(ORDERS.iter().any(|&order| run_preferring(&mutant, order, 24).0.is_some()));
}

#[test]
fn a_join_in_the_queue_of_a_path_is_refused() {
    let mutant = SessionParameters::new(3, 3, Inner::TwoPhase).schedule(|steps, sums| {
        let (mut inner, rest): (Vec<Step>, Vec<Step>) =
            steps.iter().copied().partition(|step| step.queue.0 == 4);
        inner.iter_mut().for_each(|step| {
            step.queue.0 = 0;
            step.trigger = StepTrigger { count: step.trigger.count + sums[CREDIT], ..signal(CREDIT) };
        });
        *steps = rest;
        steps.extend(inner);
        for effect in steps.iter_mut().flat_map(|step| step.effects.iter_mut().flatten()) {
            if effect.signal.index() == INNER {
                effect.signal = signal(CREDIT).signal;
            }
        }
        sums[CREDIT] += std::mem::take(&mut sums[INNER]);
    });
    let fault = mutant.check().expect_err("a faster path lets forwards of a slower one begin");
    assert!(is_early(&fault), "{fault}");
    assert!(ORDERS.iter().any(|&order| run_preferring(&mutant, order, 24).0.is_some()));
}
