//! Collectives of the network itself: its barrier and its multicast.
//!
//! A barrier is counted in the middle of the network: an arrival takes half of a message's time, and when all members
//! have arrived the notification takes another half to each. A multicast is a put to each member that leaves its
//! sender once.

use crate::network::group_state::CollectiveState;
use crate::network::in_flight::{End, InFlightId, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{FabricGroup, FabricGroupMember, Refused};

impl SimState {
    /// Opens a rank's part of a group.
    pub(crate) fn open_group(&mut self, rank: Rank, group: &FabricGroup<'_>) -> Result<(), Cause> {
        if let Some(cause) = self.refusal_cause(rank) {
            return Err(cause);
        }
        let can = self.sim.can;
        if !can.barrier || group.bytes > can.multicast_bytes_max {
            return Err(Cause::Unsupported("a fabric group of that kind on this simulated network".into()));
        }
        let Some(own) = group.members.get(group.me).filter(|own| own.barrier_signal.rank() == rank) else {
            return Err(Cause::Argument(format!("member {} of a group is not rank {rank}", group.me)));
        };
        self.memory.signal(own.barrier_signal)?;
        self.memory.signal(own.multicast_signal)?;
        if group.bytes > 0 {
            self.memory.probe(own.buffer, group.bytes)?;
        }
        let group_state = self.groups.entry(group.key).or_insert_with(|| CollectiveState::new(group));
        let state = &mut group_state.states[group.me];
        if group_state.members != group.members || group_state.bytes != group.bytes || state.is_open {
            return Err(Cause::Argument(format!(
                "group {:#x} is open already on this rank, or another member has given other members or sizes",
                group.key
            )));
        }
        state.is_open = true;
        Ok(())
    }

    /// Closes a rank's part of a group.
    pub(crate) fn close_group(&mut self, rank: Rank, key: u64) {
        let Some(group_state) = self.groups.get_mut(&key) else { return };
        if let Some(member) = group_state.member(rank) {
            group_state.states[member].is_open = false;
        }
    }

    /// Returns the member number of a rank in a group that it has opened, if there is room for another operation now.
    fn admit_member(&mut self, rank: Rank, key: u64) -> Result<usize, Refused> {
        if let Some(cause) = self.refusal_cause(rank) {
            return Err(cause.into());
        }
        let Some(member) = self.groups.get(&key).and_then(|group_state| group_state.member(rank)) else {
            return Err(Cause::Argument(format!("rank {rank} has not opened group {key:#x}")).into());
        };
        if self.has_room(rank, rank) {
            return Ok(member);
        }
        self.trace.record(self.now, RunEvent::Refuse, [rank.0 as u64, rank.0 as u64, 0]);
        Err(Refused::Again)
    }

    /// Lets a member enter the next barrier.
    pub(crate) fn enter_barrier(&mut self, rank: Rank, key: u64) -> Result<(), Refused> {
        let member = self.admit_member(rank, key)?;
        let Some(group_state) = self.groups.get_mut(&key) else { return Ok(()) };
        let state = &mut group_state.states[member];
        if state.entered > state.notified {
            let text = "a member enters a barrier before it was notified of the end of the one before";
            return Err(Cause::Argument(text.into()).into());
        }
        state.entered += 1;
        self.rank_mut(rank).in_flight_count += 1;
        self.watch.thread_acted();
        let at = self.now + self.half_way();
        self.schedule(at, rank, EventKind::BarrierArrival { key, member });
        Ok(())
    }

    /// Draws the time to the middle of the network, or from there, in ns.
    fn half_way(&mut self) -> u64 {
        let (latency, jitter) = (self.sim.network.latency_ns, self.sim.network.jitter_ns / 2);
        let straggles = self.random.up_to(15) == 0;
        1 + latency.div_ceil(2) + self.random.up_to(if straggles { 8 * jitter } else { jitter })
    }

    /// Notes the arrival of a member at a barrier.
    pub(crate) fn barrier_arrival(&mut self, key: u64, member: usize) {
        let (now, spared) = (self.now, usize::from(self.sim.broken.early_barriers));
        let Some(group_state) = self.groups.get_mut(&key) else { return };
        let rank = group_state.rank(member);
        group_state.states[member].arrived += 1;
        group_state.last_arrival_ns = group_state.last_arrival_ns.max(now); // events of members may run out of the order of time
        let (at, needed) =
            (group_state.last_arrival_ns, group_state.members.len().saturating_sub(spared).max(1));
        let is_complete = group_state.is_complete(needed);
        group_state.over += u64::from(is_complete);
        let ranks: Vec<Rank> =
            (0..group_state.members.len()).map(|member| group_state.rank(member)).collect();
        self.trace.record(now, RunEvent::BarrierArrival, [key, rank.0 as u64, u64::from(is_complete)]);
        self.count_arrival(rank);
        for (member, rank) in ranks.into_iter().enumerate().filter(|_| is_complete) {
            let notified_at = at + self.half_way();
            self.schedule(notified_at, rank, EventKind::BarrierEnd { key, member });
        }
    }

    /// Notifies a member that a barrier has ended.
    pub(crate) fn barrier_end(&mut self, key: u64, member: usize) {
        let Some(group_state) = self.groups.get(&key) else { return };
        let (rank, signal) = (group_state.rank(member), group_state.members[member].barrier_signal);
        if !group_state.states[member].is_open
            || !self.takes_effect_now(rank, EventKind::BarrierEnd { key, member }, false)
        {
            return;
        }
        if let Some(group_state) = self.groups.get_mut(&key) {
            group_state.states[member].notified += 1;
        }
        self.trace.record(self.now, RunEvent::BarrierEnd, [key, rank.0 as u64, 0]);
        let raised = self.raise(signal, 1);
        debug_assert!(raised.is_ok(), "{raised:?}"); // checked when the group was opened
    }

    /// Sends bytes of a member to all others.
    pub(crate) fn multicast(&mut self, rank: Rank, key: u64, len: u64) -> Result<(), Refused> {
        let member = self.admit_member(rank, key)?;
        let Some(group_state) = self.groups.get(&key) else { return Ok(()) };
        if len == 0 || len > group_state.bytes {
            let text =
                format!("a multicast of {len} bytes in a group with buffers of {} bytes", group_state.bytes);
            return Err(Cause::Argument(text).into());
        }
        let (members, from) = (group_state.members.clone(), End::There(group_state.members[member].buffer));
        let link_free_at = self.rank(rank).link_free_at_ns;
        for (other, FabricGroupMember { multicast_signal, buffer, .. }) in members.into_iter().enumerate() {
            if other == member {
                continue;
            }
            self.rank_mut(rank).link_free_at_ns = link_free_at; // all parts leave the sender as one message
            self.start_operation(
                rank,
                None,
                Task::Move { from, to: End::There(buffer), len, then: Some((multicast_signal, 1)) },
            );
            let id = InFlightId { issuer: rank, number: self.rank(rank).operations_started };
            if let Some(operation) = self.in_flight.get_mut(&id) {
                operation.part_of = Some((key, other));
            }
        }
        Ok(())
    }

    /// Returns true if an operation is the part of a multicast for a member that has closed its group.
    pub(crate) fn target_closed_group(&self, id: InFlightId) -> bool {
        let part = self.in_flight.get(&id).and_then(|operation| operation.part_of);
        part.is_some_and(|(key, member)| {
            self.groups.get(&key).is_none_or(|group_state| !group_state.states[member].is_open)
        })
    }
}
