//! Persistent sets of ranks. Sets that differ little share most of their nodes, and a set without other owners is
//! changed in place. So the sets of all steps of a chain or a tree take memory in proportion to their differences.

use std::rc::Rc;

/// Ranks in a leaf.
const LEAF: usize = 64;
/// Children of an inner node.
const FAN: usize = 16;

/// A set of ranks.
#[derive(Clone, Default, Debug)]
pub(super) struct RankSet {
    /// Number of levels above the leaves.
    height: u32,
    top: Option<Rc<SetNode>>,
}

#[derive(Clone, Debug)]
enum SetNode {
    Leaf(u64),
    Branch([Option<Rc<SetNode>>; FAN]),
}

/// Number of ranks below a node of that height.
fn span(height: u32) -> usize {
    LEAF * FAN.pow(height)
}

impl RankSet {
    /// Creates an empty set for ranks below `ranks`.
    pub(super) fn new(ranks: usize) -> RankSet {
        let height = (0..).find(|&height| span(height) >= ranks).unwrap_or(0);
        RankSet { height, top: None }
    }

    /// Adds a rank. Returns true if it was not in the set.
    pub(super) fn add(&mut self, rank: usize) -> bool {
        insert(&mut self.top, self.height, rank)
    }

    /// Adds all ranks of another set.
    pub(super) fn add_all(&mut self, other: RankSet) {
        if let Some(other) = other.top {
            merge(&mut self.top, other);
        }
    }
}

fn insert(slot: &mut Option<Rc<SetNode>>, height: u32, rank: usize) -> bool {
    let node = slot.get_or_insert_with(|| {
        Rc::new(if height == 0 { SetNode::Leaf(0) } else { SetNode::Branch(Default::default()) })
    });
    if contains(node, height, rank) {
        return false; // avoids a copy of the shared nodes
    }
    match Rc::make_mut(node) {
        SetNode::Leaf(bits) => {
            *bits |= 1 << (rank % LEAF);
            true
        }
        SetNode::Branch(below) => {
            let part = span(height - 1);
            insert(&mut below[rank / part % FAN], height - 1, rank)
        }
    }
}

fn contains(mut node: &SetNode, mut height: u32, rank: usize) -> bool {
    loop {
        match node {
            SetNode::Leaf(bits) => return bits >> (rank % LEAF) & 1 != 0,
            SetNode::Branch(below) => {
                height -= 1;
                match &below[rank / span(height) % FAN] {
                    Some(next) => node = next,
                    None => return false,
                }
            }
        }
    }
}

/// Merges two nodes of equal height.
fn merge(slot: &mut Option<Rc<SetNode>>, other: Rc<SetNode>) {
    let Some(node) = slot else {
        *slot = Some(other);
        return;
    };
    if Rc::ptr_eq(node, &other) {
        return;
    }
    match (Rc::make_mut(node), &*other) {
        (SetNode::Leaf(bits), SetNode::Leaf(more)) => *bits |= more,
        (SetNode::Branch(below), SetNode::Branch(more)) => {
            for (slot, more) in
                below.iter_mut().zip(more).filter_map(|(slot, more)| Some((slot, more.clone()?)))
            {
                merge(slot, more);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_rank_set_behaves_as_a_btree_set() {
        for ranks in [1, 64, 65, 1024, 1025, 100_000] {
            let mut number = 1_usize;
            let mut sets = vec![(RankSet::new(ranks), BTreeSet::new()); 4];
            for turn in 0..2000 {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (rank, at) = ((number >> 33) % ranks, (number >> 20) % 4);
                let (set, expected) = &mut sets[at];
                assert_eq!(set.add(rank), expected.insert(rank), "rank {rank} of {ranks}");
                if turn % 50 == 0 {
                    let (other, more) = sets[(at + 1) % 4].clone();
                    sets[at].0.add_all(other);
                    sets[at].1.extend(more);
                }
            }
            for (set, expected) in &mut sets {
                let missing = (0..ranks).filter(|&rank| set.add(rank)).count();
                assert_eq!(missing, ranks - expected.len(), "of {ranks}");
            }
        }
    }
}
