//! The layout of a rank's address range. All ranks of a job must agree on this file: its numbers are part of [`HASH`],
//! which the handshake compares.
//!
//! ```text
//! 0       system piece (1 GiB): header, extent table, granule map, owner requests, bootstrap memory, signals,
//!         queue directory, arena
//! 1 GiB   symmetric memory: job.alloc
//! 512 GiB local memory: job.alloc_local
//! 768 GiB addresses for registered memory that the user owns (not backed by the file)
//! 1 TiB   end
//! ```

use std::ops::Range;

/// Bytes of a rank's address range: 40 bits of a global address.
pub const RANGE_BYTES: u64 = 1 << 40;
/// Unit of mapping: a process maps a peer's memory in aligned pieces of this size, or, for a larger
/// registration, several pieces by one mapping. Small enough that a process can map a piece of each
/// of 100,000 peers.
pub const PIECE: u64 = 1 << 30;
/// Unit of allocation in the range. Two registrations never share a granule, so a granule identifies its registration.
/// 64 KiB is also the largest page size of the supported machines.
pub const GRANULE: u64 = 1 << 16;
/// Unit in which memory is freed to the system.
pub const PAGE: u64 = 4096;

/// The most registrations that a rank can have at a time.
pub const EXTENTS: u64 = 1 << 20;
/// Bytes of one entry of the extent table.
pub const EXTENT_BYTES: u64 = 32;
/// Start of the extent table.
pub const EXTENT_TABLE: u64 = 1 << 20;
/// Start of the granule map: four bytes for each granule, the number of its extent.
pub const GRANULE_MAP: u64 = 64 << 20;
/// Start of the queue of owner requests.
pub const REQUESTS: u64 = 128 << 20;
/// Bytes of that queue and its staging buffers.
pub const REQUESTS_BYTES: u64 = 32 << 20;
/// Start of bootstrap memory (ACP: starter memory), which peers can use before its owner runs.
pub const BOOTSTRAP_MEMORY: u64 = 192 << 20;
/// Bytes of bootstrap memory.
pub const BOOTSTRAP_MEMORY_BYTES: u64 = 64 << 10;
/// Start of signal memory.
pub const SIGNALS: u64 = 256 << 20;
/// Bytes from one signal to the next: two cache lines, because processors prefetch lines in pairs.
pub const SIGNAL_STRIDE: u64 = 128;
/// The most signals that a rank can have.
pub const SIGNALS_MAX: u64 = 1 << 20;
/// Bytes of payload in a signal line, directly after the counter.
pub const LINE_PAYLOAD: usize = 48;

/// Start of the rank's queue directory: where its command queues are, and whether a thread polls them.
pub const QUEUE_DIRECTORY: u64 = 384 << 20;
/// Bytes of the queue directory.
pub const QUEUE_DIRECTORY_BYTES: u64 = 1 << 20;
/// The most command queues that a rank can have at a time.
pub const QUEUES_MAX: u32 = 4096;

/// Start of the arena, in which pairs of ranks allocate the slots of their messages.
pub const ARENA: u64 = 512 << 20;
/// Bytes of the arena. Memory backs only the allocated parts. The granule after the arena belongs
/// to no registration: an access that begins just before symmetric memory fails.
pub const ARENA_BYTES: u64 = (512 << 20) - GRANULE;
/// Bytes of a slot line: one cache line.
pub const SLOT_LINE: u64 = 64;

/// Symmetric memory: every rank allocates the same offsets.
pub const SYMMETRIC: Range<u64> = PIECE..RANGE_BYTES / 2;
/// Local memory: a rank allocates it without the others.
pub const LOCAL: Range<u64> = RANGE_BYTES / 2..RANGE_BYTES / 4 * 3;
/// Addresses for registered memory that the user owns.
pub const REGISTERED: Range<u64> = RANGE_BYTES / 4 * 3..RANGE_BYTES;

const _: () = {
    assert!(EXTENT_TABLE >= GRANULE, "granule 0 holds the header and belongs to no registration");
    assert!(EXTENT_TABLE + EXTENTS * EXTENT_BYTES <= GRANULE_MAP);
    assert!(GRANULE_MAP + RANGE_BYTES / GRANULE * 4 <= REQUESTS);
    assert!(REQUESTS + REQUESTS_BYTES <= BOOTSTRAP_MEMORY);
    assert!(BOOTSTRAP_MEMORY + BOOTSTRAP_MEMORY_BYTES <= SIGNALS);
    assert!(SIGNALS + SIGNALS_MAX * SIGNAL_STRIDE <= QUEUE_DIRECTORY);
    assert!(QUEUE_DIRECTORY + QUEUE_DIRECTORY_BYTES <= ARENA);
    assert!(ARENA + ARENA_BYTES <= PIECE && ARENA.is_multiple_of(GRANULE));
    assert!(BOOTSTRAP_MEMORY.is_multiple_of(GRANULE) && SIGNALS.is_multiple_of(GRANULE));
    assert!(8 + LINE_PAYLOAD <= 64, "counter and payload share a cache line");
    assert!(EXTENTS <= u32::MAX as u64);
};

/// Version of the handshake and of all shared memory that two processes of a job read. Raise it when the meaning of a
/// shared word changes but not its place.
pub const PROTOCOL: u32 = 12;

/// A fingerprint of all constants above.
pub const HASH: u64 = {
    let numbers = [
        PROTOCOL as u64,
        RANGE_BYTES,
        PIECE,
        GRANULE,
        PAGE,
        EXTENTS,
        EXTENT_BYTES,
        EXTENT_TABLE,
        GRANULE_MAP,
        REQUESTS,
        REQUESTS_BYTES,
        BOOTSTRAP_MEMORY,
        BOOTSTRAP_MEMORY_BYTES,
        SIGNALS,
        SIGNAL_STRIDE,
        SIGNALS_MAX,
        LINE_PAYLOAD as u64,
        QUEUE_DIRECTORY,
        QUEUE_DIRECTORY_BYTES,
        QUEUES_MAX as u64,
        ARENA,
        ARENA_BYTES,
        SLOT_LINE,
        SYMMETRIC.start,
        SYMMETRIC.end,
        LOCAL.start,
        LOCAL.end,
        REGISTERED.start,
        REGISTERED.end,
        if cfg!(target_arch = "x86_64") { 1 } else { 2 },
    ];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < numbers.len() {
        // FNV-1a over words: it must tell layouts apart, and need not resist attacks.
        hash = (hash ^ numbers[i]).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
};

/// Returns the offset of the signal `index` in its rank's range.
#[inline]
pub const fn signal_offset(index: u32) -> u64 {
    SIGNALS + index as u64 * SIGNAL_STRIDE
}

/// Returns true if a signal's counter is at `offset`.
#[inline]
pub const fn is_signal(offset: u64) -> bool {
    offset >= SIGNALS
        && offset < SIGNALS + SIGNALS_MAX * SIGNAL_STRIDE
        && offset.is_multiple_of(SIGNAL_STRIDE)
}

/// Returns true if a slot line begins at `offset`.
#[inline]
pub const fn is_slot_line(offset: u64) -> bool {
    offset >= ARENA && offset < ARENA + ARENA_BYTES && offset.is_multiple_of(SLOT_LINE)
}
