//! Barrier by dissemination: in each round a member sends to up to seven members and receives from up to seven, at
//! distances that grow by a factor of eight. After ceil(log8 P) rounds each member knows that all have arrived.
//!
//! Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization" (1988); with several partners a
//! round: Hoefler, Mehlan, Mietke, Rehm, "Fast barrier synchronization for InfiniBand" (2006).

use super::{Peers, RADIX, partners};
use tasuki_core::base::Result;

pub(crate) async fn barrier(peers: &impl Peers) -> Result<()> {
    let mut step = 1;
    while step < peers.size() {
        for steps in partners(peers.size(), step) {
            peers.expect(0, peers.before(steps))?;
            peers.send(&[], peers.after(steps)).await?;
        }
        // Receive first from members that share this processor: spinning for the others would keep them from running.
        // Asked once, because members move between processors.
        let is_near = |steps: &usize| peers.shares_processor(peers.before(*steps));
        let near =
            partners(peers.size(), step).filter(is_near).fold(0, |near, steps| near | 1 << (steps / step));
        for first in [true, false] {
            let is_in_turn = |steps: &usize| (near & 1_u32 << (steps / step) != 0) == first;
            for steps in partners(peers.size(), step).filter(is_in_turn) {
                peers.recv(&mut [], peers.before(steps)).await?;
            }
        }
        step *= RADIX;
    }
    Ok(())
}
