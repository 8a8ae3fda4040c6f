//! L6: the memory, address space and descriptors of a rank are as docs/guide/memory.md says.

use crate::exchange::next;
use std::time::Duration;
use tasuki::{Job, Request, Result};

const PAGE: u64 = 4096;
/// The size of the pieces in which a peer's memory is mapped.
const PIECE: u64 = 1 << 30;
/// The size of the job memory that every rank allocates.
const ALLOCATED: u64 = 1 << 20;
/// The number of signals that every rank allocates.
const SIGNALS: u64 = 100;

/// The number of other ranks to which a barrier sends.
fn distances(ranks: u64) -> u64 {
    u64::from(ranks.next_power_of_two().trailing_zeros())
}

/// Pages of the memory file of a rank that has waited, without job memory.
fn fixed_pages(ranks: u64, signals: u64) -> u64 {
    13 + (128 * (2 * distances(ranks) + signals)).div_ceil(PAGE).max(1)
}

/// Bytes of the private tables of a rank that has accessed `peers` others.
fn tables(ranks: u64, peers: u64) -> u64 {
    16 * ranks + 568 * (1 + peers)
}

/// Lets one wait time out. After that, the rank also polls its queue of requests.
fn wait_in_vain(job: &Job) -> Result<()> {
    job.signal()?.reaches(1).wait_timeout(Duration::from_millis(2)).map(drop)
}

/// Compares the numbers of the job with the formula, up to a page. The rank has accessed `peers` others or more: a wait
/// of more than a millisecond in a call of the job looks at those that are late.
fn compare(job: &Job, pages: u64, peers: u64, what: &str) -> Result<()> {
    job.barrier()?;
    let (found, ranks) = (job.memory(), job.size() as u64);
    assert!(found.file.abs_diff(pages * PAGE) <= PAGE, "{what}: {pages} pages expected of {found:?}");
    let mut possible = (peers..ranks).map(|peers| tables(ranks, peers));
    assert!(possible.any(|bytes| bytes == found.peers), "{what}: private tables of {} bytes", found.peers);
    job.barrier()
}

/// L6: the memory of a rank agrees with the formula while the job allocates, makes signals, accesses all ranks, and
/// frees memory.
pub fn l6_memory_agrees_with_the_formula(job: &Job) -> Result<()> {
    let ranks = job.size() as u64;
    let near = distances(ranks);
    wait_in_vain(job)?;
    // The first allocation also takes a page of the granule map.
    let inbox = inbox_pages();
    let at_first = if inbox > 0 { inbox + 1 } else { 0 };
    compare(job, fixed_pages(ranks, 1) + at_first, near, "at first")?;
    let memory = job.alloc::<u8>(ALLOCATED as usize)?;
    let allocated = ALLOCATED / PAGE + inbox + 1;
    compare(job, fixed_pages(ranks, 1) + allocated, near, "with job memory")?;
    for _ in 1..SIGNALS {
        job.raise(job.signal()?.on(next(job)), 1)?;
    }
    let fixed = fixed_pages(ranks, SIGNALS);
    compare(job, fixed + allocated, near, "with signals")?;
    for rank in job.ranks() {
        job.put(memory.on(rank).at(job.rank().index()), &[1])?;
    }
    compare(job, fixed + allocated, ranks - 1, "with all peers touched")?;
    drop(memory);
    compare(job, fixed + inbox + 1, ranks - 1, "with job memory freed")
}

/// Pages of the inbox, which a rank has only if other ranks cannot access its queues.
fn inbox_pages() -> u64 {
    const BYTES: u64 = 72_320;
    if std::env::var("TASUKI_DIRECT_SIGNALS").is_ok_and(|way| way == "off") {
        BYTES.div_ceil(PAGE)
    } else {
        0
    }
}

/// L6: address space, page tables and descriptors agree with the formula.
pub fn l6_mappings_and_files_agree_with_the_formula(job: &Job) -> Result<()> {
    let ranks = job.size() as u64;
    job.barrier()?;
    // This rank's memory, that of the ranks a barrier sends to, and perhaps that of others which were late.
    let (first, possible) = (mapped("tasuki-rank"), PIECE * (1 + distances(ranks))..=PIECE * ranks);
    assert!(possible.contains(&first) && first.is_multiple_of(PIECE), "{first} bytes mapped at first");
    let memory = job.alloc::<u8>(ALLOCATED as usize)?;
    for rank in job.ranks() {
        job.put(memory.on(rank).at(job.rank().index()), &[1])?;
    }
    job.barrier()?;
    assert_eq!(mapped("tasuki-rank"), PIECE * 2 * ranks, "tables and job memory of every rank");
    assert_eq!(mapped("tasuki-node"), (PAGE + 512 * ranks).next_multiple_of(PAGE));
    assert_eq!((open("tasuki-rank"), open("tasuki-node")), (ranks, 1));
    let tables = page_table_bytes();
    assert!(tables <= (256 + 32 * ranks) << 10, "{tables} bytes of page tables");
    job.barrier()
}

/// Bytes of this process's address space that map files of that name.
fn mapped(name: &str) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc/self/maps can be read");
    let size = |line: &str| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        Some(u64::from_str_radix(end, 16).ok()? - u64::from_str_radix(start, 16).ok()?)
    };
    maps.lines().filter(|line| line.contains(name)).filter_map(size).sum()
}

/// The number of this process's descriptors of files of that name.
fn open(name: &str) -> u64 {
    let all = std::fs::read_dir("/proc/self/fd").expect("/proc/self/fd can be read");
    let target = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_link(entry.ok()?.path()).ok();
    all.filter_map(target).filter(|target| target.to_string_lossy().contains(name)).count() as u64
}

/// Bytes of the page tables of this process.
fn page_table_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status can be read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("/proc/self/status has a line VmPTE") << 10
}
