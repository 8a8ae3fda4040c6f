//! Nonblocking collectives along binomial trees. The lowest set bit of a place is the number of places in its
//! subtree.

use super::BoxedCombiner;
use crate::nonblocking::channel::{CallChannel, ChannelRecv};
use bytemuck::Pod;
use tasuki_core::base::Result;

/// A tree as one member sees it. Its place is counted from the root.
struct BinomialTree {
    root: usize,
    place: usize,
    size: usize,
}

impl BinomialTree {
    fn of(channel: &CallChannel, root: usize) -> BinomialTree {
        BinomialTree { root, place: (channel.place + channel.size - root) % channel.size, size: channel.size }
    }

    /// Returns the most places that its subtree can have: a power of two.
    fn span(&self) -> usize {
        if self.place == 0 { self.size.next_power_of_two() } else { 1 << self.place.trailing_zeros() }
    }

    /// Returns the number of places in its subtree.
    fn below(&self) -> usize {
        self.span().min(self.size - self.place)
    }

    fn parent(&self) -> Option<usize> {
        (self.place > 0).then(|| self.member(self.place - self.span()))
    }

    /// Returns for each child, nearest first: its distance, the number of places in its subtree, and its member.
    fn children(&self) -> impl DoubleEndedIterator<Item = (usize, usize, usize)> + Clone + use<> {
        let BinomialTree { root, place, size } = *self;
        (0..self.span().ilog2())
            .map(|level| 1 << level)
            .filter(move |&far| place + far < size)
            .map(move |far| (far, far.min(size - place - far), (root + place + far) % size))
    }

    fn member(&self, place: usize) -> usize {
        (self.root + place) % self.size
    }

    /// Prepares the later messages to children and parent.
    fn prepare(&self, channel: &CallChannel) -> Result<()> {
        let mut all = self.children().map(|(_, _, member)| member).chain(self.parent());
        all.try_for_each(|member| channel.prepare(member))
    }
}

pub(super) async fn bcast<T: Pod + Send>(
    channel: &CallChannel,
    mut values: Vec<T>,
    root: usize,
) -> Result<Vec<T>> {
    let tree = BinomialTree::of(channel, root);
    tree.prepare(channel)?;
    if let Some(parent) = tree.parent() {
        let receive = channel.recv::<T>(values.len(), parent)?;
        channel.complete_recv(receive, &mut values).await?;
    }
    // Send to the farthest child first: it has the largest subtree.
    let sent = tree.children().rev().map(|(_, _, child)| channel.send(&values, child));
    let sent: Vec<_> = sent.collect::<Result<_>>()?;
    channel.sent(sent).await?;
    Ok(values)
}

/// Reduces to the first member, so that neighbours are combined first, and sends the result from there to the root.
pub(super) async fn reduce<T: Pod + Send>(
    channel: &CallChannel,
    mut values: Vec<T>,
    mut combine: BoxedCombiner<T>,
    root: usize,
) -> Result<Option<Vec<T>>> {
    let last =
        (root != 0 && channel.place == root).then(|| channel.recv::<T>(values.len(), 0)).transpose()?;
    if root != 0 && channel.place == 0 {
        channel.prepare(root)?;
    }
    reduce_to_first(channel, &mut values, &mut combine).await?;
    if root != 0 && channel.place == 0 {
        channel.sent([channel.send(&values, root)?]).await?;
    }
    if let Some(last) = last {
        channel.complete_recv(last, &mut values).await?;
    }
    Ok((channel.place == root).then_some(values))
}

pub(super) async fn allreduce<T: Pod + Send>(
    channel: &CallChannel,
    mut values: Vec<T>,
    mut combine: BoxedCombiner<T>,
) -> Result<Vec<T>> {
    reduce_to_first(channel, &mut values, &mut combine).await?;
    bcast(channel, values, 0).await
}

async fn reduce_to_first<T: Pod + Send>(
    channel: &CallChannel,
    values: &mut [T],
    combine: &mut BoxedCombiner<T>,
) -> Result<()> {
    let tree = BinomialTree::of(channel, 0);
    tree.prepare(channel)?;
    let receives = recv_from_children::<T>(channel, &tree, |_| values.len())?;
    let mut part = values.to_vec();
    for receive in receives {
        channel.complete_recv(receive, &mut part).await?;
        combine.combine(values, &part);
    }
    match tree.parent() {
        Some(parent) => channel.sent([channel.send(values, parent)?]).await,
        None => Ok(()),
    }
}

pub(super) async fn gather<T: Pod + Send>(
    channel: &CallChannel,
    values: Vec<T>,
    root: usize,
) -> Result<Option<Vec<T>>> {
    let (tree, count) = (BinomialTree::of(channel, root), values.len());
    tree.prepare(channel)?;
    let receives = recv_from_children::<T>(channel, &tree, |below| below * count)?;
    let mut part = values;
    part.resize(tree.below() * count, T::zeroed());
    for ((far, below, _), receive) in tree.children().zip(receives) {
        channel.complete_recv(receive, &mut part[far * count..][..below * count]).await?;
    }
    if let Some(parent) = tree.parent() {
        channel.sent([channel.send(&part, parent)?]).await?;
        return Ok(None);
    }
    part.rotate_right(root * count); // the root's values came first
    Ok(Some(part))
}

pub(super) async fn scatter<T: Pod + Send>(
    channel: &CallChannel,
    mut values: Vec<T>,
    count: usize,
    root: usize,
) -> Result<Vec<T>> {
    let tree = BinomialTree::of(channel, root);
    tree.prepare(channel)?;
    match tree.parent() {
        None => values.rotate_left(root * count),
        Some(parent) => {
            values = vec![T::zeroed(); tree.below() * count];
            let receive = channel.recv::<T>(values.len(), parent)?;
            channel.complete_recv(receive, &mut values).await?;
        }
    }
    let part = |(far, below, child)| channel.send(&values[far * count..][..below * count], child);
    let sent: Vec<_> = tree.children().rev().map(part).collect::<Result<_>>()?;
    channel.sent(sent).await?;
    values.truncate(count);
    Ok(values)
}

/// Begins to receive from all children. `count` gives the number of values for the number of members in a subtree.
fn recv_from_children<T: Pod>(
    channel: &CallChannel,
    tree: &BinomialTree,
    count: impl Fn(usize) -> usize,
) -> Result<Vec<ChannelRecv>> {
    tree.children().map(|(_, below, child)| channel.recv::<T>(count(below), child)).collect()
}
