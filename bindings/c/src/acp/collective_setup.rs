//! How the members of a group create a collective: each prepares its memory, and tells the first member where it is.
//!
//! Unsafe: arrays are memory of C, which its owner vouches for.
#![allow(unsafe_code)]

use super::command_list::{Edge, Place, allgather_tree, broadcast_tree};
use super::slots::{FROM_FIRST, TO_FIRST};
use super::state::State;
use crate::status::Failure;
use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use tasuki::Rank;
use tasuki::onesided::{GlobalAddress, LocalArray, RawRegistration, RemoteSignal};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Broadcast,
    Allgather,
}

impl Kind {
    /// How many blocks an array has of `members` members.
    pub(super) fn blocks(self, members: usize) -> usize {
        if self == Kind::Broadcast { 1 } else { members }
    }

    pub(super) fn tree(self, members: usize) -> Vec<Edge> {
        if self == Kind::Broadcast { broadcast_tree(members) } else { allgather_tree(members) }
    }
}

/// The memory between which a collective copies.
pub(super) enum Memory {
    /// The array of the program, and its bytes.
    Direct(RawRegistration, usize),
    /// A staging buffer.
    Buffered(LocalArray<u8>),
}

impl Memory {
    /// Makes an array of the program the memory of a collective.
    ///
    /// # Safety
    /// The array stays until the collective is freed.
    pub(super) unsafe fn direct(state: &State, array: *mut c_void, bytes: usize) -> Result<Memory, Failure> {
        if array.is_null() || bytes == 0 || bytes > isize::MAX as usize {
            return Err(Failure::misuse(format!(
                "there is no array of {} bytes at {array:p}",
                bytes.cast_signed()
            )));
        }
        // SAFETY: the caller promises it.
        Ok(Memory::Direct(unsafe { state.job.register_raw(array.cast(), bytes)? }, bytes))
    }

    /// Makes a staging buffer.
    pub(super) fn buffered(state: &State, bytes: usize) -> Result<Memory, Failure> {
        if bytes == 0 || bytes > isize::MAX as usize {
            return Err(Failure::misuse(format!("there is no buffer of {} bytes", bytes.cast_signed())));
        }
        Ok(Memory::Buffered(state.job.alloc_local(bytes)?))
    }

    pub(super) fn address(&self) -> GlobalAddress {
        match self {
            Memory::Direct(registration, _) => registration.address(),
            Memory::Buffered(staging) => staging.pointer().address(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Memory::Direct(_, bytes) => *bytes,
            Memory::Buffered(staging) => staging.len(),
        }
    }
}

/// Returns the ranks of a group.
pub(super) fn ranks_of(state: &State, group: &[c_int]) -> Result<Vec<Rank>, Failure> {
    let ranks = group.iter().map(|number| state.rank_of(*number)).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = ranks.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::misuse(format!("rank {} is in the group twice", state.number_of(twice[0]))));
    }
    Ok(ranks)
}

/// What members compare: the call, the group and the sizes.
pub(super) fn signature(kind: Kind, ranks: &[Rank], memory: Option<&Memory>) -> [u64; 3] {
    let mut hasher = DefaultHasher::new();
    ranks.hash(&mut hasher);
    let is_buffered = matches!(memory, Some(Memory::Buffered(_)));
    let call = u64::from(kind == Kind::Allgather) | u64::from(is_buffered) << 1;
    [call, hasher.finish(), memory.map_or(0, Memory::bytes) as u64]
}

/// What a member tells the first one.
pub(super) struct Hello {
    pub(super) call: [u64; 3],
    /// Where its bytes are; null if it could not be prepared.
    pub(super) address: GlobalAddress,
    pub(super) signals: [RemoteSignal; 2],
}

/// What a member learns from the others.
pub(super) struct Met {
    pub(super) ready: RemoteSignal,
    pub(super) places: Vec<Place>,
    pub(super) go: Vec<RemoteSignal>,
}

/// What the first member has found.
const AGREED: u64 = 0;
const DIFFERENT: u64 = 1;
const NOT_PREPARED: u64 = 2;

fn verdict(found: u64) -> Result<(), Failure> {
    match found {
        AGREED => Ok(()),
        NOT_PREPARED => {
            Err(Failure::no_memory("a member could not prepare its memory, so no member has created it"))
        }
        _ => Err(Failure::disagreement(
            "the members of the group create different collectives: kind, group or size differ",
        )),
    }
}

impl Hello {
    /// As another member than the first.
    pub(super) fn ask(self, state: &State, first: Rank, kind: Kind) -> Result<Met, Failure> {
        let messages = &state.own_messages;
        let [call, group, bytes] = self.call;
        messages.send(&[call, group, bytes, self.address.bits()], first, TO_FIRST)?;
        messages.send(&self.signals, first, TO_FIRST)?;
        let mut found = 0;
        messages.recv(&mut found, first, FROM_FIRST)?;
        verdict(found)?;
        let mut ready = self.signals[0];
        messages.recv(&mut ready, first, FROM_FIRST)?;
        if kind == Kind::Broadcast {
            return Ok(Met { ready, places: Vec::new(), go: Vec::new() });
        }
        let (memory, _) = messages.recv_vec::<u64>(first, FROM_FIRST)?;
        let (done, _) = messages.recv_vec::<RemoteSignal>(first, FROM_FIRST)?;
        let place = |(memory, done)| Place { memory: GlobalAddress::from_bits(memory), done };
        Ok(Met { ready, places: memory.into_iter().zip(done).map(place).collect(), go: Vec::new() })
    }

    /// As the first member.
    pub(super) fn answer(
        self,
        state: &State,
        ranks: &[Rank],
        kind: Kind,
        ready: RemoteSignal,
    ) -> Result<Met, Failure> {
        let messages = &state.own_messages;
        let is_prepared = !self.address.is_null();
        let mut found = if is_prepared { AGREED } else { NOT_PREPARED };
        let mut places = vec![Place { memory: self.address, done: self.signals[0] }];
        let mut go = vec![self.signals[1]];
        for &rank in &ranks[1..] {
            let (mut words, mut signals) = ([0; 4], self.signals);
            messages.recv(&mut words, rank, TO_FIRST)?;
            messages.recv(&mut signals, rank, TO_FIRST)?;
            places.push(Place { memory: GlobalAddress::from_bits(words[3]), done: signals[0] });
            go.push(signals[1]);
            if words[3] == 0 {
                found = NOT_PREPARED;
            } else if is_prepared && words[..3] != self.call {
                found = found.max(DIFFERENT);
            }
        }
        for &rank in &ranks[1..] {
            messages.send(&found, rank, FROM_FIRST)?;
            if found == AGREED {
                messages.send(&ready, rank, FROM_FIRST)?;
            }
        }
        verdict(found)?;
        if kind == Kind::Broadcast {
            return Ok(Met { ready, places, go: Vec::new() });
        }
        let memory: Vec<u64> = places.iter().map(|place| place.memory.bits()).collect();
        let done: Vec<RemoteSignal> = places.iter().map(|place| place.done).collect();
        for &rank in &ranks[1..] {
            messages.send(&memory, rank, FROM_FIRST)?;
            messages.send(&done, rank, FROM_FIRST)?;
        }
        Ok(Met { ready, places, go })
    }
}
