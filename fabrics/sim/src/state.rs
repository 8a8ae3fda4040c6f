//! The state of a run. Only the thread that has the turn changes it.

use crate::network::group_state::CollectiveState;
use crate::network::in_flight::{InFlight, InFlightId};
use crate::network::memory::Memory;
use crate::options::Sim;
use crate::random::Random;
use crate::run_hash::RunHash;
use crate::scheduler::actor::Actor;
use crate::scheduler::deadlock::DeadlockWatch;
use crate::scheduler::event_queue::{EventKind, EventQueue, Moment};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::fabric::Token;
use tasuki_core::node::node_state::{NodeState, RankStage};
use tasuki_core::segment::GlobalAddress;

/// The state of a run.
#[derive(Debug)]
pub(crate) struct SimState {
    pub(crate) sim: Sim,
    pub(crate) node_state: Arc<NodeState>,
    pub(crate) memory: Memory,
    /// Virtual time, in ns.
    pub(crate) now: u64,
    /// Scheduled events.
    pub(crate) events: EventQueue<EventKind>,
    /// Scheduled turns of threads, by actor.
    pub(crate) turns: EventQueue<usize>,
    pub(crate) random: Random,
    pub(crate) trace: RunHash,
    pub(crate) actors: Vec<Actor>,
    /// Number of threads that have not ended.
    pub(crate) alive: usize,
    /// The actor that has the turn.
    pub(crate) running: usize,
    pub(crate) ranks: Vec<SimRank>,
    /// Number of ranks that are leaving or have left.
    pub(crate) leaving_count: usize,
    /// Number of stage changes of all ranks.
    pub(crate) stages: u64,
    /// The node state has reported a death, and all ranks were woken for it.
    pub(crate) over: bool,
    pub(crate) in_flight: BTreeMap<InFlightId, InFlight>,
    pub(crate) pairs: BTreeMap<(Rank, Rank), Pair>,
    /// Words that network cards hold, and the number of operations that use each.
    pub(crate) nic_words: BTreeMap<GlobalAddress, (u64, usize)>,
    /// Groups of the fabric's collectives, by key.
    pub(crate) groups: BTreeMap<u64, CollectiveState>,
    pub(crate) watch: DeadlockWatch,
    pub(crate) counts: Counts,
    /// How far a thread may run ahead of threads of other ranks, in ns.
    pub(crate) ahead_ns: u64,
    entries: u64,
}

/// The state of one rank.
#[derive(Debug)]
pub(crate) struct SimRank {
    pub(crate) actors: Vec<usize>,
    pub(crate) alive: usize,
    /// Number of events that concern the rank.
    pub(crate) event_count: u64,
    pub(crate) completions: VecDeque<(Token, Result<u64, Cause>)>,
    /// Why all further operations of the rank are refused, if they are.
    pub(crate) over: Option<Cause>,
    pub(crate) dead: bool,
    /// The stage that the node state last showed.
    pub(crate) stage: RankStage,
    /// Number of operations that were accepted and have not ended.
    pub(crate) outstanding: usize,
    /// Number of operations that have not arrived completely.
    pub(crate) in_flight_count: usize,
    /// When the rank's outgoing link is free again, in ns.
    pub(crate) link_free_at_ns: u64,
    /// Events from `inbox` are being applied now.
    pub(crate) delivering: bool,
    /// Events that have arrived and wait for a call of this rank.
    pub(crate) inbox: VecDeque<EventKind>,
    /// When the last scheduled retry comes, in ns.
    pub(crate) retry_at: u64,
    pub(crate) operations_started: u64,
}

/// The state between an issuer and a peer.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// When the last operation arrives that must not be overtaken, in ns.
    pub(crate) ordered_until: u64,
    /// Until when operations are refused, in ns.
    pub(crate) storm_until: u64,
    /// When the connection is ready, in ns.
    pub(crate) connected_at: Option<u64>,
    /// What the fabric of a dead peer does: it always answers Again (true), or it never answers (false).
    pub(crate) never_answers: Option<bool>,
}

/// Counters of a run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) steps: u64,
    pub(crate) events: u64,
    pub(crate) switches: u64,
}

impl SimState {
    pub(crate) fn new(sim: &Sim, node_state: Arc<NodeState>) -> Result<SimState> {
        let ranks = (0..sim.ranks).map(|_| SimRank::new()).collect();
        let mut state = SimState {
            memory: Memory::new(sim.ranks)?,
            node_state,
            now: 0,
            events: EventQueue::default(),
            turns: EventQueue::default(),
            random: Random::new(sim.seeds.start),
            trace: RunHash::new(sim.keeps_trace),
            actors: Vec::new(),
            alive: 0,
            running: 0,
            ranks,
            leaving_count: 0,
            stages: 0,
            over: false,
            in_flight: BTreeMap::new(),
            pairs: BTreeMap::new(),
            nic_words: BTreeMap::new(),
            groups: BTreeMap::new(),
            watch: DeadlockWatch::default(),
            counts: Counts::default(),
            ahead_ns: if sim.can.map || sim.in_step { 0 } else { sim.network.latency_ns },
            entries: 0,
            sim: sim.clone(),
        };
        for death in &sim.faults.deaths {
            let what = EventKind::Die { rank: death.rank, silent: death.silent };
            state.schedule(death.at_ns, death.rank, what);
        }
        Ok(state)
    }

    pub(crate) fn rank(&self, rank: Rank) -> &SimRank {
        &self.ranks[rank.index()]
    }

    pub(crate) fn rank_mut(&mut self, rank: Rank) -> &mut SimRank {
        &mut self.ranks[rank.index()]
    }

    pub(crate) fn pair(&mut self, issuer: Rank, peer: Rank) -> &mut Pair {
        self.pairs.entry((issuer, peer)).or_default()
    }

    /// Returns a moment at that time, with a random rank among moments of the same time.
    #[inline]
    pub(crate) fn moment(&mut self, at_ns: u64, rank: Rank) -> Moment {
        self.entries += 1;
        Moment {
            at_ns: at_ns.max(self.now),
            tie: self.random.next(),
            rank: rank.to_word(),
            number: self.entries,
        }
    }

    /// Schedules an event. If another thread of the rank is ahead of the one whose operation ends, the rank learns of
    /// the end when that thread could see it.
    pub(crate) fn schedule(&mut self, at_ns: u64, rank: Rank, what: EventKind) {
        let is_own_end = matches!(what, EventKind::End { operation, .. } if operation.issuer == rank);
        let clocks = self.ranks[rank.index()].actors.iter().map(|&actor| self.actors[actor].clock);
        let at_ns = if is_own_end { clocks.fold(at_ns, u64::max) } else { at_ns };
        let moment = self.moment(at_ns, rank);
        self.events.push(moment, what);
    }

    /// Draws a duration from half of `ns` to one and a half of it.
    #[inline]
    pub(crate) fn draw_about(&mut self, ns: u64) -> u64 {
        ns / 2 + self.random.up_to(ns)
    }

    /// Draws the time of a message from one rank to another, in ns.
    pub(crate) fn delay(&mut self, from: Rank, to: Rank) -> u64 {
        let (latency, jitter) = (self.sim.network.latency_ns, self.sim.network.jitter_ns);
        if from == to {
            return 1 + self.draw_about(latency / 10);
        }
        let straggles = self.random.up_to(15) == 0;
        1 + latency + self.random.up_to(if straggles { 8 * jitter } else { jitter })
    }

    /// Returns how long that many bytes occupy a link, in ns.
    pub(crate) fn transfer_ns(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.sim.network.bytes_per_s)) as u64
    }

    /// Runs one event.
    pub(crate) fn run_event(&mut self, moment: Moment, what: EventKind) {
        let is_past = |&actor: &usize| self.actors[actor].clock > moment.at_ns;
        debug_assert!(
            !self.ranks[moment.rank as usize].actors.iter().any(is_past),
            "{what:?} is late: a thread of its rank is ahead of it"
        );
        self.now = moment.at_ns;
        self.counts.events += 1;
        self.watch.event_ran();
        self.apply_event(what);
    }

    /// Applies an event, either when it happens or when a passive target makes a call.
    pub(crate) fn apply_event(&mut self, what: EventKind) {
        match what {
            EventKind::Read { operation, piece } => self.read(operation, piece),
            EventKind::Land { operation, piece } => self.land(operation, piece),
            EventKind::Apply { operation } => self.apply(operation),
            EventKind::WriteBack { operation, at, width, value, old } => {
                self.write_back(operation, at, width, value, old);
            }
            EventKind::End { operation, outcome } => self.end(operation, outcome),
            EventKind::EndEarly { operation } => self.end_early(operation),
            EventKind::BarrierArrival { key, member } => self.barrier_arrival(key, member),
            EventKind::BarrierEnd { key, member } => self.barrier_end(key, member),
            EventKind::Retry { rank } => self.notify(rank),
            EventKind::Die { rank, silent } => self.die(rank, silent),
            EventKind::DeathReported { rank } => self.report_death(rank),
        }
    }
}

impl SimRank {
    fn new() -> SimRank {
        SimRank {
            actors: Vec::new(),
            alive: 0,
            event_count: 0,
            completions: VecDeque::new(),
            over: None,
            dead: false,
            stage: RankStage::Absent,
            outstanding: 0,
            in_flight_count: 0,
            link_free_at_ns: 0,
            delivering: false,
            inbox: VecDeque::new(),
            retry_at: 0,
            operations_started: 0,
        }
    }
}
