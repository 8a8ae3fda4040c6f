//! Everything that a run consists of. Only the thread whose turn it is changes it.

use crate::network::fabric_collectives::CollectiveState;
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
use tasuki_core::node::node_state::{NodeState, Stage};
use tasuki_core::segment::GlobalAddress;

/// The state of a run.
#[derive(Debug)]
pub(crate) struct SimState {
    pub(crate) sim: Sim,
    pub(crate) node_state: Arc<NodeState>,
    pub(crate) memory: Memory,
    /// Virtual time.
    pub(crate) now: u64,
    /// Events to come.
    pub(crate) events: EventQueue<EventKind>,
    /// Turns to come, by actor.
    pub(crate) turns: EventQueue<usize>,
    pub(crate) draws: Random,
    pub(crate) trace: RunHash,
    pub(crate) actors: Vec<Actor>,
    /// Threads that have not ended.
    pub(crate) alive: usize,
    /// Whose turn it is.
    pub(crate) running: usize,
    pub(crate) ranks: Vec<SimRank>,
    /// Ranks that are leaving or have left.
    pub(crate) gone: usize,
    /// How often a rank has reached a stage of its life.
    pub(crate) stages: u64,
    /// The node state has told of a death, and everybody was woken for it.
    pub(crate) over: bool,
    pub(crate) in_flight: BTreeMap<InFlightId, InFlight>,
    pub(crate) pairs: BTreeMap<(Rank, Rank), Pair>,
    /// Words that cards keep to themselves, and for how many operations.
    pub(crate) cards: BTreeMap<GlobalAddress, (u64, usize)>,
    /// By key.
    pub(crate) groups: BTreeMap<u64, CollectiveState>,
    pub(crate) watch: DeadlockWatch,
    pub(crate) counts: Counts,
    /// How far a thread may be ahead of threads of other ranks.
    pub(crate) ahead_ns: u64,
    entries: u64,
}

/// EventKind one rank has and owes.
#[derive(Debug)]
pub(crate) struct SimRank {
    pub(crate) actors: Vec<usize>,
    pub(crate) alive: usize,
    /// How many things happened that concern it.
    pub(crate) news: u64,
    pub(crate) completions: VecDeque<(Token, Result<u64, Cause>)>,
    /// Why its operations are refused for good.
    pub(crate) over: Option<Cause>,
    pub(crate) dead: bool,
    /// As last seen on the node state.
    pub(crate) stage: Stage,
    /// Operations that were accepted and have not ended.
    pub(crate) outstanding: usize,
    /// Operations and lines of which something has not arrived.
    pub(crate) flying: usize,
    /// When its way out is free.
    pub(crate) way_out_free_at: u64,
    /// EventKind arrived while it was in no call is being carried out now.
    pub(crate) serving: bool,
    /// EventKind has arrived and waits for a call of this rank.
    pub(crate) inbox: VecDeque<EventKind>,
    /// When the last promised chance to try again comes.
    pub(crate) retry_at: u64,
    pub(crate) flights_made: u64,
}

/// EventKind is known between an issuer and a peer.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// When the last operation that must not be overtaken arrives.
    pub(crate) ordered_until: u64,
    /// Until when operations are refused.
    pub(crate) storm_until: u64,
    /// When the way is there.
    pub(crate) connected_at: Option<u64>,
    /// EventKind a dead peer's fabric answers: nothing but Again (true), or nothing at all.
    pub(crate) mute: Option<bool>,
}

/// Figures of a run.
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
            draws: Random::new(sim.seed),
            trace: RunHash::new(sim.keeps_trace),
            actors: Vec::new(),
            alive: 0,
            running: 0,
            ranks,
            gone: 0,
            stages: 0,
            over: false,
            in_flight: BTreeMap::new(),
            pairs: BTreeMap::new(),
            cards: BTreeMap::new(),
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

    /// A moment at that time, with its place among others of the same time drawn.
    #[inline]
    pub(crate) fn moment(&mut self, at_ns: u64, rank: Rank) -> Moment {
        self.entries += 1;
        Moment { at_ns: at_ns.max(self.now), tie: self.draws.next(), rank: rank.0, number: self.entries }
    }

    /// Something will happen.
    pub(crate) fn schedule(&mut self, at_ns: u64, rank: Rank, what: EventKind) {
        let moment = self.moment(at_ns, rank);
        self.events.push(moment, what);
    }

    /// A duration around `ns`.
    #[inline]
    pub(crate) fn about(&mut self, ns: u64) -> u64 {
        ns / 2 + self.draws.up_to(ns)
    }

    /// How long a message takes from one rank to another.
    pub(crate) fn delay(&mut self, from: Rank, to: Rank) -> u64 {
        let (latency, jitter) = (self.sim.network.latency_ns, self.sim.network.jitter_ns);
        if from == to {
            return 1 + self.about(latency / 10);
        }
        let straggles = self.draws.up_to(15) == 0;
        1 + latency + self.draws.up_to(if straggles { 8 * jitter } else { jitter })
    }

    /// How long so many bytes keep a way busy.
    pub(crate) fn transfer_ns(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.sim.network.bytes_per_s)) as u64
    }

    /// Lets one event happen.
    pub(crate) fn happen(&mut self, moment: Moment, what: EventKind) {
        let is_past = |&actor: &usize| self.actors[actor].clock > moment.at_ns;
        debug_assert!(
            !self.ranks[moment.rank as usize].actors.iter().any(is_past),
            "{what:?} comes too late"
        );
        self.now = moment.at_ns;
        self.counts.events += 1;
        self.watch.stirred();
        self.carry_out(what);
    }

    /// EventKind an event does, now or when a passive target gets to it.
    pub(crate) fn carry_out(&mut self, what: EventKind) {
        match what {
            EventKind::Read { flight, piece } => self.read(flight, piece),
            EventKind::Land { flight, piece } => self.land(flight, piece),
            EventKind::Apply { flight } => self.apply(flight),
            EventKind::WriteBack { flight, at, width, value, old } => {
                self.write_back(flight, at, width, value, old);
            }
            EventKind::End { flight, outcome } => self.end(flight, outcome),
            EventKind::EndEarly { flight } => self.end_early(flight),
            EventKind::Come { key, member } => self.come(key, member),
            EventKind::Met { key, member } => self.met(key, member),
            EventKind::Retry { rank } => self.news(rank),
            EventKind::Die { rank, silent } => self.die(rank, silent),
            EventKind::Tell { rank } => self.tell(rank),
        }
    }
}

impl SimRank {
    fn new() -> SimRank {
        SimRank {
            actors: Vec::new(),
            alive: 0,
            news: 0,
            completions: VecDeque::new(),
            over: None,
            dead: false,
            stage: Stage::Absent,
            outstanding: 0,
            flying: 0,
            way_out_free_at: 0,
            serving: false,
            inbox: VecDeque::new(),
            retry_at: 0,
            flights_made: 0,
        }
    }
}
