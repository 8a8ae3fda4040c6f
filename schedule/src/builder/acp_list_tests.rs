//! The broadcast of ACP's collective interface: a list of copies, `[to, from, after]`, that one rank runs. That rank
//! need not be one of those that get the data.

use super::*;
use crate::rank_part::RankPart;
use crate::step::StepTrigger;
use crate::{BufferSpan, Fault, Origin};

/// The published list for 7 ranks, a binary tree.
const TREE_OF_7: [(usize, usize, Option<usize>); 6] =
    [(1, 0, None), (2, 0, None), (3, 1, Some(0)), (4, 1, Some(0)), (5, 2, Some(1)), (6, 2, Some(1))];
const BYTES: u64 = 40;

/// A broadcast from the first member of a group to all members, by a list that rank `by` runs.
fn listed(
    ranks: usize,
    by: usize,
    members: Vec<usize>,
    write: impl Fn(&mut Builder, &[Region]) + Send + Sync + 'static,
) -> Schedule {
    let places = members.clone();
    let write = move |b: &mut Builder| {
        let data = b.buffer("data", BYTES);
        b.prepared_by(Some(by));
        write(b, &places.iter().map(|&rank| data.on(rank)).collect::<Vec<_>>());
    };
    let contract = move |rank: usize| {
        let span = BufferSpan { buffer: BufferId::FIRST, offset: 0, bytes: BYTES };
        let origin = Origin { ranks: vec![members[0] as u32], buffer: BufferId::FIRST, offset: 0 };
        let inputs = if rank == members[0] { vec![span] } else { Vec::new() };
        let outputs = if members.contains(&rank) { vec![(span, origin)] } else { Vec::new() };
        Contract { inputs, outputs, ..Contract::default() }
    };
    Schedule::build("list", (ranks, 0, BYTES), write, contract)
}

/// Builds the published list.
fn tree_of_7(b: &mut Builder, data: &[Region]) {
    let mut added = Vec::new();
    for (to, from, after) in TREE_OF_7 {
        added.push(b.copy(data[from], data[to]).after(after.map(|step| added[step])).id());
    }
}

/// Builds a binary tree of any size; the dependencies follow from the writes.
fn tree(b: &mut Builder, data: &[Region]) {
    for child in 1..data.len() {
        let parent = (child - 1) / 2;
        let last = b.last_write(data[parent]);
        b.copy(data[parent], data[child]).after(last);
    }
}

/// The copies of a part in the form of the published list: (receiver, sender, index of the copy that it comes after).
fn list(part: &RankPart) -> Vec<(usize, usize, Option<usize>)> {
    let name = |trigger: StepTrigger| part.signal_decls()[trigger.signal.index()].name.clone();
    let number = |name: &str| name.strip_prefix("step ")?.strip_suffix(" is done")?.parse().ok();
    let mut list = Vec::new();
    let mut after = None;
    for step in part.steps().iter().filter(|step| step.queue.0 == 0) {
        after = number(&name(step.trigger)).or(after);
        if let StepKind::Copy { from, to, bytes } = step.action {
            assert_eq!((from.offset, to.offset, bytes), (0, 0, BYTES));
            list.push((to.rank as usize, from.rank as usize, after.take()));
        }
    }
    list
}

#[test]
fn j9_the_tree_of_7_ranks_is_the_published_one() {
    let members: Vec<usize> = (0..7).collect();
    for by in 0..8 {
        let published = listed(8, by, members.clone(), tree_of_7);
        let found = listed(8, by, members.clone(), tree);
        for rank in 0..8 {
            let expected = if rank == by { &TREE_OF_7[..] } else { &[] };
            assert_eq!(list(&published.part(rank)), expected, "rank {rank}, by {by}");
            assert_eq!(published.part(rank), found.part(rank), "rank {rank}, by {by}");
        }
        published.check().unwrap_or_else(|fault| panic!("by rank {by}: {fault}"));
    }
}

#[test]
fn j9_a_rank_outside_of_the_group_runs_the_list() {
    for ranks in 2..=24 {
        for by in [0, ranks / 2, ranks - 1] {
            let members: Vec<usize> = (0..ranks).rev().filter(|&rank| rank != by).collect();
            let schedule = listed(ranks, by, members, tree);
            schedule.check().unwrap_or_else(|fault| panic!("{ranks} ranks, by {by}: {fault}"));
            assert!(schedule.contract(by) == Contract::default(), "it has no inputs and no outputs");
            assert_eq!(list(&schedule.part(by)).len(), ranks - 2);
        }
    }
}

/// If the dependencies on copy 0 or 1 are removed, a rank forwards data before it has received
/// them. Two copies depend on each of these, and the first also delays the second, so both
/// dependencies are removed together. If any one copy is removed, bytes are missing.
#[test]
fn j9_a_list_with_any_order_or_copy_removed_is_refused() {
    let without = |order: Option<usize>, copy: Option<usize>| {
        let write = move |b: &mut Builder, data: &[Region]| {
            let mut added = Vec::new();
            for (number, (to, from, after)) in TREE_OF_7.into_iter().enumerate() {
                let copied = if Some(number) == copy { b.join(7) } else { b.copy(data[from], data[to]) };
                let after = after.filter(|_| after != order).map(|before| added[before]);
                added.push(copied.after(after).id());
            }
        };
        listed(8, 7, (0..7).collect(), write).check().err().map(|fault| *fault)
    };
    assert_eq!(without(None, None), None);
    for before in 0..2 {
        let fault = without(Some(before), None);
        assert!(matches!(fault, Some(Fault::Race { .. })), "after {before}: {fault:?}");
    }
    for copy in 0..TREE_OF_7.len() {
        let fault = without(None, Some(copy));
        assert!(matches!(fault, Some(Fault::WrongBytes { .. })), "{copy}: {fault:?}");
    }
}
