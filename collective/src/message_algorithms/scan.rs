//! Scan and exscan (prefix reductions), up a tree and down again.
//!
//! A parent combines the values of its subtree, child by child. Before it adds those of a child, it sends the
//! combination so far to that child: the values of the members before the child in the parent's subtree. A parent that
//! is itself a child also passes on what it has received: the combinations of members that lie before its own subtree,
//! one for each level above. Combined from the right, and with the member's own values last, they keep the
//! [order of combining](super::ordered_fold) of the members up to this one.
//!
//! Among up to [`GROUP`](super::ordered_fold::GROUP) members the first one receives the values of all others, and sends
//! each its result.

use super::Peers;
use super::knomial_tree::KnomialTree;
use bytemuck::Pod;
use std::ops::Deref;
use tasuki_core::base::Result;
use tasuki_core::queue::reduction::{Operator, ReduceOperation};

/// Combines the values of the members before this one, and with them this member's own if `is_inclusive`. `values`
/// become the result; in an exclusive scan those of the first member are unchanged.
pub(crate) async fn scan<T: Pod>(
    peers: &impl Peers,
    values: &mut [T],
    is_inclusive: bool,
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<()> {
    let (tree, me, bytes) = (KnomialTree::combining(peers.size()), peers.place(), size_of_val(values));
    let parent = tree.parent(me);
    for member in tree.children(me).chain(parent) {
        peers.expect(bytes, member)?;
    }
    let mut sum = values.to_vec();
    let mut part = vec![T::zeroed(); if tree.below(me) > 1 { values.len() } else { 0 }];
    for child in tree.children(me) {
        peers.send(bytemuck::cast_slice(&sum), child).await?;
        if is_wanted(tree, child, me) {
            peers.recv(bytemuck::cast_slice_mut(&mut part), child).await?;
            operation.combine(&mut sum, &part);
        }
    }
    let Some(parent) = parent else {
        return Ok(());
    };
    let mut before = Vec::with_capacity(tree.depth(me));
    for level in 0..tree.depth(me) {
        let mut part = vec![T::zeroed(); values.len()];
        peers.recv(bytemuck::cast_slice_mut(&mut part), parent).await?;
        before.push(part);
        if level == 0 && is_wanted(tree, me, parent) {
            peers.send(bytemuck::cast_slice(&sum), parent).await?;
        }
    }
    for child in tree.children(me) {
        for part in &before {
            peers.send(bytemuck::cast_slice(part), child).await?;
        }
    }
    let mut result = is_inclusive.then(|| values.to_vec());
    for mut part in before {
        if let Some(right) = result {
            operation.combine(&mut part, &right);
        }
        result = Some(part);
    }
    result.iter().for_each(|result| values.copy_from_slice(result));
    Ok(())
}

/// Returns true if a parent needs the values of a child: members after the child get them.
fn is_wanted(tree: KnomialTree, child: usize, parent: usize) -> bool {
    child + tree.below(child) < parent + tree.below(parent) || tree.parent(parent).is_some()
}
