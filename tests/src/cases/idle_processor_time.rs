//! L7: a rank that waits for a message costs next to no processor time, in whatever way it waits. Time of processors,
//! not of the clock: a busy machine makes nobody's waiting dearer.

use nix::time::ClockId;
use std::time::Duration;
use tasuki::{Communicator, Error, Job, Rank, Result, Slot};

/// What a process may use while it waits for a second: it spins for some milliseconds before it sleeps.
const USED_MAX: Duration = Duration::from_millis(10);
/// A wait longer than ten milliseconds makes the next one begin as all do; after a shorter one it spins for longer.
const FIRST: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

const SENDER: Rank = Rank(0);
/// More than fits into a line.
const LONG: usize = 100_000;

/// A message is waited for: this many bytes from the sender, on this slot.
type Wait = fn(&Communicator, usize, Slot) -> Result<()>;

/// Each way of waiting, with the bytes of its message.
const WAITS: [(&str, Wait, usize); 7] = [
    ("recv, short", blocked, 8),
    ("recv, long", blocked, LONG),
    ("a scope's wait, short", in_a_scope, 8),
    ("a scope's wait, long", in_a_scope, LONG),
    ("pollster, short", under_pollster, 8),
    ("pollster, long", under_pollster, LONG),
    ("tokio, long", under_tokio, LONG),
];

/// Everybody but the sender waits for a second in each way, and counts what its process used meanwhile: the thread that
/// waits for futures, too.
pub fn l7_who_waits_for_a_message_sleeps(job: &Job) -> Result<()> {
    let world = job.world();
    for (slot, (what, wait, len)) in (0..).map(Slot).zip(WAITS) {
        if job.rank() == SENDER {
            for pause in [FIRST, SECOND] {
                std::thread::sleep(pause); // in no call of ours
                for peer in job.ranks().filter(|&peer| peer != SENDER) {
                    world.send(&vec![1_u8; len], peer, slot)?;
                }
            }
        } else {
            wait(world, len, slot)?;
            let before = used()?;
            wait(world, len, slot)?;
            let used = used()? - before;
            assert!(used < USED_MAX, "{what}: {used:?} of processor time in a second");
        }
    }
    job.barrier()
}

/// Processor time of this process so far, of all its threads.
fn used() -> Result<Duration> {
    let now = ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map_err(Error::program)?;
    Ok(now.into())
}

fn blocked(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    world.recv(&mut vec![0_u8; len], SENDER, slot).map(drop)
}

fn in_a_scope(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    let mut got = vec![0_u8; len];
    world.scope(|s| {
        s.recv(&mut got, SENDER, slot)?;
        s.wait_recv::<u8>(SENDER, slot).map(drop)
    })
}

fn under_pollster(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    pollster::block_on(world.irecv(vec![0_u8; len], SENDER, slot)?).map(drop)
}

fn under_tokio(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().build().map_err(Error::program)?;
    tokio.block_on(world.irecv(vec![0_u8; len], SENDER, slot)?).map(drop)
}
