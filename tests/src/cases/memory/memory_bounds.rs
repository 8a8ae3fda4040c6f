//! No buffer takes more than docs/guide/memory.md says, however many peers there are and whatever they send.

use std::time::Duration;
use tasuki::engine::MemoryUsage;
use tasuki::message::{BUFFERED_OVERHEAD, ReceiveQueueAddress};
use tasuki::{Job, Rank, Request, Result, Slot};

/// Bytes of a bank of 64 slots, and of its private table.
const BANK: u64 = 8320;
const BANK_TABLE: u64 = 1200;
/// Most bytes of the rings of a rank, and of the wide ones, which a rank gets when it has staged so many bytes.
const RINGS: u64 = 4 * ((256 << 10) + 2048);
const WIDE_RINGS: (u64, usize) = (4 * ((2 << 20) + 2048), 4 << 20);
/// Buffers of the receive queue of the first rank, and bytes of each.
const QUEUE: (usize, usize) = (4, 64);
/// Buffers and bytes of each of an any-source queue, if nobody has set others; and private bytes for each rank to which
/// this one has sent.
const ANY_SOURCE: (u64, u64, u64) = (64, 256, 512);
/// Bytes of a message that goes through a ring.
const LONG: usize = 100 << 10;
/// Bytes of a message that is buffered.
const EARLY: usize = 1 << 10;

const SHORT_SLOT: Slot = Slot(0);
const LONG_SLOT: Slot = Slot(1);
const EARLY_SLOT: Slot = Slot(2);
const FIRST: Rank = Rank(0);

/// The first rank talks to one peer, to 8, and to all. After each step, what it takes agrees with the formulas.
pub fn no_buffer_exceeds_its_maximum(job: &Job) -> Result<()> {
    let others = job.size() - 1;
    let mut queue = job.receive_queue(QUEUE.0, QUEUE.1)?;
    let address = job.alloc::<ReceiveQueueAddress>(1)?;
    job.put(address.on(job.rank()), &[queue.address()])?;
    job.barrier()?;
    let to_first = job.get_vec(address.on(FIRST), 1)?[0];
    let mut staged = 0;
    for peers in [1, 8, others].into_iter().filter(|&peers| peers <= others) {
        staged += peers * LONG;
        let is_peer = (1..=peers).contains(&job.rank().index());
        if job.rank() == FIRST {
            early_messages(job, peers)?;
            long_messages(job, peers)?;
            for _ in 0..peers {
                queue.recv(&mut [0_u64], SHORT_SLOT)?;
                job.world().recv_any_vec::<u64>(SHORT_SLOT)?;
            }
        } else if is_peer {
            answer(job, to_first)?;
        }
        job.barrier()?;
        if job.rank() == FIRST {
            check(&job.memory(), peers as u64, staged, "when all messages have come");
        }
        job.barrier()?;
    }
    Ok(())
}

/// Sends that return before their receives are posted: what they take is in the send buffer until then.
fn early_messages(job: &Job, peers: usize) -> Result<()> {
    let before = job.memory().send_buffer;
    assert_eq!(before, 0, "messages of earlier steps were received");
    (1..=peers).try_for_each(|peer| job.world().send(&[7_u8; EARLY], Rank(peer), EARLY_SLOT))?;
    let taken = job.memory().send_buffer;
    assert_eq!(
        taken,
        peers as u64 * (EARLY as u64 + BUFFERED_OVERHEAD),
        "{peers} messages that nobody has asked for"
    );
    (1..=peers).try_for_each(|peer| job.world().send(&[1_u64], Rank(peer), SHORT_SLOT))
}

fn long_messages(job: &Job, peers: usize) -> Result<()> {
    let mut sends = Vec::new();
    for peer in 1..=peers {
        sends.push(job.world().isend(vec![peer as u8; LONG], Rank(peer), LONG_SLOT)?);
    }
    sends.into_iter().try_for_each(|mut send| send.wait().map(drop))
}

fn answer(job: &Job, to_first: ReceiveQueueAddress) -> Result<()> {
    let world = job.world();
    let mut receive = world.irecv(vec![0_u8; LONG], FIRST, LONG_SLOT)?;
    world.recv(&mut [0_u64], FIRST, SHORT_SLOT)?;
    job.compute(Duration::from_millis(3)); // meanwhile the messages to all peers are in rings
    let (long, _) = receive.wait()?;
    assert_eq!(long, vec![job.rank().index() as u8; LONG]);
    world.recv(&mut [0_u8; EARLY], FIRST, EARLY_SLOT)?;
    job.open_receive_queue(to_first)?.send(&[2_u64], SHORT_SLOT)?;
    world.send_any(&3_u64, FIRST, SHORT_SLOT)
}

/// Compares what the first rank takes when it has talked to so many peers with the formulas.
fn check(found: &MemoryUsage, peers: u64, staged: usize, when: &str) {
    let what = format!("{when}, {peers} peers: {found:?}");
    assert_eq!(found.slot_banks, BANK * peers, "{what}");
    assert_eq!(found.bank_tables, BANK_TABLE * peers, "{what}");
    let (wide, wide_after) = WIDE_RINGS;
    assert!(found.rings <= RINGS + if staged < wide_after { 0 } else { wide }, "{what}");
    assert_eq!(found.send_buffer, 0, "{what}");
    let words = 5 + 3 + 1; // of its description
    assert_eq!(found.receive_queues, (QUEUE.0 * QUEUE.1) as u64 + 8 * words + BANK, "{what}");
    let (buffers, bytes, sender) = ANY_SOURCE;
    assert!(found.any_source <= buffers * (bytes + 64) + sender, "{what}");
    assert_eq!((found.channels, found.plans, found.calls), (0, 0, 0), "{what}");
}
