//! memory: bytes of a rank that exchanges messages, with one peer and with all, against the formula of
//! docs/guide/memory.md. Ranks are processes, or, where there are to be very many, simulated.

use crate::cases::memory::rank_memory::{self, PAGE};
use crate::harness::process_role::ProcessRole;
use crate::result::figure::Event;
use anyhow::Context;
use tasuki::{Job, Rank, RecvRequest, SendRequest, Slot};

/// More ranks than this are simulated.
pub(crate) const PROCESSES_MAX: usize = 256;
/// Bytes at either end for 64 slots of a pair.
const UNIT: u64 = 8320;
/// Bytes of an entry, in the memory of the lower of the two ranks.
const ENTRY: u64 = 32;
/// Bytes of a head of a list of entries, by the number of the peer.
const HEAD: u64 = 4;
/// Private bytes for 64 slots of a pair.
const PRIVATE: u64 = 1200;
/// Slots on which messages are exchanged: so that all pages of memory are touched in which a pair's slots lie.
const SLOTS: [Slot; 3] = [Slot(0), Slot(32), Slot(63)];

/// What the first rank of `ranks` takes, by its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageMemory {
    /// Having exchanged messages, both ways, with one.
    pub(crate) one: u64,
    /// With all.
    pub(crate) all: u64,
}

impl MessageMemory {
    /// What each peer beyond the first takes.
    pub(crate) fn each(self, ranks: u64) -> f64 {
        (self.all - self.one) as f64 / (ranks - 2) as f64
    }

    /// What the formula gives.
    pub(crate) fn formula(ranks: u64) -> MessageMemory {
        let fixed = rank_memory::fixed(ranks, is_simulated(ranks as usize));
        let of = |peers: u64| {
            let bytes = [1, HEAD * (1 + peers), ENTRY * peers, UNIT * peers]; // the first counts what is taken
            let pages: u64 = bytes.iter().map(|bytes| bytes.div_ceil(PAGE)).sum();
            fixed(peers) + PAGE * pages + PRIVATE * peers
        };
        MessageMemory { one: of(1), all: of(ranks - 1) }
    }
}

fn is_simulated(ranks: usize) -> bool {
    ranks > PROCESSES_MAX
}

/// The first rank exchanges messages with one other, then with the rest, and tells its bytes after either.
pub(crate) fn app(job: &Job, tell: &dyn Fn(Event)) -> tasuki::Result<()> {
    rank_memory::wait_in_vain(job)?;
    let ranks = job.size() as u32;
    for (what, peers) in [("one", 1..2), ("all", 2..ranks)] {
        exchange(job, peers)?;
        job.barrier()?;
        if job.rank() == Rank(0) {
            let memory = job.memory();
            tell(Event::Report(what.into(), memory.file + memory.peers + memory.bank_tables));
        }
        job.barrier()?;
    }
    Ok(())
}

/// The first rank opens all pairs before anybody else does: who opens one in the same moment takes memory and gives it
/// back, and that stays in the file. Its messages find no receive posted, so it looks whether one of any slot is, and
/// has touched all lines that a pair may ever touch.
fn exchange(job: &Job, peers: std::ops::Range<u32>) -> tasuki::Result<()> {
    let (me, world) = (job.rank(), job.world());
    let mut receives: Vec<RecvRequest<u64>> = Vec::new();
    let mut sends: Vec<SendRequest<u64>> = Vec::new();
    if me == Rank(0) {
        for peer in peers.clone() {
            for slot in SLOTS {
                receives.push(world.irecv(vec![0], Rank(peer), slot)?);
                sends.push(world.isend(vec![u64::from(peer)], Rank(peer), slot)?);
            }
        }
    }
    job.barrier()?;
    if me != Rank(0) && peers.contains(&me.0) {
        SLOTS.iter().try_for_each(|&slot| world.send(&[u64::from(me.0)], Rank(0), slot))?;
        SLOTS.iter().try_for_each(|&slot| world.recv(&mut [0_u64], Rank(0), slot).map(drop))?;
    }
    receives.into_iter().try_for_each(|mut receive| receive.wait().map(drop))?;
    sends.into_iter().try_for_each(|mut send| send.wait().map(drop))
}

/// What the first of `ranks` ranks told.
pub(crate) fn look(ranks: usize) -> anyhow::Result<MessageMemory> {
    let command = if is_simulated(ranks) {
        ProcessRole::MessageMemory.simulated(ranks)?
    } else {
        ProcessRole::MessageMemory.job(ranks, &[])?
    };
    let told = rank_memory::reports(command, ranks)?;
    let of = |name: &str| {
        let found = told.iter().find(|(what, _)| what == name);
        found.map(|&(_, bytes)| bytes).with_context(|| format!("{name}: not told"))
    };
    Ok(MessageMemory { one: of("one")?, all: of("all")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_rank_that_talks_takes_what_the_formula_says() {
        for ranks in [3, 12, 64] {
            let told = Mutex::new(Vec::new());
            tasuki::local(ranks, |job| app(job, &|event| told.lock().unwrap().push(event))).unwrap();
            let MessageMemory { one, all } = MessageMemory::formula(ranks as u64);
            let report = |what: &str, bytes| Event::Report(what.into(), bytes);
            assert_eq!(told.into_inner().unwrap(), [report("one", one), report("all", all)], "{ranks} ranks");
        }
    }
}
