//! Where everything lies in the range of addresses of a rank. All ranks of a job must agree on this file: its
//! numbers are part of [`HASH`], which the handshake compares.
//!
//! ```text
//! 0       system piece (1 GiB): header, extent table, granule map, requests, starter memory, signals, station, arena
//! 1 GiB   symmetric memory: job.alloc
//! 512 GiB local memory: job.alloc_local
//! 768 GiB addresses of registered memory of the user's own (no bytes of the file behind them)
//! 1 TiB   end
//! ```

use std::ops::Range;

/// Bytes of address range that a rank has: 40 bits of a global address.
pub const WINDOW: u64 = 1 << 40;
/// Unit of mapping: a peer's memory comes into our address space in aligned pieces of this size, or, for a larger
/// registration, in one mapping of several. Small enough that a process can map a piece of each of 100,000 peers.
pub const PIECE: u64 = 1 << 30;
/// Unit of allocation in the range. Two registrations never share one, so that a granule names its registration;
/// 64 KiB is also the largest page size of the machines that we run on.
pub const GRANULE: u64 = 1 << 16;
/// Unit in which memory is given back to the system.
pub const PAGE: u64 = 4096;

/// Registrations that a rank can have at a time.
pub const EXTENTS: u64 = 1 << 20;
/// Bytes of one entry of the extent table.
pub const EXTENT_BYTES: u64 = 32;
/// Start of the extent table.
pub const EXTENT_TABLE: u64 = 1 << 20;
/// Start of the granule map: which extent each granule belongs to, four bytes each.
pub const GRANULE_MAP: u64 = 64 << 20;
/// Start of the queue of requests to the owner.
pub const REQUESTS: u64 = 128 << 20;
/// Bytes kept for that queue and its staging buffers.
pub const REQUESTS_BYTES: u64 = 32 << 20;
/// Start of starter memory.
pub const STARTER: u64 = 192 << 20;
/// Bytes of starter memory.
pub const STARTER_BYTES: u64 = 64 << 10;
/// Start of signal memory.
pub const SIGNALS: u64 = 256 << 20;
/// Bytes from one signal to the next: two lines, since processors fetch lines in pairs.
pub const SIGNAL_STRIDE: u64 = 128;
/// Signals that a rank can have.
pub const SIGNALS_MAX: u64 = 1 << 20;
/// Bytes of payload in a signal line, right behind the counter.
pub const LINE_PAYLOAD: usize = 48;

/// Start of the rank's station: who runs its command queues, and where they are.
pub const STATION: u64 = 384 << 20;
/// Bytes kept for it.
pub const STATION_BYTES: u64 = 1 << 20;
/// Command queues that a rank can have at a time.
pub const QUEUES_MAX: u32 = 4096;

/// Start of the arena, from which pairs of ranks take the slots of their messages.
pub const ARENA: u64 = 512 << 20;
/// Bytes of the arena. Only what was taken is backed by memory. The granule behind it is nobody's: what begins just
/// before symmetric memory is an error.
pub const ARENA_BYTES: u64 = (512 << 20) - GRANULE;
/// Bytes of a slot line: one line of the processor's.
pub const SLOT_LINE: u64 = 64;

/// Memory that every rank allocates alike.
pub const SYMMETRIC: Range<u64> = PIECE..WINDOW / 2;
/// Memory that a rank allocates by itself.
pub const LOCAL: Range<u64> = WINDOW / 2..WINDOW / 4 * 3;
/// Addresses of memory that the user owns.
pub const REGISTERED: Range<u64> = WINDOW / 4 * 3..WINDOW;

const _: () = {
    assert!(EXTENT_TABLE >= GRANULE, "granule 0 holds the header and is nobody's");
    assert!(EXTENT_TABLE + EXTENTS * EXTENT_BYTES <= GRANULE_MAP);
    assert!(GRANULE_MAP + WINDOW / GRANULE * 4 <= REQUESTS);
    assert!(REQUESTS + REQUESTS_BYTES <= STARTER);
    assert!(STARTER + STARTER_BYTES <= SIGNALS);
    assert!(SIGNALS + SIGNALS_MAX * SIGNAL_STRIDE <= STATION);
    assert!(STATION + STATION_BYTES <= ARENA);
    assert!(ARENA + ARENA_BYTES <= PIECE && ARENA.is_multiple_of(GRANULE));
    assert!(STARTER.is_multiple_of(GRANULE) && SIGNALS.is_multiple_of(GRANULE));
    assert!(8 + LINE_PAYLOAD <= 64, "counter and payload share a line");
    assert!(EXTENTS <= u32::MAX as u64);
};

/// Version of the handshake and of everything that two processes of a job read in each other's memory. Raise it
/// when the meaning of a shared word changes without its place.
pub const PROTOCOL: u32 = 9;

/// A fingerprint of all places above and of the node state's.
pub const HASH: u64 = {
    let numbers = [
        PROTOCOL as u64,
        WINDOW,
        PIECE,
        GRANULE,
        PAGE,
        EXTENTS,
        EXTENT_BYTES,
        EXTENT_TABLE,
        GRANULE_MAP,
        REQUESTS,
        REQUESTS_BYTES,
        STARTER,
        STARTER_BYTES,
        SIGNALS,
        SIGNAL_STRIDE,
        SIGNALS_MAX,
        LINE_PAYLOAD as u64,
        STATION,
        STATION_BYTES,
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
        // FNV-1a over words: distinguishes layouts, needs no strength.
        hash = (hash ^ numbers[i]).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
};

/// The signal of that number, as an offset in its rank's range.
#[inline]
pub const fn signal_offset(index: u32) -> u64 {
    SIGNALS + index as u64 * SIGNAL_STRIDE
}

/// Whether a signal's counter lies at that offset.
#[inline]
pub const fn is_signal(offset: u64) -> bool {
    offset >= SIGNALS
        && offset < SIGNALS + SIGNALS_MAX * SIGNAL_STRIDE
        && offset.is_multiple_of(SIGNAL_STRIDE)
}

/// Whether a whole slot line begins at that offset.
#[inline]
pub const fn is_slot_line(offset: u64) -> bool {
    offset >= ARENA && offset < ARENA + ARENA_BYTES && offset.is_multiple_of(SLOT_LINE)
}
