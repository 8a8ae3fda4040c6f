//! Collectives of a group: created once, started many times, freed.
//!
//! A start has one or more *rounds*, in each of which every member's array is filled once by the lists of
//! [`command_list`](super::command_list). A direct collective copies between the arrays of the program, in one round. A
//! buffered one copies between staging buffers, a piece of the program's arrays in each round.
//!
//! Who writes when: a member raises the signal `ready` of the first member of the group when it begins a round, which is
//! after its part of the round before has ended. When all have done so, copies may start. So no copy of a round comes to a
//! member that has not begun it, however often a start follows another at once.
//!
//! The part of a member has ended when its signal `done` has counted the copies that it gives bytes to, and, where it gives
//! none, the one that it gets.
//!
//! Unsafe: arrays are memory of C, which its owner vouches for.
#![allow(unsafe_code)]

use super::collective_setup::{Hello, Kind, Memory, ranks_of, signature};
use super::command_list::{CommandList, Edge, Place, copies_from};
use super::signals::CountedSignal;
use super::state::State;
use crate::status::Failure;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::task::{Context, Waker};
use tasuki::onesided::{GlobalAddress, RemoteSignal, Trigger};
use tasuki::{Command, Job, Request};

/// What a start is about.
pub(super) enum Data {
    /// The blocks of `bytes` bytes each, from `offset` on in the array.
    InArray { offset: usize, bytes: usize },
    /// The array with blocks of `bytes` bytes each.
    Staged { array: Array, bytes: usize },
}

/// An array of the program that is staged.
pub(super) struct Array(*mut u8);

// SAFETY: the program lends it to the start, which one thread at a time advances.
unsafe impl Send for Array {}

impl Array {
    pub(super) fn new(at: *mut c_void) -> Array {
        Array(at.cast())
    }

    /// The bytes from `first` on.
    ///
    /// # Safety
    /// The array has them, and the result is dropped before the start has ended.
    unsafe fn part(&mut self, first: usize, bytes: usize) -> &mut [u8] {
        match bytes {
            0 => &mut [],
            // SAFETY: the caller promises it.
            _ => unsafe { std::slice::from_raw_parts_mut(self.0.add(first), bytes) },
        }
    }
}

/// A start that has begun.
struct Start {
    data: Data,
    /// Bytes of each block that earlier rounds have filled.
    filled: usize,
}

/// The round under way.
struct Round {
    /// Met when the part of this member has ended.
    ended: Trigger<'static>,
    /// Bytes of each block.
    bytes: usize,
}

/// A collective of a group.
pub(super) struct Collective {
    job: &'static Job,
    pub(super) kind: Kind,
    /// The number of members, and that of this one among them.
    members: usize,
    own: usize,
    memory: Memory,
    /// The members in their order: where this rank executes a list, otherwise empty.
    places: Vec<Place>,
    list: Option<CommandList>,
    /// Counts what [`Place::done`] counts.
    done: CountedSignal,
    /// How much of that a round has.
    done_in_round: u64,
    /// Counts the members that have begun a round: at the first member.
    ready: CountedSignal,
    ready_of_first: RemoteSignal,
    /// Counts the rounds that all members have begun: in an allgather. The signals of all members: at the first one.
    go: CountedSignal,
    go_of_members: Vec<RemoteSignal>,
    /// Rounds that have begun.
    rounds: u64,
    round: Option<Round>,
    /// The starts that have not ended. The first has begun.
    starts: VecDeque<Start>,
    /// How many starts were made, and have ended.
    started: u64,
    ended: u64,
    failure: Option<Failure>,
}

impl Collective {
    /// Creates a collective with the other members, which wait for each other.
    pub(super) fn create(
        state: &'static State,
        kind: Kind,
        group: &[c_int],
        memory: impl FnOnce() -> Result<Memory, Failure>,
    ) -> Result<Collective, Failure> {
        let ranks = ranks_of(state, group)?;
        let (job, members, first) = (state.job, ranks.len(), ranks[0]);
        let own = ranks.iter().position(|rank| *rank == job.rank());
        let own = own.ok_or_else(|| Failure::misuse("this rank is not in the group"))?;
        let signal = || state.signals.take(job);
        let (done, ready, go) = (signal()?, signal()?, signal()?);
        let memory = memory().and_then(|memory| {
            let blocks = kind.blocks(members);
            let text = || {
                Failure::misuse(format!(
                    "{} bytes do not hold a byte of each of {members} members",
                    memory.bytes()
                ))
            };
            if memory.bytes() < blocks { Err(text()) } else { Ok(memory) }
        }); // a failure is told to the others
        let address = memory.as_ref().map_or(GlobalAddress::NULL, Memory::address);
        let hello = Hello {
            call: signature(kind, &ranks, memory.as_ref().ok()),
            address,
            signals: [done.remote(job), go.remote(job)],
        };
        let met = if own == 0 {
            hello.answer(state, &ranks, kind, ready.remote(job))
        } else {
            hello.ask(state, first, kind)
        };
        let (memory, met) = (memory?, met?);
        let executes = own == 0 || kind == Kind::Allgather;
        let tree = kind.tree(members);
        let done_in_round = match kind {
            Kind::Broadcast => part_of(&tree, own) as u64,
            // A member has each place once, in one of the lists.
            Kind::Allgather => (0..members).map(|place| part_of(&tree, place) as u64).sum(),
        };
        let extra = if own == 0 && kind == Kind::Allgather { members.div_ceil(2) } else { 0 };
        let list = if executes { Some(CommandList::new(job, &state.signals, tree, extra)?) } else { None };
        let (starts, places, ready_of_first, go_of_members) =
            (VecDeque::new(), met.places, met.ready, met.go);
        let (rounds, round, started, ended, failure) = (0, None, 0, 0, None);
        Ok(Collective {
            job,
            kind,
            members,
            own,
            memory,
            places,
            list,
            done,
            done_in_round,
            ready,
            ready_of_first,
            go,
            go_of_members,
            rounds,
            round,
            starts,
            started,
            ended,
            failure,
        })
    }

    /// Begins a start. Returns its number.
    pub(super) fn start(&mut self, data: Data) -> Result<u64, Failure> {
        let blocks = self.kind.blocks(self.members);
        match (&self.memory, &data) {
            (Memory::Direct(_, size), Data::InArray { offset, bytes }) => {
                let end = bytes.checked_mul(blocks).and_then(|all| all.checked_add(*offset));
                if end.is_none_or(|end| end > *size) {
                    let text = format!(
                        "{blocks} blocks of {bytes} bytes from {offset} on exceed the array of {size} bytes"
                    );
                    return Err(Failure::misuse(text));
                }
            }
            (Memory::Buffered(_), Data::Staged { array, bytes }) => {
                let all = bytes.checked_mul(blocks).filter(|all| *all <= isize::MAX as usize);
                if all.is_none_or(|all| all > 0 && array.0.is_null()) {
                    return Err(Failure::misuse(format!(
                        "there is no array of {blocks} x {bytes} bytes at {:p}",
                        array.0
                    )));
                }
            }
            (Memory::Direct(..), _) => return Err(Failure::misuse("the collective is not buffered")),
            (Memory::Buffered(_), _) => return Err(Failure::misuse("the collective is buffered")),
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        self.starts.push_back(Start { data, filled: 0 });
        self.started += 1;
        Ok(self.started)
    }

    /// Begins the next round of the first start.
    fn begin_round(&mut self) -> Result<(), Failure> {
        let Some(start) = self.starts.front_mut() else { return Ok(()) };
        self.rounds += 1;
        let round = self.rounds;
        let (offset, bytes) = match (&mut start.data, &self.memory) {
            (Data::Staged { array, bytes }, Memory::Buffered(staging)) => {
                let piece = (*bytes - start.filled).min(staging.len() / self.kind.blocks(self.members));
                let is_own = self.kind == Kind::Allgather || self.own == 0;
                if is_own && piece > 0 {
                    let block = if self.kind == Kind::Allgather { self.own } else { 0 };
                    // SAFETY: the block is in the array, which the program keeps until the start has ended.
                    let part = unsafe { array.part(block * *bytes + start.filled, piece) };
                    staging.write(block * piece, part)?;
                }
                (0, piece)
            }
            (Data::InArray { offset, bytes }, _) => (*offset, *bytes),
            (Data::Staged { .. }, Memory::Direct(..)) => (0, 0), // no start of that kind was accepted
        };
        if let Some(list) = &self.list {
            let (members, own, places) = (self.members, self.own, &self.places);
            let (begin, may_start) = match self.kind {
                Kind::Broadcast => (offset, self.all_are_ready(round)),
                Kind::Allgather => (offset + own * bytes, self.go.reaches(round)),
            };
            // The list of an allgather begins at this member.
            let place = |place| places[(own + place) % members];
            list.post(round, place, (begin as u64, bytes), &may_start, self.job)?;
            self.post_go(list, round)?;
        }
        self.job.raise(self.ready_of_first, 1)?;
        let ended = self.done.reaches(self.done_in_round * round);
        self.round = Some(Round { ended, bytes });
        Ok(())
    }

    /// Met when all members have begun a round: at the first one.
    fn all_are_ready(&self, round: u64) -> Trigger<'static> {
        self.ready.reaches(self.members as u64 * round)
    }

    /// Posts what tells all members that all have begun a round.
    fn post_go(&self, list: &CommandList, round: u64) -> Result<(), Failure> {
        let pair = |two: &[RemoteSignal]| {
            let command = Command::nothing().when(self.all_are_ready(round));
            two.iter().fold(command, |command, signal| command.then(signal.add(1)))
        };
        list.post_others(&self.go_of_members.chunks(2).map(pair).collect::<Vec<_>>())
    }

    /// Ends the round under way.
    fn end_round(&mut self) -> Result<(), Failure> {
        let Some(mut round) = self.round.take() else { return Ok(()) };
        round.ended.wait()?; // an error, or it is met already
        let Some(start) = self.starts.front_mut() else { return Ok(()) };
        start.filled += round.bytes;
        let is_over = match (&mut start.data, &self.memory) {
            (Data::Staged { array, bytes }, Memory::Buffered(staging)) => {
                let filled = start.filled - round.bytes;
                let gets = |block: usize| match self.kind {
                    Kind::Broadcast => self.own != 0,
                    Kind::Allgather => self.own != block,
                };
                for block in
                    (0..self.kind.blocks(self.members)).filter(|block| gets(*block) && round.bytes > 0)
                {
                    // SAFETY: the block is in the array, which the program keeps until the start has ended.
                    let part = unsafe { array.part(block * *bytes + filled, round.bytes) };
                    staging.read(block * round.bytes, part)?;
                }
                start.filled == *bytes
            }
            _ => true,
        };
        if is_over {
            self.starts.pop_front();
            self.ended += 1;
        }
        Ok(())
    }

    /// Does what can be done without waiting.
    fn step(&mut self, waker: &Waker) -> Result<(), Failure> {
        loop {
            if let Some(round) = &mut self.round {
                if round.ended.poll_finished(&mut Context::from_waker(waker)).is_pending() {
                    return Ok(());
                }
                self.end_round()?;
            } else if self.starts.is_empty() {
                return Ok(());
            } else {
                self.begin_round()?;
            }
        }
    }

    /// Does what can be done without waiting. Returns true if a start has ended.
    pub(super) fn advance(&mut self, waker: &Waker) -> bool {
        let ended = self.ended;
        if self.failure.is_none()
            && let Err(failure) = self.step(waker)
        {
            self.failure = Some(failure);
            return true;
        }
        self.ended != ended
    }

    /// Returns `None` as long as the start with these low bits of its number has not ended. One that was never made has.
    pub(super) fn outcome_of(&self, start: u32) -> Option<Result<(), Failure>> {
        let position = start.wrapping_sub(self.ended as u32);
        let is_under_way = (1..=self.started - self.ended).contains(&u64::from(position));
        if is_under_way { self.outcome() } else { Some(Ok(())) }
    }

    /// Returns `None` as long as a start has not ended.
    pub(super) fn outcome(&self) -> Option<Result<(), Failure>> {
        match &self.failure {
            _ if self.started == self.ended => Some(Ok(())),
            Some(failure) => Some(Err(failure.clone())),
            None => None,
        }
    }

    /// Frees a collective whose starts have ended, with the other members.
    pub(super) fn free(self, state: &State) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure); // its signals may be raised or poisoned later, so nobody gets them
        }
        // All copies that members have to do with have ended when all are here: then the lists are empty.
        let last = self.rounds + 1;
        self.job.raise(self.ready_of_first, 1)?;
        if self.own == 0 {
            self.all_are_ready(last).wait()?;
            self.go_of_members.iter().try_for_each(|go| self.job.raise(*go, 1))?;
        }
        if self.kind == Kind::Allgather {
            self.go.reaches(last).wait()?;
        }
        if let Some(list) = self.list {
            list.end(&state.signals);
        }
        for signal in [self.done, self.ready, self.go] {
            state.signals.put_back(signal);
        }
        Ok(())
    }
}

/// How much a place counts in a round: the copies from it, or the one to it.
fn part_of(tree: &[Edge], place: usize) -> usize {
    if tree.is_empty() { 0 } else { copies_from(tree, place).max(1) }
}
