//! Three ranks, one of which is killed in the middle of work for the others.
//! `tools/tests/run/deaths.rs` starts them. Every other rank writes to standard error with which error
//! it ended.
//!
//! `ranks_that_die WAY [VICTIM]`: `WAY` names the work in which the victim dies. The moment is exact: part
//! of the victim's own memory is made inaccessible, and the first access to it kills the victim.
#![allow(unsafe_code)]
//! Unsafe: `mprotect` on pages of this rank to which no reference exists, and a signal handler
//! that makes one system call.

use nix::sys::mman::{ProtFlags, mprotect};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal as KernelSignal, kill, sigaction};
use nix::unistd::getpid;
use std::io::Write;
use std::process::ExitCode;
use std::ptr::NonNull;
use std::time::Duration;
use tasuki::engine::{Cause, RemoteQueue};
use tasuki::{Array, Command, GlobalPtr, Handler, Handlers, Job, Rank, Request, Result, Slot};
use tasuki_tests::watchdog::Watchdog;

const PAGE: usize = 4096;
/// The size of the chunks in which ranks share a copy.
const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 64;
const OWNER: Rank = Rank(0);

extern "C" fn die_of_it(_: i32) {
    die();
}

fn die() {
    let _ = kill(getpid(), KernelSignal::SIGKILL);
}

/// Job memory. An access by the victim to the protected parts of its own copy kills the victim;
/// other ranks may access them.
struct Trap {
    memory: Array<u8>,
    victim: Rank,
    /// Offset of the first page in the memory; equal on all ranks.
    first: usize,
}

impl Trap {
    fn new(job: &Job, victim: Rank) -> Result<Trap> {
        let memory = job.alloc::<u8>((CHUNKS + 1) * CHUNK)?;
        // The memory of each rank has the same alignment to pages, so one offset serves all ranks.
        let first = (memory.pointer().address().offset() as usize).next_multiple_of(PAGE)
            - memory.pointer().address().offset() as usize;
        // Map the memory of all ranks now: an access to memory that is not mapped yet takes another
        // code path.
        job.ranks().try_for_each(|rank| job.get(memory.on(rank), &mut [0_u8]))?;
        Ok(Trap { memory, victim, first })
    }

    /// The first page in the victim's memory. From there on, the second half of each chunk is
    /// protected.
    fn place(&self) -> GlobalPtr<u8> {
        self.memory.on(self.victim).at(self.first)
    }

    /// A copy that kills the victim if the victim carries it out.
    fn copy(&self, len: usize) -> Command {
        // The source is another rank, because a copy of a place onto itself accesses nothing.
        let from = Rank(if self.victim == OWNER { 2 } else { 0 });
        Command::copy(self.memory.on(from), self.place().at(if len < CHUNK { CHUNK / 2 } else { 0 }), len)
    }

    /// Protects the memory; the victim calls it.
    fn set(&self) {
        let action = SigAction::new(SigHandler::Handler(die_of_it), SaFlags::empty(), SigSet::empty());
        for signal in [KernelSignal::SIGSEGV, KernelSignal::SIGBUS] {
            // SAFETY: the handler makes one system call, which handlers may make.
            unsafe { sigaction(signal, &action) }.expect("a handler");
        }
        // SAFETY: only the address of the slice is used.
        let start = unsafe { self.memory.as_slice() }.as_ptr();
        for chunk in 0..CHUNKS {
            let half = start.wrapping_add(self.first + chunk * CHUNK + CHUNK / 2);
            let half = NonNull::new(half.cast_mut().cast()).expect("it is not null");
            // SAFETY: these are whole pages of job memory, and no references to them exist.
            unsafe { mprotect(half, CHUNK / 2, ProtFlags::PROT_NONE) }
                .expect("this rank may protect its own memory");
        }
    }
}

const DIES: Handler<(), ()> = Handler::new("dies", |_, ()| die());
const NOTHING: Handler<(), ()> = Handler::new("nothing", |_, ()| ());

fn main() -> ExitCode {
    let _watched = Watchdog::over("ranks_that_die");
    let mut args = std::env::args().skip(1);
    let way = args.next().unwrap_or_default();
    let victim = Rank(args.next().and_then(|rank| rank.parse().ok()).unwrap_or(1));
    tasuki::main_with(Handlers::new().add(DIES).add(NOTHING), |job: &Job| -> Result<()> {
        work(job, &way, victim).inspect_err(|error| {
            let _ = writeln!(std::io::stderr(), "rank {} got the error: {error}", job.rank());
        })
    })
}

fn work(job: &Job, way: &str, victim: Rank) -> Result<()> {
    let trap = Trap::new(job, victim)?;
    if job.rank() == victim {
        trap.set();
    }
    job.barrier()?;
    match way {
        "ahead" => with_a_lease_taken_ahead(job, &trap),
        "lease" => with_a_lease_that_is_wanted(job, &trap),
        "in_flight" => with_a_command_under_way(job, &trap),
        "remote_note" => with_a_command_that_only_it_may_run(job, &trap),
        "chunk" => half_way_through_a_chunk(job, &trap),
        "handler" => in_a_handler(job),
        "helper" => by_its_helper(job, &trap),
        "any_source" => while_it_sends_to_one(job, victim),
        other => panic!("there is no way {other}"),
    }
}

/// Tells every rank the queue of each rank.
fn queues(job: &Job, own: RemoteQueue) -> Result<Vec<RemoteQueue>> {
    let names = job.alloc::<RemoteQueue>(job.size())?;
    job.ranks().try_for_each(|rank| job.put(names.on(rank).at(job.rank().index()), &[own]))?;
    job.barrier()?;
    names.to_vec()
}

/// The victim raises a signal that triggers a command in the owner's queue. The victim has the
/// lease of that queue already, so it runs the command. Meanwhile the owner waits and keeps looking
/// at its queue.
fn with_a_lease_taken_ahead(job: &Job, trap: &Trap) -> Result<()> {
    let (go, done, never) = (job.signal()?, job.signal()?, job.signal()?);
    let queue = job.queue(8)?;
    if job.rank() == OWNER {
        let kept = queue.post(Command::nothing().when(never.reaches(1)))?;
        queue.post(trap.copy(PAGE).when(go.reaches(1)).then(done.on(Rank(2)).add(1)))?;
        job.barrier()?;
        let outcome = never.wait_at_least(1);
        assert!(queue.cancel(kept).is_err(), "the victim died without the lease");
        assert!(queue.post(Command::nothing()).is_err(), "the job is over");
        return outcome;
    }
    job.barrier()?;
    if job.rank() == trap.victim {
        queue.post(Command::nothing().then(go.on(OWNER).add(1)))?;
        panic!("another rank ran the command");
    }
    done.wait_at_least(1)
}

/// The victim runs a queue with a lease that the owner is waiting for.
fn with_a_lease_that_is_wanted(job: &Job, trap: &Trap) -> Result<()> {
    let (done, never) = (job.signal()?, job.signal()?);
    let queue = job.queue(8)?;
    let names = queues(job, queue.remote())?;
    if job.rank() == OWNER {
        loop {
            match queue.post(Command::nothing().when(never.reaches(1))) {
                Ok(kept) => drop(queue.cancel(kept)?),
                Err(error) if matches!(error.cause(), Cause::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    while job.rank() == trap.victim {
        match names[OWNER.index()].post(job, trap.copy(PAGE).then(done.on(Rank(2)).add(1))) {
            Err(error) if !matches!(error.cause(), Cause::Full { .. }) => return Err(error),
            _ => {}
        }
    }
    done.wait_at_least(u64::MAX / 4)
}

/// The victim has taken a command from the queue of the owner, who was computing, and has released
/// the lease.
fn with_a_command_under_way(job: &Job, trap: &Trap) -> Result<()> {
    let (done, never) = (job.signal()?, job.signal()?);
    let queue = job.queue(8)?;
    let names = queues(job, queue.remote())?;
    if job.rank() == OWNER {
        let kept = queue.post(Command::nothing().when(never.reaches(1)))?;
        job.raise(done.on(trap.victim), 1)?;
        while queue.stats().in_flight == 0 {
            job.compute(Duration::from_micros(5));
        }
        assert!(queue.cancel(kept)?, "the command still waits");
        // Its effect must come after the effect of the command that never ends.
        queue.post(Command::nothing().then(done.on(Rank(2)).add(1)))?;
        return never.wait_at_least(1);
    }
    if job.rank() == trap.victim {
        done.wait_at_least(1)?;
        names[OWNER.index()].post(job, trap.copy(2 * CHUNK).then(done.on(Rank(2)).add(1)))?;
        panic!("another rank ran the command");
    }
    done.wait_at_least(1)
}

/// The owner has offloaded a command to the victim. A second command of the owner has ended, but
/// its effect must wait for the first.
fn with_a_command_that_only_it_may_run(job: &Job, trap: &Trap) -> Result<()> {
    let (done, never) = (job.signal()?, job.signal()?);
    let queue = job.queue(8)?;
    if job.rank() == OWNER {
        let effect = done.on(Rank(2)).add(1);
        queue.post(trap.copy(2 * CHUNK).by_destination().then(effect))?;
        queue.post(Command::nothing().then(effect))?;
    }
    if job.rank() == trap.victim {
        job.compute(Duration::from_millis(1)); // until the other ranks wait
    }
    if job.rank() == Rank(2) { done.wait_at_least(1) } else { never.wait_at_least(1) }
}

/// All ranks share a copy of the owner, again and again, until the victim takes part.
fn half_way_through_a_chunk(job: &Job, trap: &Trap) -> Result<()> {
    let (done, never) = (job.signal()?, job.signal()?);
    let queue = job.queue(8)?;
    if job.rank() != OWNER {
        return never.wait_at_least(1);
    }
    for round in 1.. {
        queue.post(trap.copy(CHUNKS * CHUNK).then(done.on(OWNER).add(1)))?;
        done.wait_at_least(round)?;
    }
    Ok(())
}

/// Rank 0 receives messages that it must fetch from their senders. One of these is killed meanwhile.
fn while_it_sends_to_one(job: &Job, victim: Rank) -> Result<()> {
    let world = job.world();
    if job.rank() == OWNER {
        loop {
            world.recv_any_vec::<u64>(Slot::ANY)?;
        }
    }
    if job.rank() == victim {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            die();
        });
    }
    for number in 0_u64.. {
        world.send_any(&vec![number; 3000], OWNER, Slot(number as usize % 3))?;
    }
    Ok(())
}

/// One rank waits for the reply of the handler that kills the victim; another rank waits for its
/// call to be run.
fn in_a_handler(job: &Job) -> Result<()> {
    let (never, ready) = (job.signal()?, job.signal()?);
    match job.rank().0 {
        0 => {
            ready.wait_at_least(1)?;
            DIES.call(job, Rank(1), &())?.wait()
        }
        1 => never.wait_at_least(1),
        _ => loop {
            NOTHING.call(job, Rank(1), &())?.wait()?;
            job.raise(ready.on(Rank(0)), 1)?;
        },
    }
}

/// The victim computes while its helper carries out a command that only the victim may run.
fn by_its_helper(job: &Job, trap: &Trap) -> Result<()> {
    let (done, never) = (job.signal()?, job.signal()?);
    let queue = job.queue(8)?;
    if job.rank() == trap.victim {
        loop {
            job.compute(Duration::from_micros(5));
        }
    }
    if job.rank() == Rank(2) {
        queue.post(trap.copy(2 * CHUNK).by_destination().then(done.on(Rank(2)).add(1)))?;
        return done.wait_at_least(1);
    }
    never.wait_at_least(1)
}
