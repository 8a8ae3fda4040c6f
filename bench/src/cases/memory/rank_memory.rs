//! memory: bytes that a rank takes, against the formula of docs/guide/memory.md.

use crate::harness::process_role::ProcessRole;
use crate::result::figure::Event;
use anyhow::{Context, ensure};
use std::fmt;
use std::process::{Command, Stdio};
use std::time::Duration;
use tasuki::{Job, Rank};

/// Job memory that every rank allocates in the second step, in bytes.
const ALLOCATED: u64 = 1 << 20;
/// Signals that every rank makes, and another raises, in the third step.
const SIGNALS: usize = 1000;
/// Memory is backed in pages of this many bytes.
pub(crate) const PAGE: u64 = 4096;

/// What a rank has done when its memory is looked at; each step adds to the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Step {
    /// Joined, met the others in a barrier, waited once.
    Fixed,
    /// Allocated 1 MiB of job memory.
    Alloc,
    /// Made 1000 signals, which were raised.
    Signals,
    /// Put to every rank.
    Peers,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Fixed => "fixed",
            Step::Alloc => "alloc_1MiB",
            Step::Signals => "signals_1000",
            Step::Peers => "all_peers",
        })
    }
}

impl Step {
    /// All, in their order.
    pub(crate) const ALL: [Step; 4] = [Step::Fixed, Step::Alloc, Step::Signals, Step::Peers];

    /// What the formula gives for a rank of a job of `ranks`, in bytes.
    pub(crate) fn formula(self, ranks: u64) -> u64 {
        let distances = distances(ranks);
        let signals = 2 * distances + if self >= Step::Signals { SIGNALS as u64 } else { 0 };
        let allocated = if self >= Step::Alloc { ALLOCATED } else { 0 };
        let stretches = u64::from(self >= Step::Alloc);
        let peers = if self >= Step::Peers { ranks - 1 } else { distances };
        file(signals, allocated, stretches) + tables(ranks, peers)
    }
}

/// A barrier talks to the ranks 1, 2, 4 ... further on, by two signals for each of these distances.
fn distances(ranks: u64) -> u64 {
    u64::from(ranks.next_power_of_two().trailing_zeros())
}

/// Bytes of the rank's memory file: a page each of the table of registrations, the map of starter
/// memory, the queue of requests, the queue directory and the signals of the world's collectives; 8 of the map of
/// the arena; 128 bytes a signal; what is allocated; and a page of the map for each stretch of 64 MiB of the address range
/// in which something is registered.
fn file(signals: u64, allocated: u64, stretches: u64) -> u64 {
    let signal_pages = (128 * signals).div_ceil(PAGE).max(1);
    PAGE * (13 + signal_pages + allocated.div_ceil(PAGE) + stretches)
}

/// Bytes of private tables: a pointer and a state for each rank of the job; for each rank whose memory is mapped,
/// oneself included, a window with one branch, which reaches 32 GiB.
fn tables(ranks: u64, peers: u64) -> u64 {
    16 * ranks + (312 + 256) * (peers + 1)
}

/// Bytes of the inbox that a simulated rank has, and of the page that says which pages of symmetric memory are taken.
fn inbox() -> u64 {
    const BYTES: u64 = 72_320;
    BYTES.next_multiple_of(PAGE) + PAGE
}

/// What a rank of `ranks` takes that has joined, met and waited, by how many peers it has touched. Simulated ranks have
/// an inbox, no queue of requests, and no tables of their own.
pub(crate) fn fixed(ranks: u64, simulated: bool) -> impl Fn(u64) -> u64 {
    let distances = distances(ranks);
    move |peers| {
        let file = file(2 * distances, 0, 0);
        if simulated { file - PAGE + inbox() } else { file + tables(ranks, peers.max(distances)) }
    }
}

/// Waits once in vain: from then on the rank looks into its queue of requests.
pub(crate) fn wait_in_vain(job: &Job) -> tasuki::Result<()> {
    let waited = job.signal()?.wait_timeout(1, Duration::from_millis(2));
    waited.or_else(|error| if error.is_timeout() { Ok(()) } else { Err(error) })
}

/// Each rank does the steps and tells its bytes after each.
pub(crate) fn app(job: &Job, tell: &dyn Fn(Event)) -> tasuki::Result<()> {
    let next = Rank((job.rank().0 + 1) % job.size() as u32);
    let look = |step: Step| -> tasuki::Result<()> {
        job.barrier()?;
        let memory = job.memory();
        tell(Event::Report(step.to_string(), memory.file + memory.peers));
        job.barrier()
    };
    wait_in_vain(job)?;
    look(Step::Fixed)?;
    let memory = job.alloc::<u8>(ALLOCATED as usize)?;
    look(Step::Alloc)?;
    // One was made for the first step.
    for _ in 1..SIGNALS {
        job.raise(job.signal()?.on(next), 1)?;
    }
    look(Step::Signals)?;
    for rank in job.ranks() {
        job.put(memory.on(rank).at(job.rank().index()), &[1])?;
    }
    look(Step::Peers)
}

/// The bytes that the ranks of a job told after each step.
pub(crate) fn look(ranks: usize) -> anyhow::Result<Vec<(Step, Vec<f64>)>> {
    let told = reports(ProcessRole::RankMemory.job(ranks, &[])?, ranks)?;
    let of = |step: Step| {
        let name = step.to_string();
        told.iter().filter(|(what, _)| *what == name).map(|&(_, bytes)| bytes as f64).collect()
    };
    Ok(Step::ALL.map(|step| (step, of(step))).into())
}

/// What the ranks of a job tell that this command starts.
pub(crate) fn reports(mut command: Command, ranks: usize) -> anyhow::Result<Vec<(String, u64)>> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.context("tasuki run could not be started")?;
    ensure!(output.status.success(), "memory: the job of {ranks} ranks failed ({})", output.status);
    Ok(output.stdout.split(|&byte| byte == b'\n').filter_map(report).collect())
}

fn report(line: &[u8]) -> Option<(String, u64)> {
    match serde_json::from_slice(line) {
        Ok(Event::Report(what, bytes)) => Some((what, bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn ranks_take_what_the_formula_says() {
        for ranks in [1, 2, 5] {
            let told = Mutex::new(Vec::new());
            tasuki::local(ranks, |job| app(job, &|event| told.lock().unwrap().push(event))).unwrap();
            let told = told.into_inner().unwrap();
            assert_eq!(told.len(), ranks * Step::ALL.len());
            for step in Step::ALL {
                let expected = Event::Report(step.to_string(), step.formula(ranks as u64));
                let told: Vec<&Event> = told
                    .iter()
                    .filter(|event| matches!(event, Event::Report(what, _) if *what == step.to_string()))
                    .collect();
                assert!(
                    told.iter().all(|event| **event == expected),
                    "{ranks} ranks: {told:?}, {expected:?}"
                );
            }
        }
    }
}
