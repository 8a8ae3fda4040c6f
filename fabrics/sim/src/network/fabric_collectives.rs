//! Groups: the network's own barrier and multicast.
//!
//! A barrier is counted in the middle of the network: who comes is half a way away from there, and when all have come
//! the news takes another half to each. A multicast is a put to each member that leaves its sender once.

use crate::network::in_flight::{End, InFlightId, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{FabricGroup, FabricGroupMember, Refused};

/// A group, as the network knows it.
#[derive(Debug)]
pub(crate) struct CollectiveState {
    members: Vec<FabricGroupMember>,
    bytes: u64,
    standings: Vec<MemberState>,
    /// Meetings that are over.
    over: u64,
    /// When the last one came that has.
    came_at: u64,
}

/// How far a member is.
#[derive(Clone, Copy, Default, Debug)]
struct MemberState {
    is_open: bool,
    /// Meetings that it has set out for, that it has come to, that it was told of.
    sent: u64,
    came: u64,
    told: u64,
}

impl CollectiveState {
    fn new(group: &FabricGroup<'_>) -> CollectiveState {
        let standings = vec![MemberState::default(); group.members.len()];
        CollectiveState { members: group.members.into(), bytes: group.bytes, standings, over: 0, came_at: 0 }
    }

    fn rank(&self, member: usize) -> Rank {
        self.members[member].barrier_signal.rank()
    }

    fn member(&self, rank: Rank) -> Option<usize> {
        let found = (0..self.members.len()).find(|&member| self.rank(member) == rank)?;
        self.standings[found].is_open.then_some(found)
    }

    /// Whether so many as it takes have come to the next meeting.
    fn is_complete(&self, needed: usize) -> bool {
        self.standings.iter().filter(|one| one.came > self.over).count() >= needed
    }
}

impl SimState {
    /// A rank opens its part of a group.
    pub(crate) fn open_group(&mut self, rank: Rank, group: &FabricGroup<'_>) -> Result<(), Cause> {
        if let Some(cause) = self.why_over(rank) {
            return Err(cause);
        }
        let can = self.sim.can;
        if !can.barrier || group.bytes > can.multicast_bytes_max {
            return Err(Cause::Unsupported("a group of that kind, on this simulated network".into()));
        }
        let Some(own) = group.members.get(group.me).filter(|own| own.barrier_signal.rank() == rank) else {
            return Err(Cause::Argument(format!("member {} of a group is not rank {rank}", group.me)));
        };
        self.memory.signal(own.barrier_signal)?;
        self.memory.signal(own.multicast_signal)?;
        if group.bytes > 0 {
            self.memory.probe(own.buffer, group.bytes)?;
        }
        let circle = self.groups.entry(group.key).or_insert_with(|| CollectiveState::new(group));
        let standing = &mut circle.standings[group.me];
        if circle.members != group.members || circle.bytes != group.bytes || standing.is_open {
            return Err(Cause::Argument(format!("group {:#x} is another one", group.key)));
        }
        standing.is_open = true;
        Ok(())
    }

    /// A rank has no more to do with a group.
    pub(crate) fn close_group(&mut self, rank: Rank, key: u64) {
        let Some(circle) = self.groups.get_mut(&key) else { return };
        if let Some(member) = circle.member(rank) {
            circle.standings[member].is_open = false;
        }
    }

    /// The place of a rank in a group that it has opened, if there is room for something of it now.
    fn admit_member(&mut self, rank: Rank, key: u64) -> Result<usize, Refused> {
        if let Some(cause) = self.why_over(rank) {
            return Err(cause.into());
        }
        let Some(member) = self.groups.get(&key).and_then(|circle| circle.member(rank)) else {
            return Err(Cause::Argument(format!("rank {rank} has no group {key:#x} open")).into());
        };
        if self.has_room(rank, rank) {
            return Ok(member);
        }
        self.trace.note(self.now, RunEvent::Refuse, [u64::from(rank.0), u64::from(rank.0), 0]);
        Err(Refused::Again)
    }

    /// A member sets out for the next meeting.
    pub(crate) fn enter_barrier(&mut self, rank: Rank, key: u64) -> Result<(), Refused> {
        let member = self.admit_member(rank, key)?;
        let Some(circle) = self.groups.get_mut(&key) else { return Ok(()) };
        let standing = &mut circle.standings[member];
        if standing.sent > standing.told {
            let text = "a member enters a barrier before it knows that the last one is over";
            return Err(Cause::Argument(text.into()).into());
        }
        standing.sent += 1;
        self.rank_mut(rank).flying += 1;
        self.watch.acted();
        let at = self.now + self.half_way();
        self.schedule(at, rank, EventKind::Come { key, member });
        Ok(())
    }

    /// How long something takes to the middle of the network, or from there.
    fn half_way(&mut self) -> u64 {
        let (latency, jitter) = (self.sim.network.latency_ns, self.sim.network.jitter_ns / 2);
        let straggles = self.draws.up_to(15) == 0;
        1 + latency.div_ceil(2) + self.draws.up_to(if straggles { 8 * jitter } else { jitter })
    }

    /// A member has come.
    pub(crate) fn come(&mut self, key: u64, member: usize) {
        let (now, spared) = (self.now, usize::from(self.sim.twins.early_meetings));
        let Some(circle) = self.groups.get_mut(&key) else { return };
        let rank = circle.rank(member);
        circle.standings[member].came += 1;
        circle.came_at = circle.came_at.max(now); // members come in no order of time
        let (at, needed) = (circle.came_at, circle.members.len().saturating_sub(spared).max(1));
        let is_complete = circle.is_complete(needed);
        circle.over += u64::from(is_complete);
        let ranks: Vec<Rank> = (0..circle.members.len()).map(|member| circle.rank(member)).collect();
        self.trace.note(now, RunEvent::Come, [key, u64::from(rank.0), u64::from(is_complete)]);
        self.no_longer_flying(rank);
        for (member, rank) in ranks.into_iter().enumerate().filter(|_| is_complete) {
            let told_at = at + self.half_way();
            self.schedule(told_at, rank, EventKind::Met { key, member });
        }
    }

    /// A member is told that a meeting is over.
    pub(crate) fn met(&mut self, key: u64, member: usize) {
        let Some(circle) = self.groups.get(&key) else { return };
        let (rank, signal) = (circle.rank(member), circle.members[member].barrier_signal);
        if !circle.standings[member].is_open || !self.arrives(rank, EventKind::Met { key, member }, false) {
            return;
        }
        if let Some(circle) = self.groups.get_mut(&key) {
            circle.standings[member].told += 1;
        }
        self.trace.note(self.now, RunEvent::Met, [key, u64::from(rank.0), 0]);
        let raised = self.raise(signal, 1);
        debug_assert!(raised.is_ok(), "{raised:?}"); // looked at when the group was opened
    }

    /// A member sends something to all others.
    pub(crate) fn multicast(&mut self, rank: Rank, key: u64, len: u64) -> Result<(), Refused> {
        let member = self.admit_member(rank, key)?;
        let Some(circle) = self.groups.get(&key) else { return Ok(()) };
        if len == 0 || len > circle.bytes {
            let text = format!("a multicast of {len} bytes, of a group with places of {}", circle.bytes);
            return Err(Cause::Argument(text).into());
        }
        let (members, from) = (circle.members.clone(), End::There(circle.members[member].buffer));
        let way_out = self.rank(rank).way_out_free_at;
        for (other, FabricGroupMember { multicast_signal, buffer, .. }) in members.into_iter().enumerate() {
            if other == member {
                continue;
            }
            self.rank_mut(rank).way_out_free_at = way_out; // all parts leave as one
            self.launch(
                rank,
                None,
                Task::Move { from, to: End::There(buffer), len, then: Some((multicast_signal, 1)) },
            );
            let id = InFlightId { issuer: rank, number: self.rank(rank).flights_made };
            if let Some(flight) = self.in_flight.get_mut(&id) {
                flight.part_of = Some((key, other));
            }
        }
        Ok(())
    }

    /// Whether an operation is a part of a multicast for a member that has closed its group.
    pub(crate) fn is_for_nobody(&self, id: InFlightId) -> bool {
        let part = self.in_flight.get(&id).and_then(|flight| flight.part_of);
        part.is_some_and(|(key, member)| {
            self.groups.get(&key).is_none_or(|circle| !circle.standings[member].is_open)
        })
    }
}
