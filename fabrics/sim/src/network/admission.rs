//! Acceptance of operations: misuse that the issuer can detect is refused for good, lack of room for a while.

use crate::network::in_flight::{End, Task};
use crate::run_hash::RunEvent;
use crate::scheduler::call_costs::STORM_NS;
use crate::scheduler::event_queue::EventKind;
use crate::state::SimState;
use tasuki_core::base::{Cause, Rank};
use tasuki_core::fabric::{ConnectionState, Refused, check_same_rank};
use tasuki_core::segment::GlobalAddress;

impl SimState {
    /// Accepts an operation or returns why not.
    pub(crate) fn admit(&mut self, issuer: Rank, task: &Task) -> Result<(), Refused> {
        if let Some(cause) = self.refusal_cause(issuer) {
            return Err(cause.into());
        }
        self.check_task(task)?;
        if task.bytes() <= self.sim.limits.transfer_bytes_max && self.has_room(issuer, task.peer()) {
            return Ok(());
        }
        let numbers = [issuer.0 as u64, task.peer().0 as u64, task.bytes()];
        self.trace.record(self.now, RunEvent::Refuse, numbers);
        Err(Refused::Again)
    }

    /// Returns why a rank's operations are refused for good, if they are.
    pub(crate) fn refusal_cause(&self, rank: Rank) -> Option<Cause> {
        self.rank(rank).over.clone().or_else(|| self.killed(rank))
    }

    /// Checks an operation for misuse that can be found without the target.
    fn check_task(&self, task: &Task) -> Result<(), Refused> {
        match *task {
            Task::Move { from, to, len, then } => {
                if let (Some((signal, _)), End::There(to)) = (then, to) {
                    self.memory.check_address(to)?;
                    check_same_rank(to, signal)?;
                    self.memory.signal(signal)?;
                }
                for end in [from, to] {
                    if let End::There(at) = end {
                        self.memory.check_address(at)?;
                        if self.ends_early() && !task.is_get() {
                            // An operation that ends before it arrives could not report the error,
                            // so the issuer checks here.
                            self.probe(at, len)?;
                        }
                    }
                }
                Ok(())
            }
            Task::Atomic { at, atomic } => {
                self.memory.check_address(at)?;
                let align = atomic.width.bytes();
                if at.offset().is_multiple_of(align) {
                    return Ok(());
                }
                // If the address is wrong altogether, report that first.
                self.probe(at, align)?;
                Err(Cause::Misaligned { address: at.bits(), align: align as usize }.into())
            }
            Task::Raise { signal, .. } | Task::Poison { signal, .. } | Task::SignalLine { signal, .. } => {
                Ok(self.memory.signal(signal).map(drop)?)
            }
            Task::Slot { line, .. } => Ok(self.memory.slots(line, 1, &self.node_state).map(drop)?),
            Task::Command(write) => Ok(self.memory.check_address(write.places[0])?),
            Task::Flush { peer } => Ok(self.memory.check(peer)?),
        }
    }

    /// Checks that an access would succeed now. A dead rank that unwinds may free memory; others do not learn of that,
    /// because its fabric no longer answers.
    pub(crate) fn probe(&self, at: GlobalAddress, len: u64) -> Result<(), Refused> {
        match self.memory.probe(at, len) {
            Err(_) if self.memory.check_address(at).is_ok() && self.rank(at.rank()).dead => {
                Err(Refused::Again)
            }
            probed => Ok(probed?),
        }
    }

    /// Returns true if the connection to a peer takes another operation now. If it may take one
    /// later without the end of any operation, a retry event is scheduled for the rank.
    pub(crate) fn has_room(&mut self, issuer: Rank, peer: Rank) -> bool {
        if self.rank(issuer).outstanding >= self.sim.limits.outstanding_max
            || self.never_has_room(issuer, peer)
        {
            return false;
        }
        let ready_at = self.connect(issuer, peer).max(self.pair(issuer, peer).storm_until);
        if ready_at > self.now {
            self.promise_retry(issuer, ready_at);
            return false;
        }
        if !self.random.chance(self.sim.faults.again) {
            return true;
        }
        let calm_at = self.now + 1 + self.random.up_to(STORM_NS);
        if self.random.up_to(1) == 0 {
            self.pair(issuer, peer).storm_until = calm_at;
        }
        self.promise_retry(issuer, calm_at);
        false
    }

    /// Returns true if a peer never takes an operation again: it is dead, or `Sim::again_for_ever` names it.
    fn never_has_room(&mut self, issuer: Rank, peer: Rank) -> bool {
        if self.sim.faults.never_ready.contains(&peer) {
            return true;
        }
        if !self.rank(peer).dead {
            return false;
        }
        let draw = self.random.up_to(1) == 0;
        *self.pair(issuer, peer).never_answers.get_or_insert(draw)
    }

    /// Returns when the connection to a peer is ready; begins to connect if that has not been done.
    fn connect(&mut self, issuer: Rank, peer: Rank) -> u64 {
        let takes = self.sim.network.connect_ns;
        if takes == 0 {
            return 0;
        }
        let (now, takes) = (self.now, self.draw_about(takes));
        *self.pair(issuer, peer).connected_at.get_or_insert(now + takes)
    }

    /// Returns the state of the connection to a peer.
    pub(crate) fn connection(&mut self, issuer: Rank, peer: Rank) -> Result<ConnectionState, Cause> {
        self.memory.check(peer)?;
        let ready_at = self.connect(issuer, peer);
        if ready_at <= self.now {
            return Ok(ConnectionState::Ready);
        }
        self.promise_retry(issuer, ready_at);
        Ok(ConnectionState::Pending)
    }

    fn promise_retry(&mut self, rank: Rank, at_ns: u64) {
        if self.rank(rank).retry_at < at_ns {
            self.rank_mut(rank).retry_at = at_ns;
            self.schedule(at_ns, rank, EventKind::Retry { rank });
        }
    }
}
