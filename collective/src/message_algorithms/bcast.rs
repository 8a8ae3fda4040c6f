//! Broadcast along a k-nomial tree.

use super::Peers;
use super::knomial_tree::KnomialTree;
use tasuki_core::base::Result;

/// Copies the root's `bytes` to all members.
pub(crate) async fn bcast(peers: &impl Peers, bytes: &mut [u8], root: usize) -> Result<()> {
    let tree = KnomialTree::wide(peers.size());
    let place = (peers.place() + peers.size() - root) % peers.size();
    let member = |place: usize| (root + place) % peers.size();
    if let Some(parent) = tree.parent(place) {
        peers.recv(bytes, member(parent)).await?;
    }
    // Send to the child with the largest subtree first: it takes longest.
    for child in tree.children(place).rev() {
        peers.send(bytes, member(child)).await?;
    }
    Ok(())
}
