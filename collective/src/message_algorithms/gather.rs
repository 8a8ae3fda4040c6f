//! Gather up a tree to the root; scatter from the root to each member; allgather by Bruck's algorithm, with several
//! partners a round.
//!
//! Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems" (1997).

use super::alltoall::exchange_with_each;
use super::knomial_tree::KnomialTree;
use super::{Peers, RADIX, partners};
use crate::message_algorithms::ONE_LINE_MAX;
use bytemuck::Pod;
use tasuki_core::base::Result;

/// From this many bytes of a member's values on, one more copy takes longer than a separate message to each member.
const STRAIGHT_MIN: usize = 4 << 10;

/// Gathers the values of all members on the root, in the order of members. Returns None on the other members.
pub(crate) async fn gather<T: Pod>(peers: &impl Peers, values: &[T], root: usize) -> Result<Option<Vec<T>>> {
    let (size, count) = (peers.size(), values.len());
    let tree = KnomialTree::wide(size);
    let place = (peers.place() + size - root) % size;
    let member = |place: usize| (root + place) % size;
    if tree.below(place) == 1 && place > 0 {
        let parent = tree.parent(place).unwrap_or_default();
        return peers.send(bytemuck::cast_slice(values), member(parent)).await.map(|()| None);
    }
    for child in tree.children(place) {
        peers.expect(tree.below(child) * size_of_val(values), member(child))?;
    }
    // The values of all members in this member's subtree, its own first.
    let mut part = vec![T::zeroed(); tree.below(place) * count];
    part[..count].copy_from_slice(values);
    for child in tree.children(place) {
        let into = &mut part[(child - place) * count..][..tree.below(child) * count];
        peers.recv(bytemuck::cast_slice_mut(into), member(child)).await?;
    }
    if let Some(parent) = tree.parent(place) {
        peers.send(bytemuck::cast_slice(&part), member(parent)).await?;
        return Ok(None);
    }
    part.rotate_right(root * count); // the root's values came first
    Ok(Some(part))
}

/// Sends each other member its block of this member's `bytes`, which hold a block for each member.
pub(crate) async fn scatter(peers: &impl Peers, bytes: &[u8]) -> Result<()> {
    let block = bytes.len() / peers.size();
    for steps in 1..peers.size() {
        let to = peers.after(steps);
        peers.send(&bytes[to * block..][..block], to).await?;
    }
    Ok(())
}

/// Gathers the values of all members on all members, into `all` in the order of members.
pub(crate) async fn allgather(peers: &impl Peers, values: &[u8], all: &mut [u8]) -> Result<()> {
    let (size, bytes) = (peers.size(), values.len());
    let is_one_round = size <= RADIX && bytes > ONE_LINE_MAX;
    if is_one_round || bytes >= STRAIGHT_MIN {
        let own = peers.place() * bytes;
        all[own..own + bytes].copy_from_slice(values);
        return exchange_with_each(peers, |_| values, all).await;
    }
    all[..bytes].copy_from_slice(values); // in the order of members from this one on; rotated below
    let mut step = 1;
    while step < size {
        swap_parts(peers, all, step, bytes).await?;
        step *= RADIX;
    }
    all.rotate_right(peers.place() * bytes);
    Ok(())
}

/// Gathers words of all members on all members.
pub(crate) async fn allgather_words<T: Pod>(peers: &impl Peers, words: &[T]) -> Result<Vec<T>> {
    let mut all = vec![T::zeroed(); peers.size() * words.len()];
    allgather(peers, bytemuck::cast_slice(words), bytemuck::cast_slice_mut(&mut all)).await?;
    Ok(all)
}

/// Runs a round: sends the values of `step` members, of `bytes` bytes each, to the members at 1 to 7 times `step`
/// places before this one, and receives as many from the members after it. Long parts go one at a time.
async fn swap_parts(peers: &impl Peers, all: &mut [u8], step: usize, bytes: usize) -> Result<()> {
    let size = peers.size();
    let (have, mut into) = all.split_at_mut(step * bytes);
    let part = |at: usize| step.min(size - at) * bytes;
    for at in partners(size, step) {
        peers.expect(part(at), peers.after(at))?;
    }
    if part(step) > ONE_LINE_MAX {
        for at in partners(size, step) {
            let (here, rest) = into.split_at_mut(part(at));
            peers.exchange(&have[..part(at)], peers.before(at), here, peers.after(at)).await?;
            into = rest;
        }
        return Ok(());
    }
    for at in partners(size, step) {
        peers.send(&have[..part(at)], peers.before(at)).await?;
    }
    for at in partners(size, step) {
        let (here, rest) = into.split_at_mut(part(at));
        peers.recv(here, peers.after(at)).await?;
        into = rest;
    }
    Ok(())
}
