//! The owner's side of a rank's range: it allocates, registers and frees memory.
//!
//! The pages of freed job memory are released three times. First at once, so that the system can
//! use them. Again when the range has become quiescent, because stores that were in progress may
//! have allocated pages; nobody reads them, but they take memory. And again before the range is
//! reused.

mod signals;

use super::address::GlobalAddress;
use super::extent::{CLOSED, Extent, ExtentInfo};
use super::extent_table::{ExtentLocation, ExtentTable, Kind};
use super::layout::{
    ARENA, ARENA_BYTES, BOOTSTRAP_MEMORY, BOOTSTRAP_MEMORY_BYTES, EXTENTS, GRANULE, LOCAL, PAGE, REGISTERED,
    SIGNALS_MAX, SYMMETRIC,
};
use super::mapped_range::MappedRange;
use super::region::Region;
use crate::base::error_hint::REGISTRATIONS;
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{Cause, Error, Result};
use crate::os::available_memory;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The time that accesses of live ranks get to end after a rank has died. An access is a system call of milliseconds.
const LAST_ACCESSES: Duration = Duration::from_secs(1);

/// Entries of the extent table that stay dead before the oldest one is used again.
const DEAD_KEPT: usize = 4096;

/// The memory that a rank has registered at present.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Bytes of symmetric memory.
    pub symmetric: u64,
    /// Bytes of local memory.
    pub local: u64,
    /// Bytes of registered memory that the user owns.
    pub registered: u64,
    /// Signals created so far.
    pub signals: u64,
    /// Live registrations.
    pub extents: u64,
}

/// Allocates the range of one rank. Addresses are allocated upwards and reused only when no fresh ones are left. Freed
/// memory is released from the file, so that a late store writes to a page that nobody reads.
#[derive(Debug)]
pub struct Registry {
    range: Arc<MappedRange>,
    extent_table: ExtentTable,
    /// The number of barriers that the job has passed: memory freed before the last ones may be reused.
    barriers: AtomicU64,
    state: Mutex<RegistryState>,
}

#[derive(Debug)]
struct RegistryState {
    symmetric: Region,
    local: Region,
    registered: Region,
    /// Signals created from the low end of signal memory.
    signals: u64,
    /// Signals allocated from the high end of signal memory.
    private: u64,
    /// Private signals that were freed: the first numbers, by the number of signals in a row.
    freed_signals: BTreeMap<u32, Vec<u32>>,
    /// Likewise, those whose counts are 0.
    freed_untouched_signals: BTreeMap<u32, Vec<u32>>,
    next_extent: u32,
    /// Entries of the extent table that are no longer live, each once, the oldest first.
    dead_extents: VecDeque<u32>,
    usage: Usage,
}

impl Registry {
    /// Makes the registry of the rank that owns `range`, whose file [`MappedRange::create_file`] made.
    pub fn new(range: Arc<MappedRange>) -> Result<Registry> {
        let extent_table = range.extent_table()?;
        let state = RegistryState {
            symmetric: Region::new(SYMMETRIC),
            local: Region::new(LOCAL),
            registered: Region::new(REGISTERED),
            signals: 0,
            private: 0,
            freed_signals: BTreeMap::new(),
            freed_untouched_signals: BTreeMap::new(),
            next_extent: ARENA_EXTENT + 1,
            dead_extents: VecDeque::new(),
            usage: Usage { symmetric: BOOTSTRAP_MEMORY_BYTES, extents: 1, ..Usage::default() },
        };
        Ok(Registry { range, extent_table, barriers: AtomicU64::new(0), state: Mutex::new(state) })
    }

    /// Allocates `bytes` of symmetric memory. All ranks must make the same sequence of calls, and get the same offsets.
    /// Memory backs the bytes at once: a later access cannot fail. The ranks must have agreed before that there is
    /// enough memory: if one allocates, all must. Returns `None` if no fresh addresses are left: then the ranks must
    /// agree on freed ones ([`Registry::freed_symmetric`], [`Registry::allocate_symmetric_at`]).
    pub fn allocate_symmetric(&self, bytes: u64) -> Result<Option<u64>> {
        check_size(bytes)?;
        let Some(start) = self.state().symmetric.allocate_fresh(bytes) else { return Ok(None) };
        self.reserve_and_register(start, bytes, 0).map(|()| Some(start))
    }

    /// Returns the first freed offset, from `from` on, for `bytes` of symmetric memory; `u64::MAX` if there is none.
    pub fn freed_symmetric(&self, bytes: u64, from: u64) -> u64 {
        let mut state = self.state();
        let found = state.symmetric.find_freed(bytes, from.max(SYMMETRIC.start)).unwrap_or(u64::MAX);
        self.release_quiescent(&mut state);
        found
    }

    /// Allocates the freed symmetric memory at `start`, on which all ranks agreed.
    pub fn allocate_symmetric_at(&self, start: u64, bytes: u64) -> Result<u64> {
        self.state().symmetric.allocate_freed(start, bytes);
        self.reserve_and_register(start, bytes, 0).map(|()| start)
    }

    /// Treats all fresh symmetric addresses as allocated: tests cannot wait for half a TiB.
    #[doc(hidden)]
    pub fn exhaust_symmetric(&self) {
        self.state().symmetric.exhaust_fresh();
    }

    /// Allocates `bytes` of local memory.
    pub fn allocate_local(&self, bytes: u64) -> Result<u64> {
        self.allocate_local_for(bytes, 0)
    }

    /// Allocates `bytes` of closed local memory: all operations on it are refused.
    pub fn allocate_closed(&self, bytes: u64) -> Result<u64> {
        self.allocate_local_for(bytes, CLOSED)
    }

    /// Makes closed memory, which begins at `offset`, usual local memory.
    pub fn open(&self, offset: u64) -> Result<()> {
        let place = self.extent_table.find_closed(offset, 1).filter(|place| place.start == offset);
        let place = place.ok_or_else(|| no_registration(offset))?;
        let extent = self.extent_table.extent(place.extent);
        extent.retire();
        extent.publish(ExtentInfo { start: offset, len: place.len, host: 0 });
        Ok(())
    }

    fn allocate_local_for(&self, bytes: u64, host: u64) -> Result<u64> {
        check_size(bytes)?;
        check_available(bytes)?;
        let start = {
            let mut state = self.state();
            let allocated = state.local.allocate(bytes, self.barriers());
            self.release_quiescent(&mut state);
            allocated.map_err(|why| state.local.error(bytes, &why))?
        };
        self.reserve_and_register(start, bytes, host).map(|()| start)
    }

    /// Reserves memory for addresses that were allocated, and registers them.
    fn reserve_and_register(&self, start: u64, bytes: u64, host: u64) -> Result<()> {
        let pages = bytes.next_multiple_of(PAGE);
        self.range.file().punch(start, pages);
        let reserved = self.range.file().reserve(start, pages);
        let mut state = self.state();
        let registered = reserved.and_then(|()| self.publish(&mut state, start, bytes, host));
        registered.inspect_err(|_| {
            self.range.file().punch(start, pages);
            self.free_addresses(&mut state, start, bytes);
        })
    }

    /// Returns addresses to their region.
    fn free_addresses(&self, state: &mut RegistryState, offset: u64, bytes: u64) {
        state.free_addresses(offset, bytes, self.barriers());
        self.release_quiescent(state);
    }

    /// Releases pages that late stores allocated in ranges that are now quiescent. Must be called
    /// before the lock of the state is released, and before memory is reserved for addresses
    /// allocated from it.
    fn release_quiescent(&self, state: &mut RegistryState) {
        for range in state.symmetric.take_newly_quiescent().chain(state.local.take_newly_quiescent()) {
            self.range.file().punch(range.start, range.end - range.start);
        }
        drop(state.registered.take_newly_quiescent()); // the file holds none of its bytes
    }

    /// Records that the job has passed a barrier: memory freed before the last ones may be reused.
    pub fn barrier_passed(&self) {
        self.barriers.fetch_add(1, Ordering::AcqRel); // SYNC barriers
    }

    /// Registers `bytes` of memory at `host` in this process. Returns its offset in the range. The
    /// offset has the low bits of `host`, so that both have the same alignment.
    pub fn register(&self, host: u64, bytes: u64) -> Result<u64> {
        if bytes == 0 || host == 0 {
            return Err(Error::argument(
                "a registration needs at least one byte, at an address that is not null",
            ));
        }
        if host.checked_add(bytes).is_none() {
            return Err(Error::argument(format!(
                "{bytes} bytes from {host:#x} on exceed the end of the address space"
            )));
        }
        if host == CLOSED {
            return Err(Error::argument("no memory of a program begins at address 1"));
        }
        let mut state = self.state();
        let inside = host % PAGE;
        let allocated = state.registered.allocate(inside + bytes, self.barriers());
        self.release_quiescent(&mut state);
        let start = allocated.map_err(|why| state.registered.error(bytes, &why))? + inside;
        let registered = self.publish(&mut state, start, bytes, host);
        registered.inspect_err(|_| self.free_addresses(&mut state, start, bytes)).map(|()| start)
    }

    /// Ends the registration that begins at `offset`. An access that begins after this call fails.
    /// An access in progress has ended when this returns, if the user owns the memory; if it is job
    /// memory, the access ends in bytes that nobody reads, and the memory is released to the
    /// system.
    pub fn free(&self, offset: u64) -> Result<()> {
        self.free_unless(offset, &|| None)
    }

    /// Like [`Registry::free`], for a job in which a rank may die: a rank that is killed during an
    /// access never ends it. Once `death` returns a cause, live ranks get one more second to end
    /// their accesses. If an access is still in progress then, the cause is the error, and peers
    /// may still write to the memory.
    pub fn free_unless(&self, offset: u64, death: &dyn Fn() -> Option<Cause>) -> Result<()> {
        let closed = self.extent_table.find_closed(offset, 1).map(Ok);
        let place = closed.unwrap_or_else(|| self.extent_table.find(offset, 1, offset))?;
        if place.start != offset || !is_freeable(offset) {
            return Err(no_registration(offset));
        }
        let extent = self.extent_table.extent(place.extent);
        extent.retire();
        wait_for_sections(extent, death)?;
        let mut state = self.state();
        state.dead_extents.push_back(place.extent);
        *state.usage_of(offset) -= place.len;
        state.usage.extents -= 1;
        self.free_addresses(&mut state, offset, place.len);
        if !REGISTERED.contains(&offset) {
            self.range.file().punch(offset, place.len.next_multiple_of(PAGE));
        }
        Ok(())
    }

    /// Returns what is registered at present.
    pub fn usage(&self) -> Usage {
        self.state().usage
    }

    /// Returns the owner's mapping of its range.
    pub fn range(&self) -> &Arc<MappedRange> {
        &self.range
    }

    /// Returns the place of the owner's own registered memory in its process.
    pub fn own_place(&self, at: GlobalAddress, len: u64) -> Result<*mut u8, Cause> {
        let place = self.extent_table.find(at.offset(), len, at.bits())?;
        let in_job = |place: ExtentLocation| self.range.at(at.offset(), place.start, place.len);
        match place.kind {
            Kind::Program(host) => Ok(host as *mut u8),
            Kind::Job => in_job(place).map(|at| at.as_ptr()).map_err(|error| error.cause().clone()),
        }
    }

    /// Writes an extent and then its granules: readers rely on this order.
    fn publish(&self, state: &mut RegistryState, start: u64, bytes: u64, host: u64) -> Result<()> {
        let number = state.new_extent()?;
        self.extent_table.extent(number).publish(ExtentInfo { start, len: bytes, host });
        self.extent_table.map_granules(start, bytes, number);
        *state.usage_of(start) += bytes;
        state.usage.extents += 1;
        Ok(())
    }

    /// Returns the number of barriers that the job has passed. It is read by an addition: a barrier that increments the
    /// counter later then also happens after everything that this thread did before. So a rank that leaves that barrier
    /// sees as dead what was freed here.
    fn barriers(&self) -> u64 {
        self.barriers.fetch_add(0, Ordering::AcqRel) // SYNC barriers
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl RegistryState {
    /// Returns an unused entry of the extent table, or the one that has been dead for the longest time: of many that are
    /// dead, so that the table stays small; else if no unused one is left.
    fn new_extent(&mut self) -> Result<u32> {
        if u64::from(self.next_extent) < EXTENTS && self.dead_extents.len() < DEAD_KEPT {
            self.next_extent += 1;
            return Ok(self.next_extent - 1);
        }
        let full = Cause::Full { what: REGISTRATIONS, capacity: EXTENTS as usize };
        self.dead_extents.pop_front().ok_or_else(|| full.into())
    }

    /// Returns addresses to their region, which reuses them after two more barriers.
    fn free_addresses(&mut self, offset: u64, bytes: u64, barriers: u64) {
        let start = offset / GRANULE * GRANULE; // registered memory begins inside its first granule
        let bytes = bytes + (offset - start);
        let region = if REGISTERED.contains(&offset) {
            &mut self.registered
        } else if LOCAL.contains(&offset) {
            &mut self.local
        } else {
            &mut self.symmetric
        };
        region.free(start, bytes, barriers);
    }

    fn usage_of(&mut self, offset: u64) -> &mut u64 {
        if REGISTERED.contains(&offset) {
            &mut self.usage.registered
        } else if LOCAL.contains(&offset) {
            &mut self.usage.local
        } else {
            &mut self.usage.symmetric
        }
    }
}

/// Waits until no access is in a section of a retired extent. Error: a rank has died, and an access did not end within
/// [`LAST_ACCESSES`].
fn wait_for_sections(extent: &Extent, death: &dyn Fn() -> Option<Cause>) -> Result<()> {
    let mut death_seen = None;
    while extent.is_used() {
        if let Some(cause) = death()
            && death_seen.get_or_insert_with(Instant::now).elapsed() > LAST_ACCESSES
        {
            return Err(cause.into());
        }
        std::thread::yield_now(); // a system call of a peer is in progress
    }
    Ok(())
}

/// Checks that machine and container have `bytes` available, and one part in sixty-four besides. Error: they do not.
pub fn check_available(bytes: u64) -> Result<()> {
    let available = available_memory::available();
    if bytes > available.bytes - available.bytes / 64 {
        return Err(
            Cause::NoMemory { wanted: bytes, available: available.bytes, limit: available.limit }.into()
        );
    }
    Ok(())
}

/// The extent of bootstrap memory. A 0 in the granule map means that the granule belongs to no extent.
const BOOTSTRAP_MEMORY_EXTENT: u32 = 1;
/// The extent of the arena.
const ARENA_EXTENT: u32 = 2;

/// Registers in a new range the memory that peers may use before its owner runs.
pub(super) fn register_initial(extent_table: &ExtentTable) {
    for (number, start, len) in [
        (BOOTSTRAP_MEMORY_EXTENT, BOOTSTRAP_MEMORY, BOOTSTRAP_MEMORY_BYTES),
        (ARENA_EXTENT, ARENA, ARENA_BYTES),
    ] {
        extent_table.extent(number).publish(ExtentInfo { start, len, host: 0 });
        extent_table.map_granules(start, len, number);
    }
}

fn check_size(bytes: u64) -> Result<()> {
    if bytes > 0 { Ok(()) } else { Err(Error::argument("an allocation needs at least one byte")) }
}

fn no_registration(offset: u64) -> Error {
    Error::argument(format!("no registration begins at offset {offset:#x}"))
}

fn is_freeable(offset: u64) -> bool {
    SYMMETRIC.contains(&offset) || LOCAL.contains(&offset) || REGISTERED.contains(&offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rank;
    use std::os::unix::fs::FileExt;

    fn registry() -> Registry {
        Registry::new(Arc::new(MappedRange::new(MappedRange::create_file().unwrap(), 0))).unwrap()
    }

    #[test]
    fn accesses_beyond_a_registration_are_out_of_range() {
        let registry = registry();
        let start = registry.allocate_symmetric(100).unwrap().unwrap();
        let find = |offset, bytes| registry.extent_table.find(offset, bytes, offset);
        assert!(find(start, 100).is_ok() && find(start + 99, 1).is_ok());
        let registration = Some((start, 100));
        for (offset, bytes, registration) in [
            (start, 101, registration),
            (start + 100, 1, registration),
            (start + 1000, 1, registration),
            (start - 1, 1, None),
            (start + 99, u64::MAX, registration),
        ] {
            let out = Cause::OutOfRange { address: offset, bytes, registration };
            assert_eq!(find(offset, bytes), Err(out));
        }
        let whole = registry.allocate_symmetric(GRANULE).unwrap().unwrap();
        let end = whole + GRANULE;
        let out = Cause::OutOfRange { address: end, bytes: 8, registration: Some((whole, GRANULE)) };
        assert_eq!(find(end, 8), Err(out), "the end is in the next granule");
    }

    #[test]
    fn freed_memory_is_stale_and_its_addresses_are_not_reused_at_once() {
        let registry = registry();
        let (first, usage) = (registry.allocate_local(100).unwrap(), registry.usage());
        registry.free(first).unwrap();
        let stale = registry.extent_table.find(first, 1, first);
        assert_eq!(stale, Err(Cause::Stale { address: first }));
        assert_ne!(registry.allocate_local(100).unwrap(), first);
        assert_eq!(registry.usage(), usage);
        assert!(registry.free(first).is_err());
    }

    #[test]
    fn few_entries_serve_many_registrations_and_freed_memory_stays_stale() {
        let registry = registry();
        let (bytes, mut first) = ([0_u8; 64], None);
        for _ in 0..3 * DEAD_KEPT {
            let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
            first.get_or_insert(start);
            registry.free(start).unwrap();
        }
        assert!((registry.state().next_extent as usize) < DEAD_KEPT + 10);
        let kept = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let first = first.expect("there was one");
        assert_eq!(registry.extent_table.find(first, 1, first), Err(Cause::Stale { address: first }));
        assert!(registry.extent_table.find(kept, 64, kept).is_ok());
    }

    #[test]
    fn a_section_of_an_extent_freed_since_the_lookup_is_refused() {
        let (registry, bytes) = (registry(), [0_u8; 64]);
        let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let place = registry.extent_table.find(start, 64, start).unwrap();
        drop(registry.extent_table.enter(&place, start, 64, start).unwrap());
        registry.free(start).unwrap();
        let late = registry.extent_table.enter(&place, start, 64, start);
        assert_eq!(late.unwrap_err(), Cause::Stale { address: start });
        assert!(
            !registry.extent_table.extent(place.extent).is_used(),
            "the refused access is still in a section"
        );
    }

    #[test]
    fn registered_memory_keeps_its_alignment_and_address() {
        let registry = registry();
        let bytes = [0_u8; 64];
        let host = bytes.as_ptr() as u64 + 3;
        let start = registry.register(host, 10).unwrap();
        assert_eq!(start % 8, host % 8);
        let place = registry.extent_table.find(start + 4, 6, 0).unwrap();
        assert_eq!(place.kind, Kind::Program(host + 4));
    }

    #[test]
    fn ranges_beyond_the_address_space_are_refused() {
        let registry = registry();
        for (host, bytes) in [(1, u64::MAX), (u64::MAX, 1), (1 << 40, u64::MAX), (u64::MAX - 8, 4096)] {
            let refused = registry.register(host, bytes).unwrap_err();
            assert!(refused.to_string().contains("exceed the end of the address space"), "{refused}");
        }
        for bytes in [REGISTERED.end - REGISTERED.start + 1, i64::MAX as u64] {
            let refused = registry.register(4096, bytes).unwrap_err();
            assert!(matches!(refused.cause(), Cause::NoMemory { .. }), "{refused}");
        }
        assert_eq!((registry.usage().registered, registry.usage().extents), (0, 1));
    }

    #[test]
    fn free_does_not_wait_for_a_rank_killed_in_a_section() {
        let (registry, bytes) = (registry(), [0_u8; 64]);
        let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let place = registry.extent_table.find(start, 64, start).unwrap();
        std::mem::forget(registry.extent_table.enter(&place, start, 64, start).unwrap());
        let died = Cause::PeerDied { peer: Rank(1), how: "signal 9".into(), ago: Duration::ZERO };
        let error = registry.free_unless(start, &|| Some(died.clone())).unwrap_err();
        assert_eq!(*error.cause(), died);
        assert!(
            registry.extent_table.find(start, 64, start).is_err(),
            "the registration has ended nevertheless"
        );
    }

    #[test]
    fn after_a_death_free_still_waits_for_accesses_of_live_ranks() {
        let (registry, bytes) = (registry(), [0_u8; 64]);
        let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let place = registry.extent_table.find(start, 64, start).unwrap();
        let section = std::cell::RefCell::new(registry.extent_table.enter(&place, start, 64, start).ok());
        let calls = std::cell::Cell::new(0);
        let death = || {
            calls.set(calls.get() + 1);
            if calls.get() == 3 {
                section.take();
            }
            Some(Cause::JobOver)
        };
        registry.free_unless(start, &death).unwrap();
        assert_eq!(calls.get(), 3);
    }

    #[test]
    fn addresses_are_freed_if_the_extent_table_is_full() {
        let registry = registry();
        registry.state().next_extent = EXTENTS as u32;
        let refused = registry.register(4096, 100).unwrap_err();
        assert!(matches!(refused.cause(), Cause::Full { .. }), "{refused}");
        (0..2).for_each(|_| registry.barrier_passed());
        registry.state().registered.exhaust_fresh();
        registry.state().dead_extents.push_back(9);
        assert_eq!(registry.register(4096, 100).unwrap(), REGISTERED.start);
    }

    #[test]
    fn pages_of_late_stores_are_released_and_never_read() {
        const BYTES: u64 = 1 << 20;
        let registry = registry();
        let file = std::fs::File::from(registry.range.file().as_fd().try_clone_to_owned().unwrap());
        let store = |at| file.write_all_at(&[0xaa; BYTES as usize], at).unwrap();
        let (first, before) = (registry.allocate_local(BYTES).unwrap(), registry.range.file().backed());
        registry.free(first).unwrap();
        store(first);
        assert_eq!(registry.range.file().backed(), before);
        (0..2).for_each(|_| registry.barrier_passed());
        registry.free(registry.allocate_local(1).unwrap()).unwrap();
        assert_eq!(registry.range.file().backed(), before - BYTES, "quiescent and released");
        store(first);
        registry.state().local.exhaust_fresh();
        assert_eq!(registry.allocate_local(BYTES).unwrap(), first);
        let mut last = [1];
        file.read_exact_at(&mut last, first + BYTES - 1).unwrap();
        assert_eq!(last, [0]);
    }

    #[test]
    fn an_allocation_beyond_the_machine_is_refused_before_anything_is_allocated() {
        let registry = registry();
        let refused = registry.allocate_local(LOCAL.end - LOCAL.start).unwrap_err();
        assert!(matches!(refused.cause(), Cause::NoMemory { .. }), "{refused}");
        assert_eq!(registry.usage().local, 0);
    }
}
