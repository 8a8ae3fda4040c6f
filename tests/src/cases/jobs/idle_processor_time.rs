//! L7: a rank that waits for a message uses almost no processor time, whichever call it waits in.
//! The case measures processor time, not clock time, which would depend on how busy the machine is.

use nix::time::ClockId;
use std::time::Duration;
use tasuki::{Communicator, Error, Job, Rank, Request, Result, Slot};

/// The processor time that a process may use while it waits for a second. It spins for some
/// milliseconds before it sleeps.
const USED_MAX: Duration = Duration::from_millis(10);
/// After a wait of more than ten milliseconds the next wait spins for the usual time; after a
/// shorter one it would spin longer.
const FIRST: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

const SENDER: Rank = Rank(0);
/// More bytes than fit into a line.
const LONG: usize = 100_000;

/// Waits for a message of the given number of bytes from the sender, on the given slot.
type Wait = fn(&Communicator, usize, Slot) -> Result<()>;

/// The ways of waiting, each with the length of its message.
const WAITS: [(&str, Wait, usize); 7] = [
    ("recv, short", blocked, 8),
    ("recv, long", blocked, LONG),
    ("a scope's wait, short", in_a_scope, 8),
    ("a scope's wait, long", in_a_scope, LONG),
    ("pollster, short", under_pollster, 8),
    ("pollster, long", under_pollster, LONG),
    ("tokio, long", under_tokio, LONG),
];

/// All ranks but the sender wait for a second in each way, and measure the processor time of their
/// process, which includes the thread that waits for futures.
pub fn l7_who_waits_for_a_message_sleeps(job: &Job) -> Result<()> {
    let world = job.world();
    for (slot, (what, wait, len)) in (0..).map(Slot).zip(WAITS) {
        if job.rank() == SENDER {
            for pause in [FIRST, SECOND] {
                std::thread::sleep(pause); // in no call of the library
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

/// The processor time of all threads of this process so far.
fn used() -> Result<Duration> {
    let now = ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map_err(Error::program)?;
    Ok(now.into())
}

fn blocked(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    world.recv(&mut vec![0_u8; len], SENDER, slot).map(drop)
}

fn in_a_scope(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    let mut got = vec![0_u8; len];
    world.scope(|s| s.recv(&mut got, SENDER, slot)?.wait().map(drop))
}

fn under_pollster(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    pollster::block_on(world.irecv(vec![0_u8; len], SENDER, slot)?).map(drop)
}

fn under_tokio(world: &Communicator, len: usize, slot: Slot) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().build().map_err(Error::program)?;
    tokio.block_on(world.irecv(vec![0_u8; len], SENDER, slot)?).map(drop)
}
