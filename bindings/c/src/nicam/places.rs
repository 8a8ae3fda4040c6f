//! Which memory of which node an address of C names, and the calls that make such memory.
//!
//! An address is looked up in two lists: the areas of this rank, which are all that `nicam_alloc` made and all that this
//! rank has locked, and the locked areas of the other node, which that node publishes in job memory.
//!
//! Unsafe: the functions are symbols of C; memory of C is registered, and its owner vouches for it.
#![allow(unsafe_code)]

use super::state::{State, give, state};
use crate::status::Failure;
use std::ffi::{c_int, c_void};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use tasuki::bindings::own_place;
use tasuki::onesided::{GlobalAddress, RawRegistration};
use tasuki::{Array, GlobalPtr, Job, Rank};

/// How many areas a rank may lock.
const LOCKED_MAX: usize = 64;
/// What a rank publishes of an area: its first address here, its length, and its global address. Length 0: none.
const WORDS: usize = 3;

/// Memory that transfers may use.
struct Area {
    start: usize,
    bytes: usize,
    kind: Kind,
}

enum Kind {
    /// It has a counterpart on each node.
    Symmetric(Array<u64>),
    /// It is this rank's, and is published under that number.
    Locked(RawRegistration, usize),
}

/// The memory of a rank that transfers may use.
pub(super) struct Places {
    areas: RwLock<Vec<Area>>,
    /// What each rank publishes of its locked areas.
    published: Array<u64>,
}

/// Returns how far inside an area an address is, if all its bytes are.
fn offset_in((start, len): (usize, usize), at: usize, bytes: usize) -> Option<usize> {
    let offset = at.checked_sub(start)?;
    (offset.checked_add(bytes)? <= len).then_some(offset)
}

impl Places {
    pub(super) fn new(job: &Job) -> tasuki::Result<Places> {
        Ok(Places { areas: RwLock::default(), published: job.alloc(LOCKED_MAX * WORDS)? })
    }

    fn change(&self) -> RwLockWriteGuard<'_, Vec<Area>> {
        self.areas.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of `bytes` bytes of a node.
    pub(super) fn of(
        &self,
        job: &Job,
        node: Rank,
        at: *const c_void,
        bytes: usize,
    ) -> Result<GlobalPtr<u8>, Failure> {
        let address = at.addr();
        let areas = self.areas.read().unwrap_or_else(PoisonError::into_inner);
        for area in &*areas {
            let Some(offset) = offset_in((area.start, area.bytes), address, bytes) else { continue };
            match &area.kind {
                Kind::Symmetric(array) => return Ok(array.on(node).cast::<u8>().at(offset)),
                Kind::Locked(memory, _) if node == job.rank() => {
                    return Ok(GlobalPtr::new(memory.address_of(at.cast())?));
                }
                Kind::Locked(..) => {}
            }
        }
        drop(areas);
        if node != job.rank() {
            let mut published = [0; LOCKED_MAX * WORDS];
            job.get(self.published.on(node), &mut published)?;
            for [start, len, global] in published.as_chunks::<WORDS>().0 {
                if let Some(offset) = offset_in((*start as usize, *len as usize), address, bytes) {
                    return Ok(GlobalPtr::new(GlobalAddress::from_bits(*global)).at(offset));
                }
            }
        }
        Err(Failure::misuse(format!(
            "the {bytes} bytes at {at:p} are neither in memory of nicam_alloc nor locked by node {node}"
        )))
    }
}

/// Returns a node by its number.
pub(super) fn node(state: &State, number: c_int) -> Result<Rank, Failure> {
    match usize::try_from(number) {
        Ok(rank) if rank < state.job.size() => Ok(Rank(rank)),
        _ => Err(Failure::misuse(format!("node {number} does not exist: 0 to {}", state.job.size() - 1))),
    }
}

calls! {
    /// Allocates memory that corresponds on all nodes.
    nicam_alloc(memory: *mut *mut c_void, size: usize) {
        let state = state()?;
        if memory.is_null() {
            return Err(Failure::misuse("memory is null"));
        }
        let array = state.job.alloc::<u64>(size.div_ceil(size_of::<u64>()).max(1))?;
        let start = own_place(&array);
        // SAFETY: it is not null, and the caller promises the rest.
        unsafe { give(memory, start.cast(), "memory")? };
        state.places.change().push(Area { start: start.addr(), bytes: size, kind: Kind::Symmetric(array) });
        Ok(())
    }

    /// Frees memory of `nicam_alloc`.
    nicam_free(memory: *mut c_void) {
        let mut areas = state()?.places.change();
        let is_it = |area: &Area| area.start == memory.addr() && matches!(area.kind, Kind::Symmetric(_));
        let found = areas.iter().position(is_it);
        let text = || format!("{memory:p} was not allocated by nicam_alloc");
        areas.remove(found.ok_or_else(|| Failure::misuse(text()))?);
        Ok(())
    }

    /// Makes memory of this node accessible to the others.
    nicam_lock_memory(addr: *mut c_void, range: usize) {
        let state = state()?;
        if addr.is_null() || range == 0 {
            return Err(Failure::misuse(format!("there is no memory of {range} bytes at {addr:p}")));
        }
        let mut areas = state.places.change();
        let is_taken = |number: usize| areas.iter().any(|area| matches!(area.kind, Kind::Locked(_, of) if of == number));
        let number = (0..LOCKED_MAX).find(|&number| !is_taken(number));
        let number = number.ok_or_else(|| {
            Failure::full(format!("{LOCKED_MAX} areas are locked: unlock one, or lock larger ones"))
        })?;
        // SAFETY: the caller keeps the memory until it unlocks it or the rank leaves.
        let memory = unsafe { state.job.register_raw(addr.cast(), range)? };
        let own = state.places.published.pointer().at(number * WORDS);
        let words = [addr.addr() as u64, range as u64, memory.address().bits()];
        for (at, word) in words.into_iter().enumerate().rev() {
            state.job.store(own.at(at), word)?;
        }
        areas.push(Area { start: addr.addr(), bytes: range, kind: Kind::Locked(memory, number) });
        Ok(())
    }

    /// Ends what `nicam_lock_memory` began.
    nicam_unlock_memory(addr: *mut c_void) {
        let state = state()?;
        let mut areas = state.places.change();
        let locked = areas.iter().position(|area| {
            area.start == addr.addr() && matches!(area.kind, Kind::Locked(..))
        });
        let text = || format!("no memory at {addr:p} is locked");
        let area = areas.remove(locked.ok_or_else(|| Failure::misuse(text()))?);
        if let Kind::Locked(_, number) = area.kind {
            state.job.store(state.places.published.pointer().at(number * WORDS + 1), 0)?;
        }
        Ok(())
    }
}
