//! Nonblocking collectives in rounds of doubling distance, and collectives in which each member exchanges with all
//! others at once.
//!
//! Sources: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988); Bruck and others,
//! "Efficient algorithms for all-to-all communications in multiport message-passing systems" (1997); Hillis, Steele,
//! "Data parallel algorithms" (1986).

use super::BoxedCombiner;
use crate::nonblocking::channel::{CallChannel, ChannelRecv};
use bytemuck::Pod;
use tasuki_core::base::Result;

/// Returns the distance of the partners in each round.
fn distances(size: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1_usize), |&far| Some(2 * far)).take_while(move |&far| far < size)
}

pub(super) async fn barrier(channel: &CallChannel) -> Result<()> {
    let from = |far: usize| channel.recv::<u8>(0, channel.after(channel.size - far));
    let receives: Vec<_> = distances(channel.size).map(from).collect::<Result<_>>()?;
    distances(channel.size).try_for_each(|far| channel.prepare(channel.after(far)))?;
    let mut sent = Vec::new();
    for (far, receive) in distances(channel.size).zip(receives) {
        sent.push(channel.send::<u8>(&[], channel.after(far))?);
        channel.complete_recv::<u8>(receive, &mut []).await?;
    }
    channel.sent(sent).await
}

/// In each round a member sends everything that it has of the members after it to a member before it.
pub(super) async fn allgather<T: Pod + Send>(channel: &CallChannel, values: Vec<T>) -> Result<Vec<T>> {
    let (size, count) = (channel.size, values.len());
    let part = |far: usize| far.min(size - far) * count;
    let from = |far| channel.recv::<T>(part(far), channel.after(far));
    let receives: Vec<_> = distances(size).map(from).collect::<Result<_>>()?;
    distances(size).try_for_each(|far| channel.prepare(channel.after(size - far)))?;
    let mut all = values;
    all.resize(size * count, T::zeroed());
    let mut sent = Vec::new();
    for (far, receive) in distances(size).zip(receives) {
        sent.push(channel.send(&all[..part(far)], channel.after(size - far))?);
        channel.complete_recv(receive, &mut all[far * count..][..part(far)]).await?;
    }
    all.rotate_right(channel.place * count); // this member's values came first
    channel.sent(sent).await?;
    Ok(all)
}

pub(super) async fn alltoall<T: Pod + Send>(channel: &CallChannel, mut values: Vec<T>) -> Result<Vec<T>> {
    let count = values.len() / channel.size;
    let others: Vec<usize> = (1..channel.size).map(|far| channel.after(far)).collect();
    let receives: Vec<ChannelRecv> =
        others.iter().map(|&from| channel.recv::<T>(count, from)).collect::<Result<_>>()?;
    let block = |&to: &usize| channel.send(&values[to * count..][..count], to);
    let sent: Vec<_> = others.iter().map(block).collect::<Result<_>>()?;
    // The block sent to a member has been copied or sent, so its place holds the block from that member.
    for (from, receive) in others.into_iter().zip(receives) {
        channel.complete_recv(receive, &mut values[from * count..][..count]).await?;
    }
    channel.sent(sent).await?;
    Ok(values)
}

pub(super) async fn reduce_scatter<T: Pod + Send>(
    channel: &CallChannel,
    values: Vec<T>,
    mut combine: BoxedCombiner<T>,
) -> Result<Vec<T>> {
    let count = values.len() / channel.size;
    let mut all = alltoall(channel, values).await?;
    let (sum, others) = all.split_at_mut(count);
    if count > 0 {
        others.chunks(count).for_each(|block| combine.combine(sum, block));
    }
    all.truncate(count);
    Ok(all)
}

/// Returns the combined values of the members up to this one, and of the members before it (None on the first one).
pub(super) async fn scan<T: Pod + Send>(
    channel: &CallChannel,
    values: Vec<T>,
    mut combine: BoxedCombiner<T>,
) -> Result<(Vec<T>, Option<Vec<T>>)> {
    let (place, size, count) = (channel.place, channel.size, values.len());
    let from = |far: usize| place.checked_sub(far).map(|from| channel.recv::<T>(count, from)).transpose();
    let receives: Vec<_> = distances(size).map(from).collect::<Result<_>>()?;
    let to = |far: usize| Some(place + far).filter(|&to| to < size);
    distances(size).filter_map(to).try_for_each(|to| channel.prepare(to))?;
    let (mut through, mut before, mut sent) = (values, None::<Vec<T>>, Vec::new());
    for (far, receive) in distances(size).zip(receives) {
        if let Some(to) = to(far) {
            sent.push(channel.send(&through, to)?);
        }
        let Some(receive) = receive else { continue };
        let mut part = vec![T::zeroed(); count];
        channel.complete_recv(receive, &mut part).await?;
        let mut longer = part.clone();
        combine.combine(&mut longer, &through);
        through = longer;
        if let Some(before) = &before {
            combine.combine(&mut part, before);
        }
        before = Some(part);
    }
    channel.sent(sent).await?;
    Ok((through, before))
}
