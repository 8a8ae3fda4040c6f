//! Everything that a run consists of. Only the thread whose turn it is changes it.

use crate::actor::Actor;
use crate::agenda::{Agenda, Moment, What};
use crate::draws::Draws;
use crate::flight::{Flight, FlightId};
use crate::groups::Circle;
use crate::memory::Memory;
use crate::options::Sim;
use crate::stuck::Watch;
use crate::trace::Trace;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::fabric::Token;
use tasuki_core::node::board::{Board, Stage};
use tasuki_core::segment::GlobalAddress;

/// The state of a run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) board: Arc<Board>,
    pub(crate) memory: Memory,
    /// Virtual time.
    pub(crate) now: u64,
    /// Events to come.
    pub(crate) events: Agenda<What>,
    /// Turns to come, by actor.
    pub(crate) turns: Agenda<usize>,
    pub(crate) draws: Draws,
    pub(crate) trace: Trace,
    pub(crate) actors: Vec<Actor>,
    /// Threads that have not ended.
    pub(crate) alive: usize,
    /// Whose turn it is.
    pub(crate) running: usize,
    pub(crate) ranks: Vec<RankState>,
    /// Ranks that are leaving or have left.
    pub(crate) gone: usize,
    /// How often a rank has reached a stage of its life.
    pub(crate) stages: u64,
    /// The board has told of a death, and everybody was woken for it.
    pub(crate) over: bool,
    pub(crate) flights: BTreeMap<FlightId, Flight>,
    pub(crate) pairs: BTreeMap<(Rank, Rank), Pair>,
    /// Words that cards keep to themselves, and for how many operations.
    pub(crate) cards: BTreeMap<GlobalAddress, (u64, usize)>,
    /// By key.
    pub(crate) groups: BTreeMap<u64, Circle>,
    pub(crate) watch: Watch,
    pub(crate) counts: Counts,
    /// How far a thread may be ahead of threads of other ranks.
    pub(crate) ahead_ns: u64,
    entries: u64,
}

/// What one rank has and owes.
#[derive(Debug)]
pub(crate) struct RankState {
    pub(crate) actors: Vec<usize>,
    pub(crate) alive: usize,
    /// How many things happened that concern it.
    pub(crate) news: u64,
    pub(crate) completions: VecDeque<(Token, Result<u64, Cause>)>,
    /// Why its operations are refused for good.
    pub(crate) over: Option<Cause>,
    pub(crate) dead: bool,
    /// As last seen on the board.
    pub(crate) stage: Stage,
    /// Operations that were accepted and have not ended.
    pub(crate) outstanding: usize,
    /// Operations and lines of which something has not arrived.
    pub(crate) flying: usize,
    /// When its way out is free.
    pub(crate) way_out_free_at: u64,
    /// What arrived while it was in no call is being carried out now.
    pub(crate) serving: bool,
    /// What has arrived and waits for a call of this rank.
    pub(crate) inbox: VecDeque<What>,
    /// When the last promised chance to try again comes.
    pub(crate) retry_at: u64,
    pub(crate) flights_made: u64,
}

/// What is known between an issuer and a peer.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// When the last operation that must not be overtaken arrives.
    pub(crate) ordered_until: u64,
    /// Until when operations are refused.
    pub(crate) storm_until: u64,
    /// When the way is there.
    pub(crate) connected_at: Option<u64>,
    /// What a dead peer's fabric answers: nothing but Again (true), or nothing at all.
    pub(crate) mute: Option<bool>,
}

/// Figures of a run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) steps: u64,
    pub(crate) events: u64,
    pub(crate) switches: u64,
}

impl World {
    pub(crate) fn new(sim: &Sim, board: Arc<Board>) -> Result<World> {
        let ranks = (0..sim.ranks).map(|_| RankState::new()).collect();
        let mut world = World {
            memory: Memory::new(sim.ranks)?,
            board,
            now: 0,
            events: Agenda::default(),
            turns: Agenda::default(),
            draws: Draws::new(sim.seed),
            trace: Trace::new(sim.keeps_trace),
            actors: Vec::new(),
            alive: 0,
            running: 0,
            ranks,
            gone: 0,
            stages: 0,
            over: false,
            flights: BTreeMap::new(),
            pairs: BTreeMap::new(),
            cards: BTreeMap::new(),
            groups: BTreeMap::new(),
            watch: Watch::default(),
            counts: Counts::default(),
            ahead_ns: if sim.can.map || sim.in_step { 0 } else { sim.network.latency_ns },
            entries: 0,
            sim: sim.clone(),
        };
        for death in &sim.faults.deaths {
            let what = What::Die { rank: death.rank, silent: death.silent };
            world.schedule(death.at_ns, death.rank, what);
        }
        Ok(world)
    }

    pub(crate) fn rank(&self, rank: Rank) -> &RankState {
        &self.ranks[rank.index()]
    }

    pub(crate) fn rank_mut(&mut self, rank: Rank) -> &mut RankState {
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
    pub(crate) fn schedule(&mut self, at_ns: u64, rank: Rank, what: What) {
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
    pub(crate) fn happen(&mut self, moment: Moment, what: What) {
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

    /// What an event does, now or when a passive target gets to it.
    pub(crate) fn carry_out(&mut self, what: What) {
        match what {
            What::Read { flight, piece } => self.read(flight, piece),
            What::Land { flight, piece } => self.land(flight, piece),
            What::Apply { flight } => self.apply(flight),
            What::WriteBack { flight, at, width, value, old } => {
                self.write_back(flight, at, width, value, old);
            }
            What::End { flight, outcome } => self.end(flight, outcome),
            What::EndEarly { flight } => self.end_early(flight),
            What::Come { key, member } => self.come(key, member),
            What::Met { key, member } => self.met(key, member),
            What::Retry { rank } => self.news(rank),
            What::Die { rank, silent } => self.die(rank, silent),
            What::Tell { rank } => self.tell(rank),
        }
    }
}

impl RankState {
    fn new() -> RankState {
        RankState {
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
