//! Reductions.
//!
//! - Few values and few members, all members get the result: each member sends its values to all others.
//! - Many values: each member combines its share of the values of all members.
//! - Otherwise: up a tree to the first member; among up to [`GROUP`] members, all send to the root.
//!
//! All keep the [order of combining](super::ordered_fold).
//!
//! Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH" (2005).

use super::alltoall::alltoall;
use super::bcast::bcast;
use super::knomial_tree::KnomialTree;
use super::ordered_fold::{GROUP, OrderedFold};
use super::{Peers, RADIX};
use crate::message_algorithms::ONE_LINE_MAX;
use bytemuck::Pod;
use smallvec::SmallVec;
use std::ops::{Deref, Range};
use tasuki_core::base::Result;
use tasuki_core::queue::reduction::{Operator, ReduceOperation};

/// Bytes of a share from which members combine shares of the values.
const SHARE_BYTES_MIN: usize = 1 << 10;

/// Values that are kept on the stack if they are few.
type FewValues<T> = SmallVec<[T; 6]>;

/// Combines all members' values on this member, the root. `values` become the result.
pub(crate) async fn reduce_here<T: Pod>(
    peers: &impl Peers,
    values: &mut [T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<()> {
    let (me, size) = (peers.place(), peers.size());
    if are_shared(size, values) {
        let elements = operation.elements_of_value::<T>();
        let own = combine_share(peers, values, operation).await?;
        for from in (0..size).filter(|&from| from != me) {
            let range = share(from, size, values.len(), elements);
            peers.recv(bytemuck::cast_slice_mut(&mut values[range]), from).await?;
        }
        let range = share(me, size, values.len(), elements);
        values[range].copy_from_slice(&own);
        return Ok(());
    }
    if size <= GROUP {
        return combine_received(peers, values, operation).await;
    }
    let own = up_the_tree(peers, values, operation).await?;
    match own {
        Some(combined) => values.copy_from_slice(&combined),
        None => peers.recv(bytemuck::cast_slice_mut(values), 0).await?,
    }
    Ok(())
}

/// Combines all members' values on another member, the root.
pub(crate) async fn reduce_to<T: Pod>(
    peers: &impl Peers,
    values: &[T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
    root: usize,
) -> Result<()> {
    let size = peers.size();
    if are_shared(size, values) {
        let own = combine_share(peers, values, operation).await?;
        return peers.send(bytemuck::cast_slice(&own), root).await;
    }
    if size <= GROUP {
        return peers.send(bytemuck::cast_slice(values), root).await;
    }
    match up_the_tree(peers, values, operation).await? {
        Some(combined) => peers.send(bytemuck::cast_slice(&combined), root).await,
        None => Ok(()),
    }
}

/// Combines all members' values. `values` become the result on every member.
pub(crate) async fn allreduce<T: Pod>(
    peers: &impl Peers,
    values: &mut [T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<()> {
    let (me, size) = (peers.place(), peers.size());
    if size_of_val(values) <= ONE_LINE_MAX && size <= RADIX {
        for steps in 1..size {
            peers.expect(size_of_val(values), peers.before(steps))?;
            peers.send(bytemuck::cast_slice(values), peers.after(steps)).await?;
        }
        return combine_received(peers, values, operation).await;
    }
    if are_shared(size, values) {
        let (count, elements) = (values.len(), operation.elements_of_value::<T>());
        let own = combine_share(peers, values, operation).await?;
        values[share(me, size, count, elements)].copy_from_slice(&own);
        for steps in 1..size {
            let (to, from) = (peers.after(steps), peers.before(steps));
            let into = bytemuck::cast_slice_mut(&mut values[share(from, size, count, elements)]);
            peers.exchange(bytemuck::cast_slice(&own), to, into, from).await?;
        }
        return Ok(());
    }
    if let Some(combined) = up_the_tree(peers, values, operation).await? {
        values.copy_from_slice(&combined);
    }
    bcast(peers, bytemuck::cast_slice_mut(values), 0).await
}

/// Combines all members' `values`, which hold a block for each member, and returns this member's block of the result.
pub(crate) async fn reduce_scatter<T: Pod>(
    peers: &impl Peers,
    values: &[T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<Vec<T>> {
    let mut blocks = vec![T::zeroed(); values.len()];
    alltoall(peers, bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut blocks)).await?;
    let count = values.len() / peers.size();
    let mut fold = OrderedFold::new();
    (0..peers.size()).for_each(|member| fold.push(&blocks[member * count..][..count], &operation));
    Ok(fold.finish(&operation).unwrap_or_default())
}

/// Combines the values received from all others with this member's own, in the order of the members. There are at most
/// [`GROUP`] members.
async fn combine_received<T: Pod>(
    peers: &impl Peers,
    values: &mut [T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<()> {
    for steps in 1..peers.size() {
        peers.expect(size_of_val(values), peers.before(steps))?;
    }
    let mut part = FewValues::from_slice(values);
    let (mut own, sum) = (part.clone(), values);
    for member in 0..peers.size() {
        let next = if member == peers.place() {
            &mut own
        } else {
            peers.recv(bytemuck::cast_slice_mut(&mut part), member).await?;
            &mut part
        };
        if member == 0 { sum.copy_from_slice(next) } else { operation.combine(sum, next) }
    }
    Ok(())
}

/// Combines values up a tree to the first member. Returns the result there, and None on the others.
async fn up_the_tree<T: Pod>(
    peers: &impl Peers,
    values: &[T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<Option<Vec<T>>> {
    let (tree, place) = (KnomialTree::combining(peers.size()), peers.place());
    let mut sum = values.to_vec();
    let mut part = vec![T::zeroed(); if tree.below(place) > 1 { values.len() } else { 0 }];
    for child in tree.children(place) {
        peers.expect(size_of_val(values), child)?;
    }
    for child in tree.children(place) {
        peers.recv(bytemuck::cast_slice_mut(&mut part), child).await?;
        operation.combine(&mut sum, &part);
    }
    match tree.parent(place) {
        Some(parent) => peers.send(bytemuck::cast_slice(&sum), parent).await.map(|()| None),
        None => Ok(Some(sum)),
    }
}

/// Returns true if each member combines a share of such values.
fn are_shared<T>(size: usize, values: &[T]) -> bool {
    size > 2 && size_of_val(values) >= size * SHARE_BYTES_MIN.max(size_of::<T>())
}

/// Returns the share of a member in `count` elements, of which so many make a value.
fn share(member: usize, size: usize, count: usize, elements: usize) -> Range<usize> {
    let values = (count / elements) as u128;
    let begin = |member: usize| (member as u128 * values / size as u128) as usize * elements;
    begin(member)..begin(member + 1)
}

/// Sends each member its share of this member's values, and returns this member's share of the combined values.
async fn combine_share<T: Pod>(
    peers: &impl Peers,
    values: &[T],
    operation: ReduceOperation<impl Deref<Target: Operator>>,
) -> Result<Vec<T>> {
    let (me, size) = (peers.place(), peers.size());
    let elements = operation.elements_of_value::<T>();
    let shares = |member: usize| share(member, size, values.len(), elements);
    let count = shares(me).len();
    let mut parts = vec![T::zeroed(); count * size];
    parts[me * count..][..count].copy_from_slice(&values[shares(me)]);
    for steps in 1..size {
        peers.expect(count * size_of::<T>(), peers.before(steps))?;
    }
    for steps in 1..size {
        let (to, from) = (peers.after(steps), peers.before(steps));
        let into = bytemuck::cast_slice_mut(&mut parts[from * count..][..count]);
        peers.exchange(bytemuck::cast_slice(&values[shares(to)]), to, into, from).await?;
    }
    let mut fold = OrderedFold::new();
    (0..size).for_each(|member| fold.push(&parts[member * count..][..count], &operation));
    Ok(fold.finish(&operation).unwrap_or_default())
}
