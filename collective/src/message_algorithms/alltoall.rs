//! Alltoall: each member sends a block to each other member. In step k it sends to the member k places after it and
//! receives from the member k places before it, so that no member receives from two at once.

use super::Peers;
use crate::message_algorithms::ONE_LINE_MAX;
use tasuki_core::base::Result;

/// Sends block `k` of `values` to member `k`, and receives the block of member `k` as block `k` of `all`.
pub(crate) async fn alltoall(peers: &impl Peers, values: &[u8], all: &mut [u8]) -> Result<()> {
    let (me, size) = (peers.place(), peers.size());
    let bytes = values.len() / size;
    let block = |member: usize| member * bytes..(member + 1) * bytes;
    all[block(me)].copy_from_slice(&values[block(me)]);
    if bytes > ONE_LINE_MAX {
        return exchange_with_each(peers, |to| &values[block(to)], all).await;
    }
    for steps in 1..size {
        peers.expect(bytes, peers.before(steps))?;
        let to = peers.after(steps);
        peers.send(&values[block(to)], to).await?;
    }
    for steps in 1..size {
        let from = peers.before(steps);
        peers.recv(&mut all[block(from)], from).await?;
    }
    Ok(())
}

/// Exchanges long blocks with one pair of members at a time. The received blocks lie in `all` in the order of members.
pub(super) async fn exchange_with_each<'v>(
    peers: &impl Peers,
    given: impl Fn(usize) -> &'v [u8],
    all: &mut [u8],
) -> Result<()> {
    let bytes = all.len() / peers.size();
    for steps in 1..peers.size() {
        peers.expect(bytes, peers.before(steps))?;
    }
    for steps in 1..peers.size() {
        let (to, from) = (peers.after(steps), peers.before(steps));
        peers.exchange(given(to), to, &mut all[from * bytes..][..bytes], from).await?;
    }
    Ok(())
}
