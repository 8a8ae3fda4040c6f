//! The registrations of a rank, which every process that maps the rank's system piece can read.
#![allow(unsafe_code)]
//! Unsafe: references to atomics inside a mapped system piece, which the holder of an `ExtentTable` keeps mapped.
//!
//! There are two tables. The granule map names the extent (registration) of each 64 KiB granule. The extent table holds
//! the extent's range, kind and state. A lookup loads from two cache lines that rarely change, and checks the result.
//!
//! Only the owner writes. Entries of freed extents are used again after thousands of others, and a reader detects it: `state` contains a
//! generation, and is read before and after the fields.

use super::extent::{CLOSED, Extent, ExtentInfo};
use super::layout::{EXTENT_BYTES, EXTENT_TABLE, GRANULE, GRANULE_MAP};
use crate::base::Cause;
use crate::base::sync::{AtomicU32, Ordering};
use std::ptr::NonNull;

/// The memory that holds the bytes of a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The job's memory file.
    Job,
    /// The owner's private memory: the address of the access's first byte in its process.
    Program(u64),
}

/// The live registration that contains an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentLocation {
    /// Offset of the registration's first byte in its rank's range.
    pub start: u64,
    /// Bytes of the registration.
    pub len: u64,
    /// The memory that holds its bytes.
    pub kind: Kind,
    /// The number of its entry in the extent table.
    pub extent: u32,
}

/// The two tables of one rank in its mapped system piece.
#[derive(Clone, Copy, Debug)]
pub struct ExtentTable {
    system: NonNull<u8>,
}

// SAFETY: a pointer to atomics in shared memory; the user of the table keeps the system piece mapped.
unsafe impl Send for ExtentTable {}
// SAFETY: a pointer to atomics in shared memory; the user of the table keeps the system piece mapped.
unsafe impl Sync for ExtentTable {}

impl ExtentTable {
    /// Returns the tables in a system piece.
    ///
    /// # Safety
    /// `system` must be the first byte of a mapped system piece, which stays mapped while the tables are used.
    #[inline]
    pub unsafe fn over(system: NonNull<u8>) -> ExtentTable {
        ExtentTable { system }
    }

    /// Finds the live registration that contains all of `offset .. offset + bytes`, for an operation. Only the error uses
    /// `address`.
    #[inline]
    pub fn find(&self, offset: u64, bytes: u64, address: u64) -> Result<ExtentLocation, Cause> {
        let number = self.granule(offset / GRANULE).load(Ordering::Acquire);
        let extent = self.extent(number);
        let info = extent.info();
        if let Some(info) = info
            && let Some(inside) = info.inside(offset, bytes)
        {
            let ExtentInfo { start, len, host } = info;
            let kind = match host {
                0 => Kind::Job,
                CLOSED => return Err(Cause::ClosedMemory { address }),
                host => Kind::Program(host + inside),
            };
            return Ok(ExtentLocation { start, len, kind, extent: number });
        }
        Err(self.outside(info, number != 0, offset, bytes, address))
    }

    /// Finds the live registration of closed job memory that contains all of `offset .. offset + bytes`.
    pub fn find_closed(&self, offset: u64, bytes: u64) -> Option<ExtentLocation> {
        let number = self.granule(offset / GRANULE).load(Ordering::Acquire);
        let info = self.extent(number).info().filter(|info| info.host == CLOSED)?;
        info.inside(offset, bytes)?;
        Some(ExtentLocation { start: info.start, len: info.len, kind: Kind::Job, extent: number })
    }

    /// Returns true if one live registration of job memory that is not closed contains all of `offset .. offset + bytes`. Cheaper than
    /// [`ExtentTable::find`].
    #[inline]
    pub fn is_job(&self, offset: u64, bytes: u64) -> bool {
        let number = self.granule(offset / GRANULE).load(Ordering::Acquire);
        let info = self.extent(number).info();
        info.is_some_and(|info| info.host == 0 && info.inside(offset, bytes).is_some())
    }

    /// Begins a section of an extent of the user's own memory: until the section is dropped, the owner's `free` waits.
    /// Error: the extent is no longer the one at `place`.
    pub fn enter(
        &self,
        place: &ExtentLocation,
        offset: u64,
        bytes: u64,
        address: u64,
    ) -> Result<Section, Cause> {
        let extent = self.extent(place.extent);
        extent.begin_section();
        let section = Section { extent: NonNull::from(extent) };
        if self.find(offset, bytes, address)? == *place {
            Ok(section)
        } else {
            Err(lookup_error(address, bytes, true, None))
        }
    }

    /// The error of an access that is not inside the registration `here` of its granule.
    #[cold]
    fn outside(
        &self,
        here: Option<ExtentInfo>,
        was_here: bool,
        offset: u64,
        bytes: u64,
        address: u64,
    ) -> Cause {
        // An entry that was used again covers other granules. The map is not cleared when memory is freed.
        let here = here.filter(|here| {
            let last = here.start + (here.len - 1);
            (here.start / GRANULE..=last / GRANULE).contains(&(offset / GRANULE))
        });
        let is_stale = was_here && here.is_none();
        let before =
            || self.extent(self.granule((offset / GRANULE).checked_sub(1)?).load(Ordering::Acquire)).info();
        let near = match was_here {
            true => here.filter(|here| here.start <= offset),
            false => before().filter(|before| before.start.checked_add(before.len) == Some(offset)),
        };
        let to_address = address.wrapping_sub(offset);
        let registration = near.map(|near| (to_address.wrapping_add(near.start), near.len));
        lookup_error(address, bytes, is_stale, registration)
    }

    /// Writes the number of an extent into the map for all granules of a range.
    pub(super) fn map_granules(&self, start: u64, bytes: u64, extent: u32) {
        for granule in start / GRANULE..=(start + bytes - 1) / GRANULE {
            self.granule(granule).store(extent, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn granule(&self, number: u64) -> &AtomicU32 {
        // SAFETY: every granule of a range has its word inside the system piece (layout.rs asserts it). Offsets of
        // global addresses are smaller than the range by their type.
        unsafe { self.system.add((GRANULE_MAP + number * 4) as usize).cast().as_ref() }
    }

    #[inline]
    pub(super) fn extent(&self, number: u32) -> &Extent {
        let number = u64::from(number) % super::layout::EXTENTS;
        // SAFETY: the table lies in the system piece. The remainder is below the number of extents, even if a faulty
        // peer has overwritten the word from which the number came.
        unsafe { self.system.add((EXTENT_TABLE + number * EXTENT_BYTES) as usize).cast().as_ref() }
    }
}

#[cold]
fn lookup_error(address: u64, bytes: u64, stale: bool, registration: Option<(u64, u64)>) -> Cause {
    match address {
        0 => Cause::NullAddress,
        _ if stale => Cause::Stale { address },
        _ => Cause::OutOfRange { address, bytes, registration },
    }
}

/// A section of an extent. While it exists, the extent's owner waits before it ends the registration.
#[derive(Debug)]
pub struct Section {
    extent: NonNull<Extent>,
}

impl Drop for Section {
    fn drop(&mut self) {
        // SAFETY: the entry is in a system piece that the user of the table keeps mapped.
        unsafe { self.extent.as_ref() }.end_section();
    }
}
