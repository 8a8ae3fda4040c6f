//! B9: a rank issues far more operations than may be unfinished at a time.

use crate::blocked_operation::{Gate, ISSUER, KEEPER};
use crate::cases::kinds_of_memory::{Areas, Kind};
use crate::exchange::effort;
use crate::wait_until::stay_away;
use std::time::Duration;
use tasuki::onesided::{After, Handle, LocalArray};
use tasuki::{Array, GlobalPtr, Job, Result};

/// A number of operations larger than a rank may have unfinished. If the keeper counts that many, the limit does not
/// work.
const UNFINISHED_MAX: u64 = 4096 + 64;

/// The number of copies that are issued behind the closed gate: more than may be unfinished.
const HELD: usize = 5_000;

/// The value of word `index` of the source.
fn word(index: usize) -> u64 {
    (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// 10^6 copies of one word each; the rank completes none before all are issued. All must arrive.
pub fn b9_a_million_copies(job: &Job) -> Result<()> {
    let count = effort(job, 1_000_000, 5_000);
    flood(job, Kind::Job, count, &|_| After::Nothing)
}

/// 10^6 copies into registered memory of the owner, where a copy may be a request to the owner.
pub fn b9_copies_to_own_memory(job: &Job) -> Result<()> {
    flood(job, Kind::Program, effort(job, 100_000, 3_000), &|_| After::Nothing)
}

/// 10^6 copies in one long chain, each ordered after the copy before it.
pub fn b9_a_chain_of_copies(job: &Job) -> Result<()> {
    let counts = [(Kind::Job, effort(job, 20_000, 3_000)), (Kind::Program, effort(job, 5_000, 1_000))];
    counts.into_iter().try_for_each(|(kind, count)| flood(job, kind, count, &After::Exact))
}

/// Issues `count` copies behind a gate, and checks that they arrive. The gate is opened only after
/// the issuer has been stopped by the limit, so unfinished operations take bounded memory.
fn flood(job: &Job, kind: Kind, count: usize, after: &dyn Fn(Handle) -> After) -> Result<()> {
    let gate = Gate::new(job)?;
    // With fewer copies the issuer would not reach the limit.
    let count = if gate.is_tight(job) { count.max(HELD) } else { count };
    let areas = Areas::new(job, 8 * count)?;
    let issued = job.alloc::<u64>(1)?;
    match job.rank() {
        ISSUER => {
            let source = job.alloc_local::<u64>(count)?;
            source.write(0, &(0..count).map(word).collect::<Vec<_>>())?;
            issue(job, &gate, &source, areas.on(kind, KEEPER).cast(), &issued, after)?;
        }
        KEEPER => keep_until_held_back(job, &gate, &issued)?,
        _ => {}
    }
    job.barrier()?;
    if job.rank() == KEEPER {
        let found = areas.image(kind)?;
        let words = found.chunks_exact(8).map(|bytes| u64::from_ne_bytes(std::array::from_fn(|i| bytes[i])));
        let lost = words.enumerate().filter(|&(index, found)| found != word(index)).count();
        assert_eq!(lost, 0, "copies were lost");
    }
    job.barrier()
}

fn issue(
    job: &Job,
    gate: &Gate,
    source: &LocalArray<u64>,
    to: GlobalPtr<u64>,
    issued: &Array<u64>,
    after: &dyn Fn(Handle) -> After,
) -> Result<()> {
    let mut end = gate.close(job)?;
    if !gate.is_tight(job) {
        gate.open(job)?;
    }
    // Operations ordered after the closed gate are unfinished until the keeper opens it.
    let held = HELD.min(source.len());
    for index in 0..source.len() {
        let order = if index < held { After::Exact(end) } else { after(end) };
        let handle = job.copy(source.pointer().at(index), to.at(index), 1, order)?.handle();
        if matches!(after(end), After::Exact(_)) {
            end = handle;
        }
        if index < held {
            job.put(issued.on(KEEPER), &[index as u64 + 1])?;
        }
    }
    job.complete(job.copy(source.pointer(), source.pointer(), 1, After::All)?.handle())
}

/// Makes no waiting call until the issuer has issued as many operations as it may, and issues no
/// more for a while.
fn keep_until_held_back(job: &Job, gate: &Gate, issued: &Array<u64>) -> Result<()> {
    gate.go_away(job)?;
    if gate.is_tight(job) {
        let mut quiet_since = (job.clock(), 0);
        while quiet_since.1 < 4_000 || job.clock() - quiet_since.0 < Duration::from_millis(50) {
            let now = job.load(issued.pointer())?;
            assert!(now <= UNFINISHED_MAX, "{now} operations are unfinished; there is no limit");
            if now != quiet_since.1 {
                quiet_since = (job.clock(), now);
            }
            stay_away(job);
        }
        gate.open_own()?;
    }
    gate.keep(job)
}
