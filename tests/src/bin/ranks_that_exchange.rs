//! Ranks that exchange messages until one of them dies. `tools/tests/run/kills.rs` starts them. Each
//! rank prints a line once all ranks have met. It writes to standard error with which error its
//! exchange ended.
//!
//! `ranks_that_exchange ROUND` starts with that round, which selects the kind of exchange; all ranks get the
//! same argument.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tasuki::message::{recv_into, send_from};
use tasuki::{Array, Job, Rank, Request, Result, Slot, Sum};
use tasuki_tests::watchdog::Watchdog;

/// A length that takes many pieces of a ring.
const LONG: usize = 400_000;

/// A rank and its neighbours in the ring of ranks.
struct Ring<'job> {
    job: &'job Job,
    next: Rank,
    previous: Rank,
    /// The job memory that messages are sent from, and the one they are received into.
    shared: [Array<u8>; 2],
}

fn main() -> ExitCode {
    let _watched = Watchdog::over("ranks_that_exchange");
    let first = std::env::args().nth(1).and_then(|round| round.parse().ok()).unwrap_or(0);
    tasuki::main(|job: &Job| -> Result<()> {
        let ended = exchange(job, first);
        ended.inspect_err(|error| {
            let _ = writeln!(std::io::stderr(), "rank {} got the error: {error}", job.rank());
        })
    })
}

fn exchange(job: &Job, first: usize) -> Result<()> {
    let shared = [job.alloc(LONG)?, job.alloc(LONG)?];
    let ring = Ring { job, next: job.rank_after(1), previous: job.rank_after(-1), shared };
    job.barrier()?;
    println!("met");
    for round in first.. {
        // Now and then one rank makes the others wait until they sleep.
        if round % 8 == 0 && (round / 8) % job.size() == job.rank().index() {
            job.compute(Duration::from_millis(3));
        }
        ring.turn(round)?;
    }
    Ok(())
}

impl Ring<'_> {
    fn turn(&self, round: usize) -> Result<()> {
        match round % 7 {
            0 => self.short(),
            1 => self.staged(),
            2 => self.in_job_memory(),
            3 => self.in_a_scope(),
            4 => self.awaited(),
            5 => self.dropped(),
            _ => self.collective(),
        }
    }

    /// Blocking calls would deadlock if all ranks sent first, so only every other rank does.
    fn in_turn(&self, send: impl FnOnce() -> Result<()>, recv: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.job.rank().0.is_multiple_of(2) {
            send().and_then(|()| recv())
        } else {
            recv().and_then(|()| send())
        }
    }

    fn short(&self) -> Result<()> {
        let world = self.job.world();
        let recv = || world.recv(&mut [0_u64], self.previous, Slot(0)).map(drop);
        self.in_turn(|| world.send(&[1_u64], self.next, Slot(0)), recv)
    }

    fn staged(&self) -> Result<()> {
        let (world, mut got) = (self.job.world(), vec![0_u8; LONG]);
        let recv = || world.recv(&mut got, self.previous, Slot(1)).map(drop);
        self.in_turn(|| world.send(&[1_u8; LONG], self.next, Slot(1)), recv)
    }

    fn in_job_memory(&self) -> Result<()> {
        let (world, [from, into]) = (self.job.world(), &self.shared);
        let recv = || recv_into(world, into.pointer().slice(LONG), self.previous, Slot(2)).map(drop);
        self.in_turn(|| send_from(world, from.pointer().slice(LONG), self.next, Slot(2)), recv)
    }

    fn in_a_scope(&self) -> Result<()> {
        let (mine, mut short, mut long) = (vec![1_u8; LONG], [0_u8; 40], vec![0; LONG]);
        self.job.world().scope(|s| {
            let mut receive = s.recv(&mut long, self.previous, Slot(3))?;
            s.recv(&mut short, self.next, Slot(4))?;
            s.send(&mine, self.next, Slot(3))?;
            s.send(&mine[..40], self.previous, Slot(4))?;
            receive.wait()?;
            s.wait_all()
        })
    }

    fn awaited(&self) -> Result<()> {
        let world = self.job.world();
        pollster::block_on(async {
            let receive = world.irecv(vec![0_u8; LONG], self.previous, Slot(5))?;
            let short = world.irecv(vec![0_u8; 8], self.next, Slot(6))?;
            let send = world.isend(vec![1_u8; LONG], self.next, Slot(5))?;
            world.isend(vec![1_u8; 8], self.previous, Slot(6))?.await?;
            receive.await?;
            short.await?;
            send.await.map(drop)
        })
    }

    /// A send that nobody waits for, and a receive of any slot.
    fn dropped(&self) -> Result<()> {
        let world = self.job.world();
        drop(world.isend(vec![1_u8; LONG], self.next, Slot(7))?);
        world.recv(&mut vec![0_u8; LONG], self.previous, Slot::ANY).map(drop)
    }

    fn collective(&self) -> Result<()> {
        let world = self.job.world();
        world.allreduce(&[1.0_f64; 1000], Sum)?;
        world.bcast(&mut [0_u8; 5000], Rank(1))?;
        world.barrier()
    }
}
