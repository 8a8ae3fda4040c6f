//! G17, step by step: on the simulator receives are dropped at every moment while their messages are sent and
//! received.

use std::time::Duration;
use tasuki::{Communicator, Error, Job, Rank, Request, Result, Sim, Slot};
use tasuki_tests::simulated_machines::MACHINES;
use tasuki_tests::watchdog::Watchdog;

/// A short message, one just too long to be short, and one of several chunks.
const LENGTHS: [usize; 3] = [8, 49, 3000];
/// Lengths of the receive buffers.
const ROOMS: [usize; 2] = [48, 3000];

/// Drops a receive of rank 1 after some time.
type DropReceive = fn(&Job, usize, Slot, Duration) -> Result<()>;

fn drop_request(job: &Job, room: usize, slot: Slot, after: Duration) -> Result<()> {
    let mut receive = job.world().irecv(vec![9_u8; room], Rank(0), slot)?;
    job.compute(after);
    let _ = receive.test();
    drop(receive);
    Ok(())
}

fn drop_request_of_unknown_length(job: &Job, _: usize, slot: Slot, after: Duration) -> Result<()> {
    let mut receive = job.world().irecv_vec::<u8>(Rank(0), slot)?;
    job.compute(after);
    let _ = receive.test();
    drop(receive);
    Ok(())
}

fn cancel_request(job: &Job, room: usize, slot: Slot, after: Duration) -> Result<()> {
    let mut receive = job.world().irecv(vec![9_u8; room], Rank(0), slot)?;
    job.compute(after);
    if receive.cancel() {
        job.compute(Duration::from_nanos(700));
        assert_eq!(receive.into_values(), Some(vec![9; room]), "nothing has come here");
    } // otherwise it has its message, which is kept
    Ok(())
}

fn cancel_scope(job: &Job, room: usize, slot: Slot, after: Duration) -> Result<()> {
    let mut into = vec![9_u8; room];
    let cancelled = job.world().scope(|s| -> Result<()> {
        s.recv(&mut into, Rank(0), slot)?;
        job.compute(after);
        Err(Error::argument("cancelled"))
    });
    into.fill(5); // the memory is free again
    job.compute(Duration::from_nanos(700));
    assert!(cancelled.is_err() && into.iter().all(|&byte| byte == 5));
    Ok(())
}

fn cancel_scope_of_job_memory(job: &Job, room: usize, slot: Slot, after: Duration) -> Result<()> {
    let into = job.alloc_local::<u8>(room)?;
    let cancelled = job.world().scope(|s| -> Result<()> {
        s.recv_into(into.pointer().slice(room), Rank(0), slot)?;
        job.compute(after);
        Err(Error::argument("cancelled"))
    });
    into.fill(5)?;
    assert!(cancelled.is_err());
    Ok(())
}

/// Receives the messages. Those of one slot keep their order, unless receives of any slot follow receives that named
/// the slot: while a receive that names a slot is being withdrawn, its message may be overtaken.
fn receive_all(world: &Communicator, [first, second, rest]: [Slot; 3], len: usize) -> Result<()> {
    let is_ordered = rest != Slot::ANY || first == Slot::ANY && second == Slot::ANY;
    let mut missing = vec![1_u8, 2, 3];
    while !missing.is_empty() {
        let mut got = vec![9_u8; 3000];
        let received = world.recv(&mut got, Rank(0), rest)?;
        assert_eq!((received.slot, received.count), (Slot(7), len));
        let most = if is_ordered { 1 } else { missing.len() };
        let which = missing[..most].iter().position(|&number| got[..len].iter().all(|&byte| byte == number));
        missing.remove(which.expect("the next message, and whole"));
    }
    Ok(())
}

/// Rank 0 sends three messages on one slot. Rank 1 drops receives of two `slots`, and then receives from the third.
fn exchange(
    job: &Job,
    (len, room): (usize, usize),
    slots: [Slot; 3],
    drops: DropReceive,
    after: Duration,
) -> Result<()> {
    let world = job.world();
    if job.rank() == Rank(0) {
        for number in 1..=3_u8 {
            world.send(&vec![number; len], Rank(1), Slot(7))?;
        }
        return job.barrier();
    }
    drops(job, room, slots[0], after)?;
    drops(job, room, slots[1], after / 3)?;
    receive_all(world, slots, len)?;
    job.barrier()
}

fn at_every_moment(name: &str, drops: DropReceive) {
    let machine = MACHINES.iter().find(|machine| machine.name == name).expect("there is such a machine");
    let _watched = Watchdog::over(format!("receives dropped at every moment, {name}"));
    let (named, any) = (Slot(7), Slot::ANY);
    let orders = [[named; 3], [any; 3], [any, any, named], [named, named, any], [any, named, named]];
    for (len, room) in LENGTHS.into_iter().flat_map(|len| ROOMS.map(|room| (len, room))) {
        if len > room {
            continue;
        }
        for slots in orders {
            for step in 0..120_u64 {
                let sim = (machine.of)(Sim::seed(step).ranks(2));
                let after = Duration::from_nanos(step * 251);
                let outcome = tasuki::sim(sim, |job| exchange(job, (len, room), slots, drops, after));
                if let Err(error) = outcome {
                    panic!("{len} bytes into {room}, {slots:?}, {after:?}, seed {step}: {error}");
                }
            }
        }
    }
}

macro_rules! tests {
    ($($name:ident: $machine:literal, $drops:ident;)*) => {
        $(
            #[test]
            fn $name() {
                at_every_moment($machine, $drops);
            }
        )*
    };
}

tests! {
    requests_on_a_plain_machine: "plain", drop_request;
    requests_where_memory_is_mapped: "mapped", drop_request;
    requests_on_a_bare_machine: "bare", drop_request;
    requests_of_unknown_length_on_a_plain_machine: "plain", drop_request_of_unknown_length;
    requests_of_unknown_length_where_memory_is_mapped: "mapped", drop_request_of_unknown_length;
    requests_of_unknown_length_on_a_bare_machine: "bare", drop_request_of_unknown_length;
    cancelled_requests_on_a_plain_machine: "plain", cancel_request;
    cancelled_requests_where_memory_is_mapped: "mapped", cancel_request;
    cancelled_requests_on_a_bare_machine: "bare", cancel_request;
    scopes_on_a_plain_machine: "plain", cancel_scope;
    scopes_where_memory_is_mapped: "mapped", cancel_scope;
    scopes_on_a_bare_machine: "bare", cancel_scope;
    scopes_of_job_memory_on_a_plain_machine: "plain", cancel_scope_of_job_memory;
    scopes_of_job_memory_where_memory_is_mapped: "mapped", cancel_scope_of_job_memory;
    scopes_of_job_memory_on_a_bare_machine: "bare", cancel_scope_of_job_memory;
}
