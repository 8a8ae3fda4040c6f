//! What is registered in a rank's range, as anybody who maps its system piece can read it.
#![allow(unsafe_code)]
//! Unsafe: references to atomics inside a mapped system piece, which the holder of a `ExtentTable` keeps mapped.
//!
//! Two tables. The granule map names the extent (registration) of each 64 KiB granule; the extent table holds its
//! range, its kind and its state. A look-up is two loads of lines that hardly ever change, plus the checks.
//!
//! Only the owner writes. Entries of freed extents are re-used last, and a reader notices: `state` carries a
//! generation, and is read before and after the fields.

use super::extent::{Extent, ExtentInfo};
use super::layout::{EXTENT_BYTES, EXTENT_TABLE, GRANULE, GRANULE_MAP};
use crate::base::Cause;
use crate::base::sync::{AtomicU32, Ordering};
use std::ptr::NonNull;

/// Where the bytes of a registration are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In the job's memory file.
    Job,
    /// In memory that the owner merely owns, at this address of its process for the access's first byte.
    Own(u64),
}

/// An access that was found to lie in a live registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentLocation {
    /// First byte of the registration, as an offset in its rank's range.
    pub start: u64,
    /// Bytes of the registration.
    pub len: u64,
    /// Where its bytes are.
    pub kind: Kind,
    /// Its entry in the extent table.
    pub extent: u32,
}

/// The two tables of one rank, over its mapped system piece.
#[derive(Clone, Copy, Debug)]
pub struct ExtentTable {
    system: NonNull<u8>,
}

// SAFETY: it is a pointer to atomics in memory that is shared anyway.
unsafe impl Send for ExtentTable {}
// SAFETY: as above.
unsafe impl Sync for ExtentTable {}

impl ExtentTable {
    /// The directory in a system piece.
    ///
    /// # Safety
    /// `system` must be the first byte of a mapped system piece, which stays mapped while the directory is used.
    #[inline]
    pub unsafe fn over(system: NonNull<u8>) -> ExtentTable {
        ExtentTable { system }
    }

    /// Finds the live registration that holds all of `offset .. offset + bytes`. `address` is for the error alone.
    #[inline]
    pub fn find(&self, offset: u64, bytes: u64, address: u64) -> Result<ExtentLocation, Cause> {
        let number = self.granule(offset / GRANULE).load(Ordering::Acquire);
        let extent = self.extent(number);
        let facts = extent.facts();
        if let Some(facts) = facts
            && let Some(inside) = facts.inside(offset, bytes)
        {
            let ExtentInfo { start, len, host } = facts;
            let kind = if host == 0 { Kind::Job } else { Kind::Own(host + inside) };
            return Ok(ExtentLocation { start, len, kind, extent: number });
        }
        Err(miss(address, bytes, number != 0 && facts.is_none()))
    }

    /// Whether all of `offset .. offset + bytes` lies in one live registration of job memory. What [`ExtentTable::find`]
    /// finds, for those who need no more than that it is so.
    #[inline]
    pub fn is_job(&self, offset: u64, bytes: u64) -> bool {
        let number = self.granule(offset / GRANULE).load(Ordering::Acquire);
        let facts = self.extent(number).facts();
        facts.is_some_and(|facts| facts.host == 0 && facts.inside(offset, bytes).is_some())
    }

    /// Enters a section of an extent of the user's own memory: until the section is dropped, its owner does not
    /// take the memory back. An error if the extent is no longer what `place` says.
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
            Err(miss(address, bytes, true))
        }
    }

    /// All granules of a range belong to an extent.
    pub(super) fn name_granules(&self, start: u64, bytes: u64, extent: u32) {
        for granule in start / GRANULE..=(start + bytes - 1) / GRANULE {
            self.granule(granule).store(extent, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn granule(&self, number: u64) -> &AtomicU32 {
        // SAFETY: every granule of a window has its word inside the system piece (layout.rs asserts it); offsets
        // of global addresses are below the window's size by their type.
        unsafe { self.system.add((GRANULE_MAP + number * 4) as usize).cast().as_ref() }
    }

    #[inline]
    pub(super) fn extent(&self, number: u32) -> &Extent {
        let number = u64::from(number) % super::layout::EXTENTS;
        // SAFETY: the table lies inside the system piece, and the number inside the table by the line above: the
        // word that it came from may be written by a peer that runs wild.
        unsafe { self.system.add((EXTENT_TABLE + number * EXTENT_BYTES) as usize).cast().as_ref() }
    }
}

#[cold]
fn miss(address: u64, bytes: u64, stale: bool) -> Cause {
    match address {
        0 => Cause::NullAddress,
        _ if stale => Cause::Stale { address },
        _ => Cause::OutOfRange { address, bytes },
    }
}

/// While it lives, the owner of an extent waits with taking the memory back.
#[derive(Debug)]
pub struct Section {
    extent: NonNull<Extent>,
}

impl Drop for Section {
    fn drop(&mut self) {
        // SAFETY: the entry lies in a system piece that the user of the directory keeps mapped.
        unsafe { self.extent.as_ref() }.end_section();
    }
}
