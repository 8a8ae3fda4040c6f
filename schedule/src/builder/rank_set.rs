//! Sets of ranks of which many differ little from each other: a set and one with a rank more share what is the same,
//! and one that nobody else has is changed in place. So what each step of a chain or a tree knows takes the memory of
//! what is new to it.

use std::rc::Rc;

/// Ranks of a leaf.
const LEAF: usize = 64;
/// Branches of a node.
const FAN: usize = 16;

/// A set of ranks.
#[derive(Clone, Default, Debug)]
pub(super) struct RankSet {
    /// How many nodes there are from the top to a leaf, less one.
    height: u32,
    top: Option<Rc<SetNode>>,
}

#[derive(Clone, Debug)]
enum SetNode {
    Leaf(u64),
    Branch([Option<Rc<SetNode>>; FAN]),
}

/// Ranks below a node of that height.
fn span(height: u32) -> usize {
    LEAF * FAN.pow(height)
}

impl RankSet {
    /// The empty set, of ranks below a limit.
    pub(super) fn new(ranks: usize) -> RankSet {
        let height = (0..).find(|&height| span(height) >= ranks).unwrap_or(0);
        RankSet { height, top: None }
    }

    /// Adds a rank. Whether it is new.
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

fn insert(place: &mut Option<Rc<SetNode>>, height: u32, rank: usize) -> bool {
    let node = place.get_or_insert_with(|| {
        Rc::new(if height == 0 { SetNode::Leaf(0) } else { SetNode::Branch(Default::default()) })
    });
    if has(node, height, rank) {
        return false; // nothing is copied
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

fn has(mut node: &SetNode, mut height: u32, rank: usize) -> bool {
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

/// Both have the same height.
fn merge(place: &mut Option<Rc<SetNode>>, other: Rc<SetNode>) {
    let Some(node) = place else {
        *place = Some(other);
        return;
    };
    if Rc::ptr_eq(node, &other) {
        return;
    }
    match (Rc::make_mut(node), &*other) {
        (SetNode::Leaf(bits), SetNode::Leaf(more)) => *bits |= more,
        (SetNode::Branch(below), SetNode::Branch(more)) => {
            for (place, more) in
                below.iter_mut().zip(more).filter_map(|(place, more)| Some((place, more.clone()?)))
            {
                merge(place, more);
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
    fn they_are_sets() {
        for ranks in [1, 64, 65, 1024, 1025, 100_000] {
            let mut number = 1_usize;
            let mut sets = vec![(RankSet::new(ranks), BTreeSet::new()); 4];
            for turn in 0..2000 {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (rank, at) = ((number >> 33) % ranks, (number >> 20) % 4);
                let (known, judge) = &mut sets[at];
                assert_eq!(known.add(rank), judge.insert(rank), "rank {rank} of {ranks}");
                if turn % 50 == 0 {
                    let (other, more) = sets[(at + 1) % 4].clone();
                    sets[at].0.add_all(other);
                    sets[at].1.extend(more);
                }
            }
            for (known, judge) in &mut sets {
                let missing = (0..ranks).filter(|&rank| known.add(rank)).count();
                assert_eq!(missing, ranks - judge.len(), "of {ranks}");
            }
        }
    }
}
