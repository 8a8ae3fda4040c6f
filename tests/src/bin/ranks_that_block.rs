//! Ranks that wait in each kind of call, or for each other. `tools/tests/run/waits.rs` starts them and
//! looks at them with `tasuki ps`. The first argument says what they do:
//!
//! - `calls FOLDER`: all ranks but the last wait in one call after the other. The last rank enters
//!   call N once file N exists in the folder.
//! - `rounds FOLDER`: the other ranks receive messages from rank 0, which sends message N once file
//!   N exists.
//! - `circle`: each rank waits for a message from the next one.
//! - `crossed`: of two ranks, rank 0 waits for a message and rank 1 in a barrier.
//! - `sending`: of three ranks, two wait for each other, and one of them has a send under way.
//! - `unreceived`: rank 0 waits for a message of any rank; the others have sent it messages that it does not receive.
//! - `threads FOLDER`: two ranks wait for each other; a thread of rank 1 sends once file 0 exists.
//! - `limit FOLDER`: two ranks wait for each other with a time limit.
//! - `handler FOLDER`: rank 0 runs a handler of rank 1 until file 0 exists.

use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tasuki::{Communicator, Handler, Handlers, Job, Plan, Rank, Request, Result, Slot, Sum};

const SLOT: Slot = Slot(5);
const LONG: Slot = Slot(6);

/// Runs until the gate that the rank has as its state is open.
const PASSES: Handler<(), ()> = Handler::new("passes", |cx, ()| cx.local::<Gate>().pass(0));

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let what = words.next().unwrap_or_default();
    let folder = PathBuf::from(words.next().unwrap_or_default());
    let of_handlers = folder.clone();
    let handlers = Handlers::new().local(move || Gate(of_handlers.clone())).add(PASSES);
    tasuki::main_with(handlers, |job: &Job| -> Result<()> {
        let gate = Gate(folder.clone());
        match what.as_str() {
            "calls" => calls(job, &gate),
            "rounds" => rounds(job, &gate),
            "circle" => receive(job.world(), job.rank_after(1)),
            "crossed" if job.rank() == Rank(0) => receive(job.world(), Rank(1)),
            "crossed" => job.world().barrier(),
            "sending" => sending(job),
            "unreceived" if job.rank() == Rank(0) => job.world().recv_any(&mut [0_u64], SLOT).map(drop),
            "unreceived" => {
                job.world().send(&[7_u64; 2], Rank(0), LONG)?;
                job.world().send(&[7_u64; 3], Rank(0), SLOT)?;
                job.barrier()
            }
            "threads" => threads(job, &gate),
            "limit" => limit(job, &gate),
            "handler" if job.rank() == Rank(0) => receive(job.world(), Rank(1)),
            "handler" => {
                PASSES.call(job, Rank(0), &())?.wait()?;
                job.world().send(&0_u64, Rank(0), SLOT)
            }
            other => panic!("there is no way {other}"),
        }
    })
}

/// A folder; ranks wait for files in it.
struct Gate(PathBuf);

impl Gate {
    fn is_open(&self, number: usize) -> bool {
        self.0.join(number.to_string()).exists()
    }

    fn pass(&self, number: usize) {
        while !self.is_open(number) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn receive(world: &Communicator, from: Rank) -> Result<()> {
    world.recv(&mut [0_u64], from, SLOT).map(drop)
}

/// All ranks make each call, and the last rank makes it late. If the last rank must make a different call than the
/// others, such as the send for their receive, an `if` selects that call.
fn calls(job: &Job, gate: &Gate) -> Result<()> {
    let (world, last) = (job.world(), Rank(job.size() - 1));
    let is_late = job.rank() == last;
    let mut number = 0;
    let mut late = || {
        if is_late {
            gate.pass(number);
        }
        number += 1;
    };
    let others = || Rank::all(job.size() - 1);
    let few = [1_u64];
    let many = vec![1_u64; 1024];
    let send_few = || others().try_for_each(|to| world.send(&few, to, SLOT));
    late();
    job.barrier()?;
    late();
    world.barrier()?;
    late();
    world.allreduce(&few, Sum)?;
    (0..10).try_for_each(|_| world.allreduce(&few, Sum).map(drop))?;
    late();
    world.allreduce(&few, Sum)?;
    late();
    world.allreduce(&many, Sum)?;
    late();
    world.bcast(&mut many.clone(), last)?;
    late();
    world.gather(&few, Rank(0))?;
    late();
    world.ibarrier()?.wait()?;
    late();
    world.iallreduce(many.clone(), Sum)?.wait()?;
    late();
    if is_late {
        send_few()?
    } else {
        receive(world, last)?
    }
    late();
    if is_late {
        send_few()?
    } else {
        drop(world.irecv(vec![0_u64], last, SLOT)?.wait()?)
    }
    late();
    let long = vec![1_u64; 1 << 17];
    if is_late {
        others().try_for_each(|from| world.recv(&mut long.clone(), from, LONG).map(drop))?;
    } else {
        world.send(&long, last, LONG)?;
    }
    late();
    if is_late {
        send_few()?;
        send_few()?;
    } else {
        drop(block_on(world.irecv(vec![0_u64], last, SLOT)?)?);
        receive(world, last)?;
    }
    let mut plan: Plan<u64> = world.allreduce_init(many.len(), Sum)?;
    let mut start = || plan.start().and_then(|()| plan.wait());
    (0..3).try_for_each(|_| start())?;
    late();
    start()?;
    late();
    world.fuzzy_barrier()?.wait()?;
    late();
    world.split(2)?;
    let part = world.split(1)?;
    late();
    part.allreduce(&few, Sum)?;
    late();
    world.allgather(tasuki::Uneven(&few))?;
    let signal = job.signal()?;
    job.barrier()?;
    late();
    if is_late {
        others().try_for_each(|rank| job.raise(signal.on(rank), 1))?
    } else {
        signal.wait_at_least(1)?
    }
    late();
    drop(job.alloc::<u64>(7)?);
    job.barrier()
}

/// Each rank prints a line about its round before it waits in the next one.
fn rounds(job: &Job, gate: &Gate) -> Result<()> {
    for number in 0.. {
        if job.rank() == Rank(0) {
            while !gate.is_open(number) && !gate.0.join("end").exists() {
                thread::sleep(Duration::from_millis(1));
            }
            let goes_on = gate.is_open(number);
            (1..job.size()).try_for_each(|to| job.world().send(&[u64::from(goes_on)], Rank(to), SLOT))?;
            if !goes_on {
                break;
            }
        } else {
            let mut goes_on = [0_u64];
            job.world().recv(&mut goes_on, Rank(0), SLOT)?;
            if goes_on == [0] {
                break;
            }
            println!("rank {} round {number}", job.rank());
        }
    }
    Ok(())
}

/// Rank 0 and rank 1 wait for each other. Rank 1 has a message under way to rank 2, which never
/// receives it.
fn sending(job: &Job) -> Result<()> {
    let world = job.world();
    match job.rank() {
        Rank(0) => receive(world, Rank(1)),
        Rank(1) => {
            let _sent = world.isend(vec![1_u64; 1 << 17], Rank(2), LONG)?;
            receive(world, Rank(0))
        }
        _ => job.barrier(),
    }
}

fn threads(job: &Job, gate: &Gate) -> Result<()> {
    let (world, other) = (job.world(), job.rank_after(1));
    if job.rank() == Rank(0) {
        receive(world, other)?;
        return world.send(&[1_u64], other, SLOT);
    }
    let sent = job.threads(2, |thread| {
        if thread == 0 {
            return receive(world, other);
        }
        gate.pass(0);
        world.send(&[1_u64], other, SLOT)
    })?;
    sent.into_iter().collect()
}

fn limit(job: &Job, gate: &Gate) -> Result<()> {
    let (world, other) = (job.world(), job.rank_after(1));
    loop {
        let limit = if gate.is_open(0) { Duration::ZERO } else { Duration::from_millis(200) };
        match world.within(limit).recv(&mut [0_u64], other, SLOT) {
            Err(error) if error.is_timeout() && gate.is_open(0) => return job.barrier(),
            Err(error) if error.is_timeout() => {}
            other => return other.map(drop),
        }
    }
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}
