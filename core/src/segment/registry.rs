//! The owner's side of a rank's range: what it allocates, registers and frees.
//!
//! Freed job memory is emptied three times. At once, so that the system has it back. When it has become quiet, of what
//! stores left that were under way at that time; nobody reads it, but it takes memory. And before it is used again.

mod signals;

use super::extent::{Extent, ExtentInfo};
use super::extent_table::ExtentTable;
use super::layout::{
    ARENA, ARENA_BYTES, EXTENTS, GRANULE, LOCAL, PAGE, REGISTERED, SIGNALS_MAX, STARTER, STARTER_BYTES,
    SYMMETRIC,
};
use super::mapped_range::MappedRange;
use super::region::Region;
use crate::base::hint::REGISTRATIONS;
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{Cause, Error, Result};
use crate::os::available_memory;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long accesses of those who live may take after somebody died. One is a system call, of milliseconds.
const LAST_ACCESSES: Duration = Duration::from_secs(1);

/// What a rank has registered at present, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Job memory allocated alike on all ranks.
    pub symmetric: u64,
    /// Job memory allocated by this rank alone.
    pub local: u64,
    /// Memory of the user's own that is registered.
    pub registered: u64,
    /// Signals made so far.
    pub signals: u64,
    /// Registrations that live.
    pub extents: u64,
}

/// Hands out the range of one rank. Addresses are handed out upwards and used again only when the range is used
/// up: what was freed is punched out of the file, and a late store meets a page that nobody reads.
#[derive(Debug)]
pub struct Registry {
    window: Arc<MappedRange>,
    directory: ExtentTable,
    /// How often the whole job has met: what was freed before may be used again.
    meetings: AtomicU64,
    books: Mutex<RegistryState>,
}

#[derive(Debug)]
struct RegistryState {
    symmetric: Region,
    local: Region,
    registered: Region,
    signals: u64,
    /// Signals taken from the other end of signal memory.
    private: u64,
    /// Signals taken there and given back: by how many they are, where they begin.
    given_back: BTreeMap<u32, Vec<u32>>,
    next_extent: u32,
    /// Each entry that does not live any more, once: never more than the table has.
    dead_extents: VecDeque<u32>,
    usage: Usage,
}

impl Registry {
    /// The registry of the rank that owns `window`, whose file was made by [`MappedRange::create_file`].
    pub fn new(window: Arc<MappedRange>) -> Result<Registry> {
        let directory = window.directory()?;
        let books = RegistryState {
            symmetric: Region::new(SYMMETRIC),
            local: Region::new(LOCAL),
            registered: Region::new(REGISTERED),
            signals: 0,
            private: 0,
            given_back: BTreeMap::new(),
            next_extent: ARENA_EXTENT + 1,
            dead_extents: VecDeque::new(),
            usage: Usage { symmetric: STARTER_BYTES, extents: 1, ..Usage::default() },
        };
        Ok(Registry { window, directory, meetings: AtomicU64::new(0), books: Mutex::new(books) })
    }

    /// Takes `bytes` of job memory that every rank takes alike; the same sequence of calls gives the same offsets.
    /// The memory is backed at once: touching it later cannot fail. Whether there is room, the ranks have agreed
    /// before: what one takes, all must. `None` when only used places are left: the
    /// ranks must then agree on one ([`Registry::freed_symmetric`], [`Registry::allocate_symmetric_at`]).
    pub fn allocate_symmetric(&self, bytes: u64) -> Result<Option<u64>> {
        check_size(bytes)?;
        let Some(start) = self.books().symmetric.take_fresh(bytes) else { return Ok(None) };
        self.back(start, bytes).map(|()| Some(start))
    }

    /// The first freed place for `bytes` of symmetric memory from `from` on; `u64::MAX` if there is none.
    pub fn freed_symmetric(&self, bytes: u64, from: u64) -> u64 {
        let mut books = self.books();
        let found = books.symmetric.find_freed(bytes, from.max(SYMMETRIC.start)).unwrap_or(u64::MAX);
        self.empty_quieted(&mut books);
        found
    }

    /// Takes the freed place at `start` that all ranks agreed on.
    pub fn allocate_symmetric_at(&self, start: u64, bytes: u64) -> Result<u64> {
        self.books().symmetric.take_freed(start, bytes);
        self.back(start, bytes).map(|()| start)
    }

    /// As if all fresh symmetric addresses had been taken: tests cannot wait for half a TiB.
    #[doc(hidden)]
    pub fn use_up_symmetric(&self) {
        self.books().symmetric.use_up();
    }

    /// Takes `bytes` of job memory for this rank alone.
    pub fn allocate_local(&self, bytes: u64) -> Result<u64> {
        check_size(bytes)?;
        check_available(bytes)?;
        let start = {
            let mut books = self.books();
            let taken = books.local.take(bytes, self.meetings());
            self.empty_quieted(&mut books);
            taken.map_err(|shortage| books.local.error(bytes, &shortage))?
        };
        self.back(start, bytes).map(|()| start)
    }

    /// Backs a place that was taken by memory, and registers it.
    fn back(&self, start: u64, bytes: u64) -> Result<()> {
        let pages = bytes.next_multiple_of(PAGE);
        self.window.file().punch(start, pages);
        let backed = self.window.file().reserve(start, pages);
        let mut books = self.books();
        let entered = backed.and_then(|()| self.enter(&mut books, start, bytes, 0));
        entered.inspect_err(|_| {
            self.window.file().punch(start, pages);
            self.give_back(&mut books, start, bytes);
        })
    }

    /// Gives a place back to its zone.
    fn give_back(&self, books: &mut RegistryState, offset: u64, bytes: u64) {
        books.give_back(offset, bytes, self.meetings());
        self.empty_quieted(books);
    }

    /// Gives back what late stores left in places that have become quiet. To be called before the books are closed, and
    /// before what was taken from them is backed.
    fn empty_quieted(&self, books: &mut RegistryState) {
        for place in books.symmetric.quieted().chain(books.local.quieted()) {
            self.window.file().punch(place.start, place.end - place.start);
        }
        drop(books.registered.quieted()); // nothing of it lies in the file
    }

    /// The whole job has met: what was freed before may be used again.
    pub fn met(&self) {
        self.meetings.fetch_add(1, Ordering::AcqRel); // SYNC meetings
    }

    /// Registers `bytes` of memory at `host` in this process. Returns its offset in the range, and keeps the low
    /// bits of `host` so that alignment is the same in both.
    pub fn register(&self, host: u64, bytes: u64) -> Result<u64> {
        if bytes == 0 || host == 0 {
            return Err(Error::argument(
                "a registration needs at least one byte at an address that is not null",
            ));
        }
        if host.checked_add(bytes).is_none() {
            return Err(Error::argument(format!(
                "{bytes} bytes from {host:#x} on run over the end of the address space"
            )));
        }
        let mut books = self.books();
        let inside = host % PAGE;
        let taken = books.registered.take(inside + bytes, self.meetings());
        self.empty_quieted(&mut books);
        let start = taken.map_err(|shortage| books.registered.error(bytes, &shortage))? + inside;
        let entered = self.enter(&mut books, start, bytes, host);
        entered.inspect_err(|_| self.give_back(&mut books, start, bytes)).map(|()| start)
    }

    /// Ends a registration that begins at `offset`. An access that begins after this one happened fails; one that
    /// is under way has ended when this returns (user's own memory), or ends in bytes that nobody reads (job
    /// memory, which is given back to the system).
    pub fn free(&self, offset: u64) -> Result<()> {
        self.free_unless(offset, &|| None)
    }

    /// As [`Registry::free`], for a job that may end meanwhile: one that was killed in the middle of an access never
    /// ends it. Once `death` names a cause, whoever still lives has a second to come out; if somebody is inside
    /// after that, the cause is the error, and the memory may still be written to.
    pub fn free_unless(&self, offset: u64, death: &dyn Fn() -> Option<Cause>) -> Result<()> {
        let place = self.directory.find(offset, 1, offset).map_err(Error::new)?;
        if place.start != offset || !is_freeable(offset) {
            return Err(Error::argument(format!("no registration begins at offset {offset:#x}")));
        }
        let extent = self.directory.extent(place.extent);
        extent.retire();
        wait_for_sections(extent, death)?;
        let mut books = self.books();
        books.dead_extents.push_back(place.extent);
        *books.usage_of(offset) -= place.len;
        books.usage.extents -= 1;
        self.give_back(&mut books, offset, place.len);
        if !REGISTERED.contains(&offset) {
            self.window.file().punch(offset, place.len.next_multiple_of(PAGE));
        }
        Ok(())
    }

    /// What is registered at present.
    pub fn usage(&self) -> Usage {
        self.books().usage
    }

    /// The owner's own view of its range.
    pub fn window(&self) -> &Arc<MappedRange> {
        &self.window
    }

    /// Writes an extent and its granules, in the order that a reader may rely on.
    fn enter(&self, books: &mut RegistryState, start: u64, bytes: u64, host: u64) -> Result<()> {
        let number = books.new_extent()?;
        self.directory.extent(number).publish(ExtentInfo { start, len: bytes, host });
        self.directory.name_granules(start, bytes, number);
        *books.usage_of(start) += bytes;
        books.usage.extents += 1;
        Ok(())
    }

    /// How often the job has met. It is read by an addition so that a meeting which comes after this one in the order
    /// of the counter also comes after all that this thread did before: whoever leaves the meeting after that finds
    /// dead what was freed here.
    fn meetings(&self) -> u64 {
        self.meetings.fetch_add(0, Ordering::AcqRel) // SYNC meetings
    }

    fn books(&self) -> MutexGuard<'_, RegistryState> {
        self.books.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl RegistryState {
    /// A new entry of the extent table, or the one that has been dead for longest.
    fn new_extent(&mut self) -> Result<u32> {
        if u64::from(self.next_extent) < EXTENTS {
            self.next_extent += 1;
            return Ok(self.next_extent - 1);
        }
        let full = Cause::Full { what: REGISTRATIONS, capacity: EXTENTS as usize };
        self.dead_extents.pop_front().ok_or_else(|| full.into())
    }

    /// A place may be used again after the next meeting.
    fn give_back(&mut self, offset: u64, bytes: u64, meetings: u64) {
        let start = offset / GRANULE * GRANULE; // registered memory begins inside its first granule
        let bytes = bytes + (offset - start);
        let zone = if REGISTERED.contains(&offset) {
            &mut self.registered
        } else if LOCAL.contains(&offset) {
            &mut self.local
        } else {
            &mut self.symmetric
        };
        zone.give_back(start, bytes, meetings);
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

/// Returns when nobody is inside an extent that was retired, or never will come out.
fn wait_for_sections(extent: &Extent, death: &dyn Fn() -> Option<Cause>) -> Result<()> {
    let mut over_since = None;
    while extent.is_used() {
        if let Some(cause) = death()
            && over_since.get_or_insert_with(Instant::now).elapsed() > LAST_ACCESSES
        {
            return Err(cause.into());
        }
        std::thread::yield_now(); // a system call of a peer is under way
    }
    Ok(())
}

/// Whether `bytes` can be had from machine and container, leaving them a sixty-fourth to live on.
pub fn check_available(bytes: u64) -> Result<()> {
    let available = available_memory::available();
    if bytes > available.bytes - available.bytes / 64 {
        return Err(
            Cause::NoMemory { wanted: bytes, available: available.bytes, limit: available.limit }.into()
        );
    }
    Ok(())
}

/// The extent of starter memory; 0 in the granule map means: nobody's.
const STARTER_EXTENT: u32 = 1;
/// The extent of the arena.
const ARENA_EXTENT: u32 = 2;

/// Registers in a new range what peers may use before its owner runs.
pub(super) fn register_first(directory: &ExtentTable) {
    for (number, start, len) in [(STARTER_EXTENT, STARTER, STARTER_BYTES), (ARENA_EXTENT, ARENA, ARENA_BYTES)]
    {
        directory.extent(number).publish(ExtentInfo { start, len, host: 0 });
        directory.name_granules(start, len, number);
    }
}

fn check_size(bytes: u64) -> Result<()> {
    if bytes > 0 { Ok(()) } else { Err(Error::argument("an allocation needs at least one byte")) }
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
    fn ranges_end_at_their_last_byte() {
        let registry = registry();
        let start = registry.allocate_symmetric(100).unwrap().unwrap();
        let find = |offset, bytes| registry.directory.find(offset, bytes, offset);
        assert!(find(start, 100).is_ok() && find(start + 99, 1).is_ok());
        for (offset, bytes) in [(start, 101), (start + 100, 1), (start - 1, 1), (start + 99, u64::MAX)] {
            assert_eq!(find(offset, bytes), Err(Cause::OutOfRange { address: offset, bytes }));
        }
    }

    #[test]
    fn what_was_freed_is_stale_and_its_place_is_not_used_again() {
        let registry = registry();
        let (first, usage) = (registry.allocate_local(100).unwrap(), registry.usage());
        registry.free(first).unwrap();
        let stale = registry.directory.find(first, 1, first);
        assert_eq!(stale, Err(Cause::Stale { address: first }));
        assert_ne!(registry.allocate_local(100).unwrap(), first);
        assert_eq!(registry.usage(), usage);
        assert!(registry.free(first).is_err());
    }

    #[test]
    fn nobody_enters_what_was_freed_since_it_was_found() {
        let (registry, bytes) = (registry(), [0_u8; 64]);
        let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let place = registry.directory.find(start, 64, start).unwrap();
        drop(registry.directory.enter(&place, start, 64, start).unwrap());
        registry.free(start).unwrap();
        let late = registry.directory.enter(&place, start, 64, start);
        assert_eq!(late.unwrap_err(), Cause::Stale { address: start });
        assert!(!registry.directory.extent(place.extent).is_used(), "who was refused is still inside");
    }

    #[test]
    fn own_memory_keeps_its_alignment_and_place() {
        let registry = registry();
        let bytes = [0_u8; 64];
        let host = bytes.as_ptr() as u64 + 3;
        let start = registry.register(host, 10).unwrap();
        assert_eq!(start % 8, host % 8);
        let place = registry.directory.find(start + 4, 6, 0).unwrap();
        assert_eq!(place.kind, super::super::extent_table::Kind::Own(host + 4));
    }

    #[test]
    fn ranges_that_no_address_space_has_are_refused() {
        let registry = registry();
        for (host, bytes) in [(1, u64::MAX), (u64::MAX, 1), (1 << 40, u64::MAX), (u64::MAX - 8, 4096)] {
            let refused = registry.register(host, bytes).unwrap_err();
            assert!(refused.to_string().contains("run over the end of the address space"), "{refused}");
        }
        for bytes in [REGISTERED.end - REGISTERED.start + 1, i64::MAX as u64] {
            let refused = registry.register(4096, bytes).unwrap_err();
            assert!(matches!(refused.cause(), Cause::NoMemory { .. }), "{refused}");
        }
        assert_eq!((registry.usage().registered, registry.usage().extents), (0, 1));
    }

    #[test]
    fn who_was_killed_inside_a_section_is_not_waited_for() {
        let (registry, bytes) = (registry(), [0_u8; 64]);
        let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let place = registry.directory.find(start, 64, start).unwrap();
        std::mem::forget(registry.directory.enter(&place, start, 64, start).unwrap());
        let died = Cause::PeerDied { peer: Rank(1), how: "signal 9".into(), ago: Duration::ZERO };
        let error = registry.free_unless(start, &|| Some(died.clone())).unwrap_err();
        assert_eq!(*error.cause(), died);
        assert!(
            registry.directory.find(start, 64, start).is_err(),
            "the registration has ended all the same"
        );
    }

    #[test]
    fn a_death_does_not_cut_accesses_of_the_living_short() {
        let (registry, bytes) = (registry(), [0_u8; 64]);
        let start = registry.register(bytes.as_ptr() as u64, 64).unwrap();
        let place = registry.directory.find(start, 64, start).unwrap();
        let section = std::cell::RefCell::new(registry.directory.enter(&place, start, 64, start).ok());
        let looks = std::cell::Cell::new(0);
        let death = || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                section.take();
            }
            Some(Cause::JobOver)
        };
        registry.free_unless(start, &death).unwrap();
        assert_eq!(looks.get(), 3);
    }

    #[test]
    fn addresses_are_given_back_where_the_table_is_full() {
        let registry = registry();
        registry.books().next_extent = EXTENTS as u32;
        let refused = registry.register(4096, 100).unwrap_err();
        assert!(matches!(refused.cause(), Cause::Full { .. }), "{refused}");
        (0..2).for_each(|_| registry.met());
        registry.books().registered.use_up();
        registry.books().dead_extents.push_back(9);
        assert_eq!(registry.register(4096, 100).unwrap(), REGISTERED.start);
    }

    #[test]
    fn what_a_late_store_leaves_is_given_back_and_never_read() {
        const BYTES: u64 = 1 << 20;
        let registry = registry();
        let file = std::fs::File::from(registry.window.file().as_fd().try_clone_to_owned().unwrap());
        let store = |at| file.write_all_at(&[0xaa; BYTES as usize], at).unwrap();
        let (first, before) = (registry.allocate_local(BYTES).unwrap(), registry.window.file().backed());
        registry.free(first).unwrap();
        store(first);
        assert_eq!(registry.window.file().backed(), before);
        (0..2).for_each(|_| registry.met());
        registry.free(registry.allocate_local(1).unwrap()).unwrap();
        assert_eq!(registry.window.file().backed(), before - BYTES, "quiet, and empty");
        store(first);
        registry.books().local.use_up();
        assert_eq!(registry.allocate_local(BYTES).unwrap(), first);
        let mut last = [1];
        file.read_exact_at(&mut last, first + BYTES - 1).unwrap();
        assert_eq!(last, [0]);
    }

    #[test]
    fn a_request_beyond_the_machine_is_refused_before_anything_is_taken() {
        let registry = registry();
        let refused = registry.allocate_local(LOCAL.end - LOCAL.start).unwrap_err();
        assert!(matches!(refused.cause(), Cause::NoMemory { .. }), "{refused}");
        assert_eq!(registry.usage().local, 0);
    }
}
